package render

import (
	"encoding/base64"
	"fmt"
	"strings"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	yaml "go.yaml.in/yaml/v4"

	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/tree"
	"bronzeward/renderer-worker/internal/wire"
)

// SecretFields lists what the machinery marks secret (facts 6.1), by the place in
// the text as written. It lets the machinery redact a copy and looks which leaves
// changed. A secret whose place in the text cannot be told is a refusal: it would
// otherwise be stored.
func SecretFields(kind wire.Source, text string) ([]*wire.SecretField, error) {
	s, err := unresolved(text)
	if err != nil {
		return nil, err
	}

	var provider coreconfig.Provider

	if kind == wire.Source_SOURCE_BASE {
		provider, err = loadBase(s)
	} else {
		patch, loadErr := loadFragment(s)
		if err = loadErr; err == nil {
			provider = patch.Provider()
		}
	}

	if err != nil {
		return nil, err
	}

	mark := marker(text)
	real, redacted := loaded(provider), loaded(provider.RedactSecrets(mark))

	origins, ok := originsOf(real, s.documents)
	if !ok || len(real) != len(redacted) {
		return nil, refusal.New(wire.Class_CLASS_SECRET_UNPLACED)
	}

	var fields []*wire.SecretField

	for i := range real {
		find := finder{mark: mark, document: origins[i], root: s.documents[origins[i]].Content[0]}

		if err := find.compare(real[i], redacted[i]); err != nil {
			return nil, err
		}

		fields = append(fields, find.fields...)
	}

	return fields, nil
}

// marker is a text that the input does not hold.
func marker(text string) string {
	for n := 0; ; n++ {
		if mark := fmt.Sprintf("bronzewardsecret%d", n); !strings.Contains(text, mark) {
			return mark
		}
	}
}

// loaded lists the documents that are configuration: delete selectors are not.
func loaded(provider coreconfig.Provider) []config.Document {
	var out []config.Document

	for _, document := range provider.Documents() {
		if _, ok := document.(configloader.Selector); !ok {
			out = append(out, document)
		}
	}

	return out
}

// originsOf finds each loaded document in the text. The v1alpha1 document comes
// first wherever it stood, the others keep their order (facts 5.2).
func originsOf(documents []config.Document, written []*yaml.Node) ([]int, bool) {
	legacy, others := -1, []int(nil)

	for i, document := range written {
		root := document.Content[0]

		switch {
		case root.Kind != yaml.MappingNode || member(root, directiveKey) != nil:
		case member(root, "kind") != nil:
			others = append(others, i)
		default:
			if legacy < 0 || !onlyDeletes(root) {
				legacy = i
			}
		}
	}

	out := make([]int, 0, len(documents))

	for _, document := range documents {
		if _, ok := document.(*v1alpha1.Config); ok {
			if legacy < 0 {
				return nil, false
			}

			out = append(out, legacy)

			continue
		}

		if len(others) == 0 || member(written[others[0]].Content[0], "kind").Value != document.Kind() {
			return nil, false
		}

		out = append(out, others[0])
		others = others[1:]
	}

	return out, len(others) == 0
}

// onlyDeletes tells a first v1alpha1 part that vanishes on loading (facts 5.5).
func onlyDeletes(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return false
	}

	if member(n, directiveKey) != nil {
		return true
	}

	for i := 1; i < len(n.Content); i += 2 {
		if !onlyDeletes(n.Content[i]) {
			return false
		}
	}

	return true
}

func member(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i]
		if name.Kind == yaml.AliasNode {
			name = name.Alias
		}

		if name.Value == key {
			return n.Content[i+1]
		}
	}

	return nil
}

// finder compares one document with its redacted copy.
type finder struct {
	mark     string
	document int
	root     *yaml.Node
	fields   []*wire.SecretField
}

func (f *finder) unplaced() error {
	return refusal.New(wire.Class_CLASS_SECRET_UNPLACED).In(f.document)
}

func (f *finder) compare(real, redacted config.Document) error {
	a, err := leaves(real)
	if err != nil {
		return err
	}

	b, err := leaves(redacted)
	if err != nil {
		return err
	}

	return f.walk(a, b, nil)
}

func leaves(document config.Document) (*yaml.Node, error) {
	text, err := encoder.NewEncoder(document, encoder.WithComments(encoder.CommentsDisabled)).Encode()
	if err != nil {
		return nil, refusal.New(wire.Class_CLASS_LOAD).Saying(err)
	}

	documents, err := tree.Parse(string(text))
	if err != nil {
		return nil, err
	}

	if len(documents) != 1 {
		return nil, refusal.New(wire.Class_CLASS_LOAD)
	}

	return documents[0].Content[0], nil
}

func (f *finder) walk(real, redacted *yaml.Node, path []*wire.Step) error {
	if real.Kind != redacted.Kind || len(real.Content) != len(redacted.Content) {
		return f.unplaced()
	}

	switch real.Kind {
	case yaml.ScalarNode:
		if real.Value != redacted.Value {
			return f.found(redacted.Value, path)
		}
	case yaml.SequenceNode:
		for i := range real.Content {
			step := &wire.Step{Step: &wire.Step_Index{Index: uint32(i)}}
			if err := f.walk(real.Content[i], redacted.Content[i], append(path, step)); err != nil {
				return err
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(real.Content); i += 2 {
			if real.Content[i].Value != redacted.Content[i].Value {
				return f.unplaced()
			}

			step := &wire.Step{Step: &wire.Step_Key{Key: real.Content[i].Value}}
			if err := f.walk(real.Content[i+1], redacted.Content[i+1], append(path, step)); err != nil {
				return err
			}
		}
	case yaml.DocumentNode, yaml.AliasNode, yaml.StreamNode:
		return f.unplaced()
	}

	return nil
}

func (f *finder) found(redacted string, path []*wire.Step) error {
	field := &wire.SecretField{Document: uint32(f.document)}

	switch {
	case redacted == f.mark:
		field.Placement = wire.Placement_PLACEMENT_TEXT
	case redacted == base64.StdEncoding.EncodeToString([]byte(f.mark)):
		field.Placement = wire.Placement_PLACEMENT_BASE64
	case strings.Contains(redacted, "="+f.mark):
		field.Placement = wire.Placement_PLACEMENT_URL
	default:
		return f.unplaced()
	}

	steps, ok := written(f.root, path)
	if !ok {
		return f.unplaced()
	}

	field.Steps = steps
	f.fields = append(f.fields, field)

	return nil
}

// written gives the steps by which the text itself reaches a loaded place, through
// aliases unseen. A merge key cannot stand on the way: the loader takes `<<` for an
// unknown key in every typed document, and only those hold secret fields.
func written(n *yaml.Node, path []*wire.Step) ([]*wire.Step, bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}

	if len(path) == 0 {
		return nil, n.Kind == yaml.ScalarNode
	}

	switch step := path[0].GetStep().(type) {
	case *wire.Step_Index:
		if n.Kind != yaml.SequenceNode || int(step.Index) >= len(n.Content) {
			return nil, false
		}

		return further(path[0], n.Content[step.Index], path[1:])
	case *wire.Step_Key:
		if n.Kind != yaml.MappingNode {
			return nil, false
		}

		if value := member(n, step.Key); value != nil {
			return further(path[0], value, path[1:])
		}
	}

	return nil, false
}

func further(step *wire.Step, n *yaml.Node, rest []*wire.Step) ([]*wire.Step, bool) {
	steps, ok := written(n, rest)

	return append([]*wire.Step{step}, steps...), ok
}
