package render

import (
	yaml "go.yaml.in/yaml/v4"

	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/wire"
)

const directiveKey = "$patch"

// checkDirectives refuses every `$patch` the machinery would read differently from
// how it looks (IC 2.3 step 4, facts 5.5): another word than delete, which it
// would store as a literal (T17); a mapping that holds more than the directive,
// whose rest it would drop unloaded; a directive in a list, whose selector it
// would drop unloaded; and one reached by an alias or a merge, which it ignores.
func checkDirectives(documents []*yaml.Node) error {
	for i, document := range documents {
		if n := misused(document.Content[0], place{root: true}); n != nil {
			return refusal.New(wire.Class_CLASS_DIRECTIVE).In(i).At(n.Line)
		}
	}

	return nil
}

type place struct {
	root, inList, inMerge bool
}

func misused(n *yaml.Node, at place) *yaml.Node {
	switch n.Kind {
	case yaml.AliasNode:
		if holdsDirective(n.Alias) {
			return n
		}

		return nil
	case yaml.SequenceNode:
		at.root, at.inList = false, true

		for _, child := range n.Content {
			if found := misused(child, at); found != nil {
				return found
			}
		}

		return nil
	case yaml.MappingNode:
	default:
		return nil
	}

	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]

		if isDirective(key) {
			if !wellFormed(n, value, at) {
				return key
			}

			continue
		}

		inside := place{inList: at.inList, inMerge: at.inMerge || key.Value == "<<"}
		if found := misused(value, inside); found != nil {
			return found
		}
	}

	return nil
}

// isDirective also meets an alias of that name or to such a key: the machinery
// compares the node's text alone.
func isDirective(key *yaml.Node) bool {
	return key.Value == directiveKey || key.Kind == yaml.AliasNode && key.Alias.Value == directiveKey
}

func wellFormed(mapping, value *yaml.Node, at place) bool {
	if at.inList || at.inMerge || value.Kind != yaml.ScalarNode || value.Value != "delete" || value.ShortTag() != "!!str" {
		return false
	}

	for i := 0; i+1 < len(mapping.Content); i += 2 {
		switch key := mapping.Content[i].Value; {
		case isDirective(mapping.Content[i]):
		case at.root && (key == "apiVersion" || key == "kind" || key == "name"):
			if mapping.Content[i+1].Kind != yaml.ScalarNode {
				return false
			}
		default:
			return false
		}
	}

	return true
}

func holdsDirective(n *yaml.Node) bool {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && isDirective(child) {
			return true
		}

		if holdsDirective(child) {
			return true
		}
	}

	return false
}
