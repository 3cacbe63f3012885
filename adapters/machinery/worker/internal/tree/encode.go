package tree

import (
	"bytes"
	"errors"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"bronzeward/renderer-worker/internal/limits"
	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/wire"
)

// rewrites bounds how often a text is written again from its own parse until it no
// longer changes (IC 2.3 step 5). Two are enough for every text seen.
const rewrites = 8

// Write encodes document nodes, indented by two, so that the text is a fixed
// point and reads back as the same tree. A tree that cannot be written so is
// refused: a value must never change on its way through a text.
func Write(documents []*yaml.Node) (string, error) {
	text, read, err := writeAndRead(documents)
	if err != nil && quoteKept(documents) {
		text, read, err = writeAndRead(documents)
	}

	if err != nil {
		return "", err
	}

	for range rewrites {
		again, next, err := writeAndRead(read)
		if err != nil {
			return "", err
		}

		if again == text {
			return text, nil
		}

		text, read = again, next
	}

	return "", refusal.New(wire.Class_CLASS_UNWRITABLE)
}

func writeAndRead(documents []*yaml.Node) (string, []*yaml.Node, error) {
	text, err := writeOnce(documents)
	if err != nil {
		return "", nil, err
	}

	read, err := Parse(text)
	if err != nil {
		return "", nil, unwritable(err)
	}

	if place, ok := same(documents, read); !ok {
		return "", nil, refusal.New(wire.Class_CLASS_UNWRITABLE).In(place)
	}

	return text, read, nil
}

// quoteKept puts block scalars that end in empty lines into double quotes: before a
// comment, the encoder writes one empty line more, which would be the value's.
func quoteKept(documents []*yaml.Node) bool {
	found := false

	for _, n := range documents {
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && strings.HasSuffix(n.Value, "\n\n") {
			n.Style = n.Style&yaml.TaggedStyle | yaml.DoubleQuotedStyle
			found = true
		}

		found = quoteKept(n.Content) || found
	}

	return found
}

// unwritable keeps a refusal by a limit as it is; any other says that the encoder
// wrote what its own parser does not read.
func unwritable(err error) error {
	var r *refusal.Refusal
	if errors.As(err, &r) && r.Wire().GetClass() < wire.Class_CLASS_SYNTAX {
		return err
	}

	return refusal.New(wire.Class_CLASS_UNWRITABLE)
}

var errFull = errors.New("output limit")

// bounded takes OutputBytes and not one more.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > limits.OutputBytes {
		return 0, errFull
	}

	return b.Buffer.Write(p)
}

func writeOnce(documents []*yaml.Node) (string, error) {
	var out bounded

	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)

	for i, document := range documents {
		plainMerges(document)

		if err := encoder.Encode(document); err != nil {
			return "", writeRefusal(err).In(i)
		}
	}

	if err := encoder.Close(); err != nil {
		return "", writeRefusal(err)
	}

	return out.String(), nil
}

// plainMerges drops the tag the library gives an untagged `<<`: it would write it
// out as `!!merge <<`, and read the plain key the same way.
func plainMerges(n *yaml.Node) {
	if n.Tag == mergeTag && n.Style&yaml.TaggedStyle == 0 {
		n.Tag = ""
	}

	for _, child := range n.Content {
		plainMerges(child)
	}
}

const (
	mergeTag = "!!merge"
	nullTag  = "!!null"
	strTag   = "!!str"
)

// tagOf is a node's tag as the parser would give it.
func tagOf(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Tag == "" && n.Style == 0 && n.Value == "<<" {
		return mergeTag
	}

	return n.ShortTag()
}

func writeRefusal(err error) *refusal.Refusal {
	if errors.Is(err, errFull) || strings.Contains(err.Error(), errFull.Error()) {
		return refusal.New(wire.Class_CLASS_OUTPUT_TOO_LARGE)
	}

	return refusal.New(wire.Class_CLASS_UNWRITABLE)
}

// same compares what trees mean: kinds, tags, values, anchors and aliases, not
// styles, comments or positions. It names the first document that differs.
func same(a, b []*yaml.Node) (int, bool) {
	if len(a) != len(b) {
		return min(len(a), len(b)), false
	}

	for i := range a {
		if !sameNode(a[i], b[i]) {
			return i, false
		}
	}

	return 0, true
}

func sameNode(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Anchor != b.Anchor || len(a.Content) != len(b.Content) {
		return false
	}

	switch a.Kind {
	case yaml.ScalarNode:
		// A null is a null however it was written.
		if tagOf(a) != tagOf(b) || a.Value != b.Value && tagOf(a) != nullTag {
			return false
		}
	case yaml.AliasNode:
		if a.Value != b.Value {
			return false
		}
	case yaml.MappingNode, yaml.SequenceNode:
		if a.ShortTag() != b.ShortTag() {
			return false
		}
	case yaml.DocumentNode, yaml.StreamNode:
	}

	for i := range a.Content {
		if !sameNode(a.Content[i], b.Content[i]) {
			return false
		}
	}

	return true
}
