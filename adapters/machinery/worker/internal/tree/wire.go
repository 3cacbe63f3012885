package tree

import (
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"

	"bronzeward/renderer-worker/internal/limits"
	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/wire"
)

var styles = map[yaml.Style]wire.Style{
	0:                      wire.Style_STYLE_PLAIN,
	yaml.SingleQuotedStyle: wire.Style_STYLE_SINGLE_QUOTED,
	yaml.DoubleQuotedStyle: wire.Style_STYLE_DOUBLE_QUOTED,
	yaml.LiteralStyle:      wire.Style_STYLE_LITERAL,
	yaml.FoldedStyle:       wire.Style_STYLE_FOLDED,
	yaml.FlowStyle:         wire.Style_STYLE_FLOW,
}

// ToWire flattens documents. The comments of a document node stand on its root: a
// root that has head or foot comments of its own (a flow collection) leaves none
// to its document node.
func ToWire(documents []*yaml.Node) (*wire.Tree, error) {
	out := &wire.Tree{}

	for i, document := range documents {
		flat := &wire.Document{}

		if len(document.Content) != 1 {
			return nil, refusal.New(wire.Class_CLASS_SYNTAX).In(i)
		}

		if !flatten(document.Content[0], &flat.Nodes) {
			return nil, refusal.New(wire.Class_CLASS_SYNTAX).In(i)
		}

		root := flat.Nodes[0]
		root.HeadComment = joinComments(document.HeadComment, root.HeadComment)
		root.FootComment = joinComments(root.FootComment, document.FootComment)

		out.Documents = append(out.Documents, flat)
	}

	return out, nil
}

func joinComments(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}

	return a + "\n\n" + b
}

// flatten answers false for a text that is not UTF-8, which protobuf cannot carry.
func flatten(n *yaml.Node, nodes *[]*wire.Node) bool {
	flat := &wire.Node{
		Style:       styles[n.Style&^yaml.TaggedStyle],
		Tag:         tagOf(n),
		Tagged:      n.Style&yaml.TaggedStyle != 0,
		Anchor:      n.Anchor,
		Text:        n.Value,
		Children:    uint32(len(n.Content)),
		HeadComment: n.HeadComment,
		LineComment: n.LineComment,
		FootComment: n.FootComment,
		Line:        uint32(n.Line),
		Column:      uint32(n.Column),
	}

	switch n.Kind {
	case yaml.ScalarNode:
		flat.Kind = wire.Kind_KIND_SCALAR
	case yaml.SequenceNode:
		flat.Kind = wire.Kind_KIND_SEQUENCE
	case yaml.MappingNode:
		flat.Kind = wire.Kind_KIND_MAPPING
	case yaml.AliasNode:
		flat.Kind = wire.Kind_KIND_ALIAS
		flat.Tag = ""
	default:
		return false
	}

	for _, text := range []string{flat.Text, flat.Tag, flat.Anchor, flat.HeadComment, flat.LineComment, flat.FootComment} {
		if !utf8.ValidString(text) {
			return false
		}
	}

	*nodes = append(*nodes, flat)

	for _, child := range n.Content {
		if !flatten(child, nodes) {
			return false
		}
	}

	return true
}

// FromWire builds document nodes, aliases bound to the anchors before them.
func FromWire(in *wire.Tree) ([]*yaml.Node, error) {
	if len(in.GetDocuments()) > limits.Documents {
		return nil, refusal.New(wire.Class_CLASS_TOO_MANY_DOCUMENTS)
	}

	documents := make([]*yaml.Node, 0, len(in.GetDocuments()))

	for i, flat := range in.GetDocuments() {
		build := builder{document: i, rest: flat.GetNodes(), anchors: map[string]*yaml.Node{}}

		root, err := build.node(0)
		if err != nil {
			return nil, err
		}

		if len(build.rest) != 0 {
			return nil, refusal.New(wire.Class_CLASS_REQUEST).In(i)
		}

		document := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}}

		// The root's comments are its document's; a flow collection and a scalar
		// are written the same either way.
		document.HeadComment, root.HeadComment = root.HeadComment, ""
		document.FootComment, root.FootComment = root.FootComment, ""

		// An empty first document would not be read back as one.
		if root.Kind == yaml.ScalarNode && root.ShortTag() == nullTag && root.Value == "" && root.Style == 0 {
			root.Value = "null"
		}

		documents = append(documents, document)
	}

	return documents, nil
}

type builder struct {
	document int
	rest     []*wire.Node
	anchors  map[string]*yaml.Node
}

func (b *builder) node(depth int) (*yaml.Node, error) {
	if len(b.rest) == 0 {
		return nil, refusal.New(wire.Class_CLASS_REQUEST).In(b.document)
	}

	if depth > limits.Depth {
		return nil, refusal.New(wire.Class_CLASS_TOO_DEEP).In(b.document)
	}

	flat := b.rest[0]
	b.rest = b.rest[1:]

	n := &yaml.Node{
		Tag:         flat.GetTag(),
		Value:       flat.GetText(),
		Anchor:      flat.GetAnchor(),
		HeadComment: flat.GetHeadComment(),
		LineComment: flat.GetLineComment(),
		FootComment: flat.GetFootComment(),
	}

	for style, name := range styles {
		if name == flat.GetStyle() {
			n.Style = style
		}
	}

	if flat.GetTagged() {
		n.Style |= yaml.TaggedStyle
	}

	switch flat.GetKind() {
	case wire.Kind_KIND_SCALAR:
		n.Kind = yaml.ScalarNode
	case wire.Kind_KIND_SEQUENCE:
		n.Kind = yaml.SequenceNode
	case wire.Kind_KIND_MAPPING:
		n.Kind = yaml.MappingNode
	case wire.Kind_KIND_ALIAS:
		n.Kind = yaml.AliasNode
		n.Tag = ""
		n.Alias = b.anchors[n.Value]
	default:
		return nil, refusal.New(wire.Class_CLASS_REQUEST).In(b.document)
	}

	if err := b.fits(n, int(flat.GetChildren())); err != nil {
		return nil, err
	}

	if n.Anchor != "" {
		b.anchors[n.Anchor] = n
	}

	for range flat.GetChildren() {
		child, err := b.node(depth + 1)
		if err != nil {
			return nil, err
		}

		n.Content = append(n.Content, child)
	}

	return n, nil
}

// fits refuses a node of a shape that no text has.
func (b *builder) fits(n *yaml.Node, children int) error {
	ok := true

	switch n.Kind {
	case yaml.ScalarNode:
		ok = children == 0
	case yaml.AliasNode:
		if n.Alias == nil {
			return refusal.New(wire.Class_CLASS_ALIAS).In(b.document)
		}

		ok = children == 0
	case yaml.MappingNode:
		ok = children%2 == 0
	case yaml.SequenceNode, yaml.DocumentNode, yaml.StreamNode:
	}

	if !ok || children > len(b.rest) {
		return refusal.New(wire.Class_CLASS_REQUEST).In(b.document)
	}

	return nil
}
