package render_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"

	"bronzeward/renderer-worker/internal/limits"
	"bronzeward/renderer-worker/internal/render"
	"bronzeward/renderer-worker/internal/wire"
)

// The traps are numbered as in the Talos facts, section 0. Each test shows that the
// machinery still behaves so, or that this worker does not fall into it, or both.

const small = "version: v1alpha1\nmachine:\n  type: worker\n  token: a.b\n"

func TestT9AndT29ADeleteOfAnAbsentDocumentIsRefusedBeforeTheEncoderPanicsOnIt(t *testing.T) {
	patch := "apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\n$patch: delete\n"

	got := refusedAs(t, wire.Class_CLASS_ABSENT_DELETE_TARGET, small, "machine: {}\n", patch)
	if got.Fragment == nil || got.GetFragment() != 1 {
		t.Fatalf("the wrong fragment is named: %v", got.Fragment)
	}

	// Control: without that check, the encoder does panic.
	base, err := configloader.NewFromBytes([]byte(small))
	if err != nil {
		t.Fatal(err)
	}

	loaded, err := configpatcher.LoadPatch([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}

	out, err := configpatcher.Apply(configpatcher.WithConfig(base), []configpatcher.Patch{loaded})
	if err != nil {
		t.Fatal(err)
	}

	defer func() {
		if recover() == nil {
			t.Fatal("the encoder of this machinery no longer panics: the trap is gone")
		}
	}()

	_, _ = out.Bytes()
}

func TestT10APanicOfTheMachineryIsARefusalOfItsFragmentWithoutItsText(t *testing.T) {
	base := small + "  kubelet:\n    extraConfig:\n      canary: 1\n"

	got := refusedAs(t, wire.Class_CLASS_PANICKED, base, "machine:\n  kubelet:\n    extraConfig:\n      canary: null\n")
	if got.GetMessage() != "" || got.GetFragment() != 0 || got.Fragment == nil {
		t.Fatalf("text or fragment: %v", got.Fragment)
	}

	got = refusedAs(t, wire.Class_CLASS_PANICKED, small+"  network:\n    interfaces:\n      - interface: eth0\n",
		"machine:\n  network:\n    interfaces: [null]\n")
	if got.GetMessage() != "" {
		t.Fatal("a panic's text is told")
	}

	_, err := func() (v *wire.Verdict, err error) {
		defer render.Guard(&err)

		return render.Validate(small+"  network:\n    interfaces: [null]\n", wire.Mode_MODE_CLOUD)
	}()
	expect(t, wire.Class_CLASS_PANICKED, err)
}

func TestT11AMergeThatNamesADocumentOnlyClearsItsExpressions(t *testing.T) {
	base := small + "---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n" +
		"  diskSelector:\n    match: disk.transport == \"nvme\"\n  minSize: 5GB\n"
	holds(t, composed(t, base), "minSize: 5GB")

	out := composed(t, base, "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n  grow: true\n")
	lacks(t, out, "minSize")
	lacks(t, out, "nvme")

	// A rule document takes no merge at all.
	rule := "---\napiVersion: v1alpha1\nkind: RoutingRuleConfig\nname: \"1000\"\nsrc: 10.0.0.0/8\ntable: 100\naction: unicast\n"
	refusedAs(t, wire.Class_CLASS_MERGE, small+rule, strings.TrimPrefix(rule, "---\n"))
}

func TestT12AUrlKeepsTheQueryOfTheBase(t *testing.T) {
	base := small + "---\napiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: https://old.example.test/?jointoken=kept\n"
	out := composed(t, base, "apiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: https://new.example.test/\n")
	holds(t, out, "https://new.example.test/?jointoken=kept")
}

func TestT13AZeroValueDoesNotOverrideAndFalseDoes(t *testing.T) {
	base := small + "  nodeLabels:\n    a: one\n  features:\n    rbac: true\n"
	out := composed(t, base, "machine:\n  token: \"\"\n  nodeLabels:\n    a: \"\"\n  features:\n    rbac: false\n")
	holds(t, out, "token: a.b")
	holds(t, out, "a: one")
	holds(t, out, "rbac: false")
}

func TestT14ACertificateWithoutItsKeyWipesTheKeyOfTheBase(t *testing.T) {
	base := small + "  ca:\n    crt: Y2VydA==\n    key: a2V5\n"
	holds(t, composed(t, base), "key: a2V5")
	lacks(t, composed(t, base, "machine:\n  ca:\n    crt: b3RoZXI=\n"), "a2V5")
}

func TestT15AJsonPatchIsRefusedInEitherSpelling(t *testing.T) {
	for _, patch := range []string{
		`[{"op": "add", "path": "/machine/token", "value": "x"}]`,
		"- op: add\n  path: /machine/token\n  value: x\n",
	} {
		refusedAs(t, wire.Class_CLASS_JSON_PATCH, small, patch)
		expect(t, wire.Class_CLASS_JSON_PATCH, render.Check(wire.Source_SOURCE_FRAGMENT, patch))
	}
}

func TestT16AnEmptyFragmentIsRefusedAndNoFragmentEncodesTheBase(t *testing.T) {
	for _, patch := range []string{"", "\n", "# a comment\n", "---\n", "null\n"} {
		refusedAs(t, wire.Class_CLASS_EMPTY_FRAGMENT, small, patch)
	}

	two := small + "---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n"
	if once, noOp := composed(t, two), composed(t, two, "machine: {}\n"); once != noOp {
		t.Fatal("no fragment and the fragment that changes nothing differ")
	}

	// A stream without a v1alpha1 document gets none from being encoded.
	lacks(t, composed(t, "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n"), "machine")
}

func TestT17EveryOtherDirectiveIsRefused(t *testing.T) {
	for name, patch := range map[string]string{
		"another word":         "machine:\n  nodeLabels:\n    $patch: replace\n",
		"more in the mapping":  "machine:\n  install:\n    $patch: delete\n    disk: /dev/sdb\n",
		"in a list":            "machine:\n  network:\n    interfaces:\n      - interface: eth0\n        $patch: delete\n",
		"below a list":         "machine:\n  network:\n    interfaces:\n      - interface: eth0\n        dhcpOptions:\n          $patch: delete\n",
		"a boolean":            "machine:\n  install:\n    $patch: true\n",
		"a mapping":            "machine:\n  install:\n    $patch: {delete: now}\n",
		"through an alias":     "machine:\n  sysctls: &gone\n    $patch: delete\n  sysfs: *gone\n",
		"through a merge":      "machine:\n  install:\n    <<: {$patch: delete}\n",
		"a document with more": "apiVersion: v1alpha1\nkind: HostnameConfig\n$patch: delete\nauto: stable\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := expect(t, wire.Class_CLASS_DIRECTIVE, render.Check(wire.Source_SOURCE_FRAGMENT, patch)); got.GetLine() == 0 {
				t.Fatal("no line")
			}

			refusedAs(t, wire.Class_CLASS_DIRECTIVE, small, patch)
		})
	}

	// Control: the machinery itself stores the first of them as a label.
	patch, err := configpatcher.LoadPatch([]byte("machine:\n  nodeLabels:\n    $patch: replace\n"))
	if err != nil {
		t.Fatal(err)
	}

	out, err := configpatcher.Apply(configpatcher.WithBytes([]byte(small)), []configpatcher.Patch{patch})
	if err != nil {
		t.Fatal(err)
	}

	text, err := out.Bytes()
	if err != nil {
		t.Fatal(err)
	}

	holds(t, string(text), "$patch: replace")
}

