package tree_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"

	"bronzeward/renderer-worker/internal/limits"
	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/tree"
	"bronzeward/renderer-worker/internal/wire"
)

func TestATextWithinIsParsedWithinTheLimitsAndHoldsNoTagAnchorOrAlias(t *testing.T) {
	within := 0

	for seed := range uint64(2000) {
		text := randomText(rand.New(rand.NewPCG(seed, 2)))
		if seed%2 == 0 {
			// Half of them without what is never within.
			text = strings.NewReplacer("!!str ", "", "!!binary ", "", "!bwref ", "", " &", " and ", " *", " at ").Replace(text)
		}

		if !tree.Within(text) {
			continue
		}

		documents, err := tree.Parse(text)
		if err != nil {
			// What is no YAML at all is the loader's to refuse.
			var r *refusal.Refusal
			if errors.As(err, &r) && r.Wire().GetClass() == wire.Class_CLASS_SYNTAX {
				continue
			}

			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}

		for _, document := range documents {
			plain(t, document)
		}

		within++
	}

	if within < 200 {
		t.Fatalf("only %d texts were within", within)
	}
}

func plain(t *testing.T, n *yaml.Node) {
	t.Helper()

	if n.Anchor != "" || n.Kind == yaml.AliasNode || n.Style&yaml.TaggedStyle != 0 {
		t.Fatalf("line %d", n.Line)
	}

	for _, child := range n.Content {
		plain(t, child)
	}
}

func TestATextOverALimitIsNeverWithin(t *testing.T) {
	var keys, compact, nested strings.Builder

	for i := range limits.MappingKeys + 1 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}

	for i := range limits.Depth {
		fmt.Fprintf(&nested, "%sk:\n", strings.Repeat(" ", i))
	}

	// Two levels for each column: a sequence stands where its mapping does.
	for i := range limits.Depth / 2 {
		fmt.Fprintf(&compact, "%sk:\n%s- \n", strings.Repeat(" ", i), strings.Repeat(" ", i))
	}

	for name, text := range map[string]string{
		"keys":      keys.String(),
		"flow":      "a: " + strings.Repeat("[", limits.Depth+1) + strings.Repeat("]", limits.Depth+1),
		"nested":    nested.String(),
		"compact":   compact.String(),
		"dashes":    strings.Repeat("- ", limits.Depth) + "x",
		"questions": strings.Repeat("? ", limits.Depth) + "x",
		"documents": strings.Repeat("---\na\n", limits.Documents+1),
		"size":      strings.Repeat("x", limits.InputBytes+1),
		"output":    "a:\n" + strings.Repeat(" ", 40) + "- x\n" + strings.Repeat(strings.Repeat(" ", 40)+"- y\n", 90_000),
		"tag":       "a: !bwref x",
		"anchor":    "a: &x 1",
		"alias":     "a: 1\n*b : 2",
		"directive": "%TAG ! tag:x,2000:\n---\na: 1\n",
		"return":    "a:\r  b: 1",
		"separator": "a: 1\u2028b: 2",
		"utf-16":    "\xff\xfea\x00",
	} {
		if tree.Within(text) {
			t.Errorf("%s", name)
		}
	}
}
