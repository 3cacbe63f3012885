// Package tree turns YAML text into trees and back with the machinery's own YAML
// library, keeping tags, anchors, aliases, styles, comments and positions. Its
// refusals name a class, a document and a line, never text.
package tree

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"bronzeward/renderer-worker/internal/limits"
	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/wire"
)

// Parse reads a stream into document nodes, within the limits: no duplicate keys,
// no keys that are not scalars, no alias inside its own anchor.
//
// Two things of a text are not kept, because the library does not keep them: the
// comments of a stream without a document, and a comment at the end of a document
// when the next document begins with a comment.
func Parse(text string) ([]*yaml.Node, error) {
	if len(text) > limits.InputBytes {
		return nil, refusal.New(wire.Class_CLASS_INPUT_TOO_LARGE)
	}

	var documents []*yaml.Node

	decoder := yaml.NewDecoder(strings.NewReader(text))

	for {
		document := &yaml.Node{}

		err := decoder.Decode(document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}

		if err != nil {
			class := wire.Class_CLASS_SYNTAX

			switch {
			case strings.Contains(err.Error(), "exceeded max depth"):
				class = wire.Class_CLASS_TOO_DEEP
			case strings.Contains(err.Error(), "unknown anchor"):
				class = wire.Class_CLASS_ALIAS
			}

			return nil, refusal.New(class).In(len(documents)).At(errorLine(err))
		}

		if len(documents) == limits.Documents {
			return nil, refusal.New(wire.Class_CLASS_TOO_MANY_DOCUMENTS)
		}

		check := checker{document: len(documents), open: map[*yaml.Node]bool{}, sizes: map[*yaml.Node]int{}}
		if _, err := check.node(document, 0); err != nil {
			return nil, err
		}

		documents = append(documents, document)
	}
}

// errorLine finds the line the library names at the start of its text. What
// follows may quote the input, so nothing further in is looked at.
func errorLine(err error) int {
	found := leadingLine.FindStringSubmatch(err.Error())
	if found == nil {
		return 0
	}

	line, _ := strconv.Atoi(found[1])

	return line
}

var leadingLine = regexp.MustCompile(`^(?:[a-z :]*? )?line ([0-9]{1,9})\b`)

// checker holds one document to the limits.
type checker struct {
	document int
	// open holds the anchored nodes around the node looked at.
	open map[*yaml.Node]bool
	// sizes holds what each anchored node would be written as, aliases expanded.
	sizes map[*yaml.Node]int
}

func (c *checker) refuse(class wire.Class, n *yaml.Node) error {
	return refusal.New(class).In(c.document).At(n.Line)
}

// node checks a node and estimates how many bytes the machinery's encoder, which
// indents by four and expands aliases, could write for it.
func (c *checker) node(n *yaml.Node, depth int) (int, error) {
	if depth > limits.Depth {
		return 0, c.refuse(wire.Class_CLASS_TOO_DEEP, n)
	}

	if n.Anchor != "" {
		c.open[n] = true
		defer delete(c.open, n)
	}

	size := 8 + 4*depth + len(n.Value) + strings.Count(n.Value, "\n")*4*depth

	if n.Kind == yaml.AliasNode {
		if c.open[n.Alias] {
			return 0, c.refuse(wire.Class_CLASS_ALIAS, n)
		}

		size += c.sizes[n.Alias]
	}

	if n.Kind == yaml.MappingNode {
		if err := c.keys(n); err != nil {
			return 0, err
		}
	}

	for _, child := range n.Content {
		more, err := c.node(child, depth+1)
		if err != nil {
			return 0, err
		}

		size += more
		if size > limits.OutputBytes {
			return 0, c.refuse(wire.Class_CLASS_OUTPUT_TOO_LARGE, n)
		}
	}

	if n.Anchor != "" {
		c.sizes[n] = size
	}

	return size, nil
}

// keys refuses two keys of one mapping that a path could not tell apart, and keys
// that no path can name. The library's own check is quadratic (T27).
func (c *checker) keys(n *yaml.Node) error {
	if len(n.Content)/2 > limits.MappingKeys {
		return c.refuse(wire.Class_CLASS_TOO_MANY_KEYS, n)
	}

	seen := make(map[string]struct{}, len(n.Content)/2)

	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}

		if key.Kind != yaml.ScalarNode {
			return c.refuse(wire.Class_CLASS_KEY_NOT_SCALAR, n.Content[i])
		}

		if _, ok := seen[key.Value]; ok {
			return c.refuse(wire.Class_CLASS_DUPLICATE_KEY, n.Content[i])
		}

		seen[key.Value] = struct{}{}
	}

	return nil
}