func TestADeleteRemovesAKeyAndADocument(t *testing.T) {
	base := small + "  sysctls:\n    a: b\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n"
	out := composed(t, base, "machine:\n  sysctls:\n    $patch: delete\n",
		"apiVersion: v1alpha1\nkind: HostnameConfig\n$patch: delete\n")
	lacks(t, out, "sysctls")
	lacks(t, out, "HostnameConfig")

	got := refusedAs(t, wire.Class_CLASS_MERGE, base, "machine:\n  sysctls:\n    nosuch:\n      $patch: delete\n")
	if !strings.Contains(got.GetMessage(), "lookup failed") {
		t.Fatal("the machinery's message is not carried")
	}
}

func TestT18NoTextIsReadAsAFileName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "patch.yaml")
	if err := os.WriteFile(file, []byte("machine:\n  token: from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, text := range []string{"@" + file, file} {
		_, err := guardedCompose(small, []string{text})
		if err == nil {
			t.Fatal("a file name composes")
		}

		lacks(t, message(err), "from-a-file")
	}

	// Control: the call that is not used does open the file.
	if _, err := configpatcher.LoadPatches([]string{"@" + file}); err != nil {
		t.Fatal(err)
	}
}

func TestT19EncodingDropsEmptyCollections(t *testing.T) {
	out := composed(t, small+"  files: []\n  env: {}\n  disks: []\n  udev:\n    rules: []\n")
	for _, gone := range []string{"files", "env", "disks", "rules"} {
		lacks(t, out, gone+":")
	}
}

