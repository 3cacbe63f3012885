package render

import (
	"errors"
	"regexp"
	"strings"

	"github.com/hashicorp/go-multierror"
	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/wire"
)

// mode is the machinery's RuntimeMode; its own implementation is not importable
// (IC 10.1). The three behave as the tool's own do, whose verdicts parity was
// measured against: metal requires an install section, which makes the answer for
// an installed metal machine stricter than the machine's own (facts 7.1).
type mode wire.Mode

func (m mode) String() string {
	switch wire.Mode(m) {
	case wire.Mode_MODE_METAL:
		return "metal"
	case wire.Mode_MODE_CONTAINER:
		return "container"
	default:
		return "cloud"
	}
}

func (m mode) RequiresInstall() bool { return wire.Mode(m) == wire.Mode_MODE_METAL }
func (m mode) InContainer() bool     { return wire.Mode(m) == wire.Mode_MODE_CONTAINER }

// Validate answers what the machinery says of a complete configuration.
func Validate(config string, in wire.Mode) (*wire.Verdict, error) {
	if in == wire.Mode_MODE_UNSPECIFIED {
		return nil, refusal.New(wire.Class_CLASS_REQUEST)
	}

	s, err := complete(config)
	if err != nil {
		return nil, err
	}

	provider, err := loadBase(s)
	if err != nil {
		return nil, err
	}

	warnings, err := provider.Validate(mode(in))

	out := &wire.Verdict{Complete: provider.CompleteForBoot()}

	for _, warning := range warnings {
		out.Warnings = append(out.Warnings, strings.ToValidUTF8(warning, "\uFFFD"))
	}

	if err != nil {
		flattenError(err, "", &out.Errors)
	}

	describeMachine(provider, out)

	return out, nil
}

// flattenError lists nested errors one by one, each with the words the machinery
// put before its list (facts 7.2).
func flattenError(err error, before string, out *[]string) {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		var list []error

		switch nested := inner.(type) {
		case *multierror.Error:
			list = nested.Errors
		case interface{ Unwrap() []error }:
			list = nested.Unwrap()
		}

		if len(list) == 0 {
			continue
		}

		if words, ok := strings.CutSuffix(err.Error(), inner.Error()); ok {
			before += words
		}

		for _, nested := range list {
			flattenError(nested, before, out)
		}

		return
	}

	*out = append(*out, strings.ToValidUTF8(before+err.Error(), "\uFFFD"))
}

func describeMachine(provider coreconfig.Provider, out *wire.Verdict) {
	raw := provider.RawV1Alpha1()
	if raw == nil || raw.MachineConfig == nil {
		return
	}

	switch raw.MachineConfig.Type() {
	case machine.TypeInit, machine.TypeControlPlane:
		out.MachineType = wire.MachineType_MACHINE_TYPE_CONTROL_PLANE
	case machine.TypeWorker:
		out.MachineType = wire.MachineType_MACHINE_TYPE_WORKER
	case machine.TypeUnknown:
	}

	kubelet := raw.MachineConfig.MachineKubelet
	out.KubeletImage = raw.MachineConfig.Kubelet().Image()
	out.KubeletImageSet = kubelet != nil && kubelet.KubeletImage != ""
	out.KubernetesVersion = plainRelease(out.KubeletImage)
	out.Kubernetes = checkKubernetes(out.KubeletImage)
}

// checkKubernetes is what an installed node checks at apply (facts 7.3 d): the
// machinery's own window for its own Talos minor (IC 10.2).
func checkKubernetes(image string) wire.KubernetesCheck {
	if _, err := v1alpha1.KubernetesVersionFromImageRef(image); err != nil {
		return wire.KubernetesCheck_KUBERNETES_CHECK_UNREADABLE
	}

	if err := v1alpha1.ValidateKubernetesImageTag(image); err != nil {
		return wire.KubernetesCheck_KUBERNETES_CHECK_OUTSIDE
	}

	return wire.KubernetesCheck_KUBERNETES_CHECK_SUPPORTED
}

var release = regexp.MustCompile(`^v(?:0|[1-9][0-9]{0,4})\.(?:0|[1-9][0-9]{0,4})\.(?:0|[1-9][0-9]{0,4})$`)

// plainRelease reads a tag as the machinery does, after the last ":v" and up to a
// digest, and gives it only if it is a plain release (IC choice 32).
func plainRelease(image string) string {
	at := strings.LastIndex(image, ":v")
	if at < 0 {
		return ""
	}

	tag, _, _ := strings.Cut(image[at+1:], "@")
	if !release.MatchString(tag) {
		return ""
	}

	return tag
}
