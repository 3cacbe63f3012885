// Package render asks Talos's machinery: load, compose, validate, list secret
// fields. It merges nothing itself and words nothing itself; what the machinery
// says goes into a refusal's message, and a panic's text goes nowhere.
package render

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/siderolabs/talos/pkg/machinery/compatibility/talos113"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"bronzeward/renderer-worker/internal/limits"
	"bronzeward/renderer-worker/internal/wire"
)

const (
	// Protocol is the number of proto/renderer.proto as this worker speaks it.
	Protocol = 1

	machineryModule = "github.com/siderolabs/talos/pkg/machinery"
)

// Describe answers this build's own record of the machinery (IC 10.2, facts 8.4).
func Describe() (*wire.Description, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, errors.New("no build record")
	}

	out := &wire.Description{
		Protocol:          Protocol,
		Contract:          fmt.Sprintf("v%d.%d", talos113.MajorMinor[0], talos113.MajorMinor[1]),
		KubernetesDefault: "v" + constants.DefaultKubernetesVersion,
		KubernetesFrom:    "v" + talos113.MinimumKubernetesVersion.String(),
		KubernetesBelow:   "v" + talos113.MaximumKubernetesVersion.String(),
		Limits: &wire.Limits{
			InputBytes:  limits.InputBytes,
			OutputBytes: limits.OutputBytes,
			Depth:       limits.Depth,
			Documents:   limits.Documents,
			MappingKeys: limits.MappingKeys,
			Patches:     limits.Patches,
		},
	}

	for _, module := range info.Deps {
		if module.Path != machineryModule {
			continue
		}

		out.MachineryVersion, out.MachineryChecksum = module.Version, module.Sum

		if replaced := module.Replace; replaced != nil {
			out.MachineryReplaced = true
			out.MachineryVersion, out.MachineryChecksum = replaced.Version, replaced.Sum
		}
	}

	return out, nil
}