func TestT20SecretBytesAreListedAsBase64AndFilesAreNotListed(t *testing.T) {
	text := small + "  ca:\n    crt: Y2VydA==\n    key: a2V5\n  files:\n    - content: hunter2\n      permissions: 0o600\n      path: /a\n      op: create\n"

	fields, err := render.SecretFields(wire.Source_SOURCE_BASE, text)
	if err != nil {
		t.Fatal(err)
	}

	got := places(fields)
	want := "0/machine/ca/key:PLACEMENT_BASE64 0/machine/token:PLACEMENT_TEXT"

	if got != want {
		t.Fatalf("%s", got)
	}
}

func TestT26ADocumentNamedAfterAnIdentityKeyIsRefused(t *testing.T) {
	for _, name := range []string{"kind", "apiVersion"} {
		_, err := guardedCompose(small+"---\nname: "+name+"\napiVersion: v1alpha1\nkind: ExtensionServiceConfig\n", nil)
		if err == nil {
			t.Fatal("it loads")
		}
	}
}

func TestT27KeysPerMappingAreLimitedBeforeTheMachineryLoads(t *testing.T) {
	var text strings.Builder

	text.WriteString(small + "  sysctls:\n")

	for i := range limits.MappingKeys + 1 {
		fmt.Fprintf(&text, "    key-%05d: \"1\"\n", i)
	}

	got := refusedAs(t, wire.Class_CLASS_TOO_MANY_KEYS, text.String())
	if got.GetLine() != 6 {
		t.Fatalf("line %d", got.GetLine())
	}

	refusedAs(t, wire.Class_CLASS_INPUT_TOO_LARGE, small+"# "+strings.Repeat("x", limits.InputBytes))
}

func TestT28DepthIsLimitedAndOutputIsEstimatedBeforeItIsEncoded(t *testing.T) {
	deep := small + "  kubelet:\n    extraConfig:\n      a: " + strings.Repeat("{a: ", 9000) + strings.Repeat("}", 9000) + "\n"
	refusedAs(t, wire.Class_CLASS_TOO_DEEP, deep)

	// Within the depth, but every element is indented by it.
	wide := small + "  kubelet:\n    extraConfig:\n      a: " + strings.Repeat("{a: ", 80) + "[" + strings.Repeat("1,", 100_000) + "1]" + strings.Repeat("}", 80) + "\n"
	refusedAs(t, wire.Class_CLASS_OUTPUT_TOO_LARGE, wide)

	// Aliases count as what they stand for.
	var bomb strings.Builder

	bomb.WriteString(small + "  kubelet:\n    extraConfig:\n      a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")

	for i := 1; i < 9; i++ {
		fmt.Fprintf(&bomb, "      a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}

	refusedAs(t, wire.Class_CLASS_OUTPUT_TOO_LARGE, bomb.String())
}

func TestAGeneratedConfigurationIsComposedToTheBytesTheMachineryGivesAlone(t *testing.T) {
	for _, kind := range []machine.Type{machine.TypeControlPlane, machine.TypeWorker} {
		base := generated(t, kind, encoder.CommentsAll)
		patches := []string{
			"machine:\n  nodeLabels:\n    site: north\n",
			"apiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\nhostname: one\n",
			"machine:\n  install:\n    $patch: delete\n",
		}

		var loaded []configpatcher.Patch

		for _, patch := range patches {
			one, err := configpatcher.LoadPatch([]byte(patch))
			if err != nil {
				t.Fatal(err)
			}

			loaded = append(loaded, one)
		}

		out, err := configpatcher.Apply(configpatcher.WithBytes([]byte(base)), loaded)
		if err != nil {
			t.Fatal(err)
		}

		native, err := out.Bytes()
		if err != nil {
			t.Fatal(err)
		}

		if got := composed(t, base, patches...); got != string(native) {
			t.Fatal("the bytes differ")
		}
	}
}

func TestALocalTagReachesNoComposition(t *testing.T) {
	got := refusedAs(t, wire.Class_CLASS_LOCAL_TAG, small, "machine:\n  token: !bwref some/name\n")
	if got.GetFragment() != 0 || got.GetLine() != 2 {
		t.Fatalf("place: %v", got.GetLine())
	}

	expect(t, wire.Class_CLASS_LOCAL_TAG, render.Check(wire.Source_SOURCE_FRAGMENT, "machine:\n  token: !other x\n"))

	if err := render.Check(wire.Source_SOURCE_FRAGMENT, "machine:\n  token: !bwref some/name\n"); err != nil {
		t.Fatal(err)
	}
}
