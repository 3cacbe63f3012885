package render_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/render"
	"bronzeward/renderer-worker/internal/wire"
)

// cluster is one for all tests of a run: making its keys takes a second.
var cluster = sync.OnceValues(func() (*generate.Input, error) {
	contract := config.TalosVersionCurrent

	bundle, err := secrets.NewBundle(secrets.NewFixedClock(time.Now()), contract)
	if err != nil {
		return nil, err
	}

	return generate.NewInput("test", "https://kube.example.test:6443", constants.DefaultKubernetesVersion,
		generate.WithVersionContract(contract),
		generate.WithSecretsBundle(bundle),
		generate.WithInstallDisk("/dev/sda"),
	)
})

// generated is a configuration of the machinery's own making, with secrets of this run.
func generated(t testing.TB, kind machine.Type, comments encoder.CommentsFlags) string {
	t.Helper()

	input, err := cluster()
	if err != nil {
		t.Fatal(err)
	}

	provider, err := input.Config(kind)
	if err != nil {
		t.Fatal(err)
	}

	text, err := provider.EncodeString(encoder.WithComments(comments))
	if err != nil {
		t.Fatal(err)
	}

	return text
}

// composed is what a composition that must succeed gives.
func composed(t testing.TB, base string, patches ...string) string {
	t.Helper()

	text, err := guardedCompose(base, patches)
	if err != nil {
		t.Fatalf("refused: %v (%s)", err, message(err))
	}

	return text
}

// refusedAs composes, expects a refusal of a class, and gives it back.
func refusedAs(t testing.TB, class wire.Class, base string, patches ...string) *wire.Refusal {
	t.Helper()

	_, err := guardedCompose(base, patches)

	return expect(t, class, err)
}

// guardedCompose is what serve does around every request.
func guardedCompose(base string, patches []string) (text string, err error) {
	defer render.Guard(&err)

	return render.Compose(base, patches)
}

func expect(t testing.TB, class wire.Class, err error) *wire.Refusal {
	t.Helper()

	var r *refusal.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("expected %v, got %v", class, err)
	}

	if r.Wire().GetClass() != class {
		t.Fatalf("expected %v, got %v: %s", class, r.Wire().GetClass(), r.Wire().GetMessage())
	}

	return r.Wire()
}

func message(err error) string {
	var r *refusal.Refusal
	if errors.As(err, &r) {
		return r.Wire().GetMessage()
	}

	return ""
}

func holds(t testing.TB, text, part string) {
	t.Helper()

	if !strings.Contains(text, part) {
		t.Fatalf("%q is not in the output:\n%s", part, text)
	}
}

func lacks(t testing.TB, text, part string) {
	t.Helper()

	if strings.Contains(text, part) {
		t.Fatalf("%q is in the output:\n%s", part, text)
	}
}
