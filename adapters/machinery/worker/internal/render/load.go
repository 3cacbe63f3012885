package render

import (
	"errors"
	"strings"

	jsonpatch "github.com/evanphx/json-patch"
	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	yaml "go.yaml.in/yaml/v4"

	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/tree"
	"bronzeward/renderer-worker/internal/wire"
)

// referenceTag is the one local tag sources may hold (IC 5.1).
const referenceTag = "!bwref"

// source is a text that has been parsed and held to the limits: nothing reaches
// the machinery in another way.
type source struct {
	text      string
	documents []*yaml.Node
}

// resolved reads a text that must hold no local tag: what composition takes.
func resolved(text string) (*source, error) {
	documents, err := tree.Parse(text)
	if err != nil {
		return nil, err
	}

	for i, document := range documents {
		if n := findLocalTag(document, ""); n != nil {
			return nil, refusal.New(wire.Class_CLASS_LOCAL_TAG).In(i).At(n.Line)
		}
	}

	return &source{text: text, documents: documents}, nil
}

// complete reads a configuration that is loaded as a base: like resolved, without the
// tree where the text alone shows that no limit can be met.
func complete(text string) (*source, error) {
	if tree.Within(text) {
		return &source{text: text}, nil
	}

	return resolved(text)
}

// unresolved reads a text whose references stand as nulls for the machinery
// (IC 2.3 step 4).
func unresolved(text string) (*source, error) {
	documents, err := tree.Parse(text)
	if err != nil {
		return nil, err
	}

	found := false

	for i, document := range documents {
		if n := findLocalTag(document, referenceTag); n != nil {
			return nil, refusal.New(wire.Class_CLASS_LOCAL_TAG).In(i).At(n.Line)
		}

		found = nullReferences(document) || found
	}

	if found {
		if text, err = tree.Write(documents); err != nil {
			return nil, err
		}
	}

	return &source{text: text, documents: documents}, nil
}

var coreTags = map[string]bool{
	"!!null": true, "!!bool": true, "!!str": true, "!!int": true, "!!float": true, "!!timestamp": true,
	"!!seq": true, "!!map": true, "!!binary": true, "!!merge": true, "": true,
}

// findLocalTag finds a node whose tag is neither YAML's own nor the allowed one. A
// key may carry no local tag at all.
func findLocalTag(n *yaml.Node, allowed string) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return nil
	}

	if tag := n.ShortTag(); n.Kind != yaml.DocumentNode && !coreTags[tag] && tag != allowed {
		return n
	}

	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && !coreTags[child.ShortTag()] {
			return child
		}

		if found := findLocalTag(child, allowed); found != nil {
			return found
		}
	}

	return nil
}

// nullReferences turns each reference into a null that keeps its anchor.
func nullReferences(n *yaml.Node) bool {
	found := false

	if n.Tag == referenceTag {
		n.Kind, n.Tag, n.Style, n.Value, n.Content = yaml.ScalarNode, "!!null", 0, "null", nil
		found = true
	}

	for _, child := range n.Content {
		found = nullReferences(child) || found
	}

	return found
}

// loadBase loads a complete configuration.
func loadBase(s *source) (coreconfig.Provider, error) {
	provider, err := configloader.NewFromBytes([]byte(s.text))
	if err != nil {
		return nil, loadRefusal(err)
	}

	return provider, nil
}

// loadFragment loads a strategic-merge fragment and nothing else. LoadPatch takes
// text only; its sibling LoadPatches opens files (T18).
func loadFragment(s *source) (configpatcher.StrategicMergePatch, error) {
	if err := checkDirectives(s.documents); err != nil {
		return nil, err
	}

	patch, err := configpatcher.LoadPatch([]byte(s.text))
	if err != nil {
		return nil, loadRefusal(err)
	}

	switch patch := patch.(type) {
	case configpatcher.StrategicMergePatch:
		return patch, nil
	case jsonpatch.Patch:
		// An empty text loads as an empty JSON patch (T16).
		if len(patch) == 0 {
			return nil, refusal.New(wire.Class_CLASS_EMPTY_FRAGMENT)
		}
	}

	return nil, refusal.New(wire.Class_CLASS_JSON_PATCH)
}

// loadRefusal classifies the loader's errors. The loader recovers panics itself
// and puts their text into its error: that text is withheld like any panic's.
func loadRefusal(err error) *refusal.Refusal {
	if strings.HasPrefix(err.Error(), "recovered: ") {
		return refusal.New(wire.Class_CLASS_PANICKED)
	}

	out := refusal.New(wire.Class_CLASS_LOAD).Saying(err)

	var construct *yaml.LoadErrors
	if errors.As(err, &construct) && len(construct.Errors) > 0 {
		out.At(construct.Errors[0].Line)
	}

	return out
}

// Check loads a text as composition would load it.
func Check(kind wire.Source, text string) error {
	s, err := unresolved(text)
	if err != nil {
		return err
	}

	if kind == wire.Source_SOURCE_BASE {
		_, err = loadBase(s)

		return err
	}

	_, err = loadFragment(s)

	return err
}
