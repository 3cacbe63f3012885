package render_test

import (
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/version"

	"bronzeward/renderer-worker/internal/render"
	"bronzeward/renderer-worker/internal/wire"
)

func verdict(t *testing.T, text string, mode wire.Mode) *wire.Verdict {
	t.Helper()

	out, err := render.Validate(text, mode)
	if err != nil {
		t.Fatalf("refused: %v (%s)", err, message(err))
	}

	return out
}

func TestTheModeDecidesTheVerdict(t *testing.T) {
	metal := generated(t, machine.TypeControlPlane, encoder.CommentsDisabled)
	if got := verdict(t, metal, wire.Mode_MODE_METAL); len(got.GetErrors()) != 0 || got.GetMachineType() != wire.MachineType_MACHINE_TYPE_CONTROL_PLANE {
		t.Fatalf("%v", got.GetErrors())
	}

	noDisk := composed(t, metal, "machine:\n  install:\n    disk:\n      $patch: delete\n")
	for mode, errors := range map[wire.Mode]int{wire.Mode_MODE_METAL: 1, wire.Mode_MODE_CLOUD: 0, wire.Mode_MODE_CONTAINER: 0} {
		if got := verdict(t, noDisk, mode); len(got.GetErrors()) != errors {
			t.Fatalf("%v: %q", mode, got.GetErrors())
		}
	}

	expect(t, wire.Class_CLASS_REQUEST, func() error {
		_, err := render.Validate(metal, wire.Mode_MODE_UNSPECIFIED)

		return err
	}())
}

func TestNestedErrorsAreListedOneByOneWithTheWordsBeforeThem(t *testing.T) {
	base := generated(t, machine.TypeWorker, encoder.CommentsDisabled)
	broken := composed(t, base, "machine:\n  nodeLabels:\n    \"-bad\": x\n  features:\n    hostDNS:\n      enabled: false\ncluster:\n  network:\n    dnsDomain: bad domain\n",
		"apiVersion: v1alpha1\nkind: StaticHostConfig\nname: not-an-address\nhostnames: [a]\n")

	got := verdict(t, broken, wire.Mode_MODE_CONTAINER)
	if len(got.GetErrors()) < 4 {
		t.Fatalf("%q", got.GetErrors())
	}

	for _, one := range got.GetErrors() {
		if strings.Contains(one, "occurred:") || !strings.HasPrefix(one, "v1alpha1.Config: ") && !strings.HasPrefix(one, "StaticHostConfig/not-an-address: ") {
			t.Fatalf("%q", one)
		}
	}
}

func TestWarningsAreTold(t *testing.T) {
	text := strings.Replace(generated(t, machine.TypeWorker, encoder.CommentsDisabled), "type: worker", "type: join", 1)
	if got := verdict(t, text, wire.Mode_MODE_METAL); len(got.GetWarnings()) != 1 || len(got.GetErrors()) != 0 || got.GetMachineType() != wire.MachineType_MACHINE_TYPE_WORKER {
		t.Fatalf("%q %q", got.GetWarnings(), got.GetErrors())
	}
}

// covers-part: IC-REN-1 (the Kubernetes window and the plain release of the kubelet's image)
func TestTheKubeletsImageIsHeldToTheMachinerysWindow(t *testing.T) {
	base := generated(t, machine.TypeWorker, encoder.CommentsDisabled)

	for image, want := range map[string]struct {
		version string
		check   wire.KubernetesCheck
	}{
		"ghcr.io/siderolabs/kubelet:v1.31.0":             {"v1.31.0", wire.KubernetesCheck_KUBERNETES_CHECK_SUPPORTED},
		"ghcr.io/siderolabs/kubelet:v1.36.98":            {"v1.36.98", wire.KubernetesCheck_KUBERNETES_CHECK_SUPPORTED},
		"ghcr.io/siderolabs/kubelet:v1.36.99":            {"v1.36.99", wire.KubernetesCheck_KUBERNETES_CHECK_OUTSIDE},
		"ghcr.io/siderolabs/kubelet:v1.30.14":            {"v1.30.14", wire.KubernetesCheck_KUBERNETES_CHECK_OUTSIDE},
		"ghcr.io/siderolabs/kubelet:v1.36.2-slim":        {"", wire.KubernetesCheck_KUBERNETES_CHECK_SUPPORTED},
		"ghcr.io/siderolabs/kubelet:1.36.2":              {"", wire.KubernetesCheck_KUBERNETES_CHECK_UNREADABLE},
		"ghcr.io/siderolabs/kubelet@sha256:00":           {"", wire.KubernetesCheck_KUBERNETES_CHECK_UNREADABLE},
		"ghcr.io/siderolabs/kubelet:v1.36.2@sha256:1234": {"v1.36.2", wire.KubernetesCheck_KUBERNETES_CHECK_SUPPORTED},
	} {
		got := verdict(t, composed(t, base, "machine:\n  kubelet:\n    image: "+image+"\n"), wire.Mode_MODE_METAL)
		if got.GetKubernetesVersion() != want.version || got.GetKubernetes() != want.check || got.GetKubeletImage() != image || !got.GetKubeletImageSet() {
			t.Errorf("%s: %v %v", image, got.GetKubernetesVersion(), got.GetKubernetes())
		}
	}

	got := verdict(t, composed(t, base, "machine:\n  kubelet:\n    image:\n      $patch: delete\n"), wire.Mode_MODE_METAL)
	if got.GetKubeletImageSet() || got.GetKubernetesVersion() == "" || got.GetKubernetes() != wire.KubernetesCheck_KUBERNETES_CHECK_SUPPORTED {
		t.Error("the machinery's default image is not taken")
	}

	if got := verdict(t, "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n", wire.Mode_MODE_METAL); got.GetComplete() {
		t.Error("documents alone are complete")
	}
}

func TestTheContractAndTheWindowAreTheMachinerysOwn(t *testing.T) {
	got, err := render.Describe()
	if err != nil {
		t.Fatal(err)
	}

	// A test binary carries no build record: the version and the checksum are looked
	// at in the built worker, by the Rust tests.
	if got.GetContract() != "v1.13" || got.GetKubernetesFrom() != "v1.31.0" || got.GetKubernetesBelow() != "v1.36.99" {
		t.Fatalf("%v", got)
	}

	if version.Tag != "v1.13.6" {
		t.Fatalf("%v", version.Tag)
	}
}
