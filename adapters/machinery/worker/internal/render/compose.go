package render

import (
	"errors"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"

	"bronzeward/renderer-worker/internal/limits"
	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/wire"
)

// noOp changes nothing and makes the machinery encode: with no patch at all it
// would give the base's own text back, and an empty one fails (T16).
const noOp = "machine: {}\n"

// Compose applies patches to a base in order, one at a time, so that a refusal
// names its patch, and answers the machinery's own encoding of the result, which
// has been loaded again.
func Compose(base string, patches []string) (string, error) {
	if err := composeLimits(base, patches); err != nil {
		return "", err
	}

	s, err := complete(base)
	if err != nil {
		return "", err
	}

	provider, err := loadBase(s)
	if err != nil {
		return "", err
	}

	if len(patches) == 0 && provider.CompleteForBoot() {
		patches = []string{noOp}
	}

	for i, patch := range patches {
		provider, err = apply(provider, patch)
		if err != nil {
			var r *refusal.Refusal
			if errors.As(err, &r) {
				return "", r.Fragment(i)
			}

			return "", err
		}
	}

	return encode(provider)
}

func composeLimits(base string, patches []string) error {
	if len(patches) > limits.Patches {
		return refusal.New(wire.Class_CLASS_REQUEST)
	}

	total := len(base)
	for _, patch := range patches {
		total += len(patch)
	}

	if total > limits.InputBytes {
		return refusal.New(wire.Class_CLASS_INPUT_TOO_LARGE)
	}

	return nil
}

// apply merges one patch; a panic in it is that patch's refusal (T10).
func apply(provider coreconfig.Provider, text string) (out coreconfig.Provider, err error) {
	defer Guard(&err)

	s, err := resolved(text)
	if err != nil {
		return nil, err
	}

	patch, err := loadFragment(s)
	if err != nil {
		return nil, err
	}

	applied, err := configpatcher.Apply(configpatcher.WithConfig(provider), []configpatcher.Patch{patch})
	if err != nil {
		return nil, refusal.New(wire.Class_CLASS_MERGE).Saying(err)
	}

	out, err = applied.Config()
	if err != nil {
		return nil, refusal.New(wire.Class_CLASS_MERGE).Saying(err)
	}

	// A delete whose document is absent stays behind as a document, and the
	// encoder panics on it (T9, T29).
	for _, document := range out.Documents() {
		if _, ok := document.(configloader.Selector); ok {
			return nil, refusal.New(wire.Class_CLASS_ABSENT_DELETE_TARGET)
		}
	}

	return out, nil
}

func encode(provider coreconfig.Provider) (string, error) {
	encoded, err := configpatcher.WithConfig(provider).Bytes()
	if err != nil {
		return "", refusal.New(wire.Class_CLASS_OUTPUT_DOES_NOT_LOAD).Saying(err)
	}

	if len(encoded) > limits.OutputBytes {
		return "", refusal.New(wire.Class_CLASS_OUTPUT_TOO_LARGE)
	}

	if _, err := configloader.NewFromBytes(encoded); err != nil {
		r := loadRefusal(err)
		if r.Wire().GetClass() == wire.Class_CLASS_LOAD {
			r.Wire().Class = wire.Class_CLASS_OUTPUT_DOES_NOT_LOAD
		}

		return "", r
	}

	return string(encoded), nil
}

// Guard turns a panic into a refusal without its text. Deferred around every call
// into the machinery.
func Guard(err *error) {
	if recover() != nil {
		*err = refusal.New(wire.Class_CLASS_PANICKED)
	}
}
