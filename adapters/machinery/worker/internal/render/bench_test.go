package render_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"

	"bronzeward/renderer-worker/internal/render"
)

var benchPatches = []string{
	"machine:\n  nodeLabels:\n    site: north\n",
	"machine:\n  sysctls:\n    net.core.somaxconn: \"65535\"\n",
	"apiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\nhostname: one\n",
}

// large is a configuration of about 100 KB: 80 machine files.
func large(b *testing.B) string {
	b.Helper()

	var files strings.Builder

	files.WriteString("machine:\n  files:\n")

	for i := range 80 {
		fmt.Fprintf(&files, "    - path: /var/etc/bench/file-%03d.conf\n      permissions: 0o644\n      op: create\n      content: |\n%s",
			i, strings.Repeat("        setting = some value that stands for a line\n", 20))
	}

	return composed(b, generated(b, machine.TypeControlPlane, encoder.CommentsDisabled), files.String())
}

// processor measures the processor's time beside the clock's, which means little on a
// machine that others use.
func processor(b *testing.B) func() {
	b.Helper()

	used := func() float64 {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}

		return float64(usage.Utime.Nano() + usage.Stime.Nano())
	}
	before := used()

	return func() { b.ReportMetric((used()-before)/float64(b.N), "cpu-ns/op") }
}

// BenchmarkMachineryAlone is the machinery called directly: load, patch, encode, load.
func BenchmarkMachineryAlone(b *testing.B) {
	base := []byte(large(b))
	b.SetBytes(int64(len(base)))

	defer processor(b)()

	for b.Loop() {
		provider, err := configloader.NewFromBytes(base)
		if err != nil {
			b.Fatal(err)
		}

		var patches []configpatcher.Patch

		for _, text := range benchPatches {
			patch, err := configpatcher.LoadPatch([]byte(text))
			if err != nil {
				b.Fatal(err)
			}

			patches = append(patches, patch)
		}

		out, err := configpatcher.Apply(configpatcher.WithConfig(provider), patches)
		if err != nil {
			b.Fatal(err)
		}

		text, err := out.Bytes()
		if err != nil {
			b.Fatal(err)
		}

		if _, err := configloader.NewFromBytes(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompose is the same through what answers a request.
func BenchmarkCompose(b *testing.B) {
	base := large(b)
	b.SetBytes(int64(len(base)))

	defer processor(b)()

	for b.Loop() {
		if _, err := render.Compose(base, benchPatches); err != nil {
			b.Fatal(err)
		}
	}
}
