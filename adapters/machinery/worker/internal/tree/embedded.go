package tree

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"

	"bronzeward/renderer-worker/internal/limits"
	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/wire"
)

// ParseEmbedded reads one embedded document (IC 5.4). A JSON document is read as
// YAML, since an author may put a tagged value into it; text that is JSON is read
// by the JSON library, which knows escapes that YAML does not.
func ParseEmbedded(format wire.Format, text string) ([]*yaml.Node, error) {
	if format == wire.Format_FORMAT_EMBEDDED_JSON && len(text) <= limits.InputBytes && json.Valid([]byte(text)) {
		return parseJSON(text)
	}

	documents, err := Parse(text)
	if err != nil {
		return nil, err
	}

	if len(documents) != 1 {
		return nil, refusal.New(wire.Class_CLASS_NOT_ONE_DOCUMENT)
	}

	return documents, nil
}

// WriteEmbedded writes one embedded document: YAML indented by two, JSON compact
// with sorted keys, HTML escapes and a final newline.
func WriteEmbedded(format wire.Format, documents []*yaml.Node) (string, error) {
	if len(documents) != 1 {
		return "", refusal.New(wire.Class_CLASS_NOT_ONE_DOCUMENT)
	}

	if format == wire.Format_FORMAT_EMBEDDED_YAML {
		return Write(documents)
	}

	// Also for JSON: holds the tree to the limits and to having a text at all.
	if _, err := Write(documents); err != nil {
		return "", err
	}

	value, err := jsonValue(documents[0].Content[0])
	if err != nil {
		return "", err
	}

	var out bounded

	if err := json.NewEncoder(&out).Encode(value); err != nil {
		if errors.Is(err, errFull) {
			return "", refusal.New(wire.Class_CLASS_OUTPUT_TOO_LARGE)
		}

		return "", refusal.New(wire.Class_CLASS_NOT_JSON)
	}

	return out.String(), nil
}

// jsonNumber is JSON's own grammar: a number written so is passed on as written,
// so that no digit changes.
var jsonNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$`)

func jsonValue(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return jsonValue(n.Alias)
	case yaml.SequenceNode:
		if n.ShortTag() != "!!seq" {
			return nil, notJSON(n)
		}

		list := make([]any, 0, len(n.Content))

		for _, child := range n.Content {
			value, err := jsonValue(child)
			if err != nil {
				return nil, err
			}

			list = append(list, value)
		}

		return list, nil
	case yaml.MappingNode:
		return jsonObject(n)
	case yaml.ScalarNode:
		return jsonScalar(n)
	case yaml.DocumentNode, yaml.StreamNode:
	}

	return nil, notJSON(n)
}

func jsonObject(n *yaml.Node) (any, error) {
	if n.ShortTag() != "!!map" {
		return nil, notJSON(n)
	}

	object := make(map[string]any, len(n.Content)/2)

	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}

		// A merge key or a number has no form as a JSON key.
		if key.Kind != yaml.ScalarNode || tagOf(key) != strTag {
			return nil, notJSON(n.Content[i])
		}

		value, err := jsonValue(n.Content[i+1])
		if err != nil {
			return nil, err
		}

		object[key.Value] = value
	}

	return object, nil
}

func jsonScalar(n *yaml.Node) (any, error) {
	switch tagOf(n) {
	case strTag, "!!timestamp":
		// Only the text of a date is in the document; JSON has no other form for it.
		return n.Value, nil
	case nullTag:
		return nil, nil
	case "!!bool":
		var value bool
		if err := n.Decode(&value); err != nil {
			return nil, notJSON(n)
		}

		return value, nil
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			return json.Number(n.Value), nil
		}

		return jsonOtherNumber(n)
	}

	return nil, notJSON(n)
}

// jsonOtherNumber reads the forms that YAML has and JSON has not: 0x1f, 1_000, .5
func jsonOtherNumber(n *yaml.Node) (any, error) {
	var signed int64
	if n.Decode(&signed) == nil {
		return signed, nil
	}

	var unsigned uint64
	if n.Decode(&unsigned) == nil {
		return unsigned, nil
	}

	var float float64
	if tagOf(n) == "!!float" && n.Decode(&float) == nil && !math.IsInf(float, 0) && !math.IsNaN(float) {
		return float, nil
	}

	return nil, notJSON(n)
}

func notJSON(n *yaml.Node) error {
	return refusal.New(wire.Class_CLASS_NOT_JSON).In(0).At(n.Line)
}

// halfPair finds an escape that may be half of a surrogate pair: the JSON library
// would replace a lone one silently.
var halfPair = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

func parseJSON(text string) ([]*yaml.Node, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()

	read := jsonReader{decoder: decoder, text: text, halves: halfPair.MatchString(text)}

	root, err := read.value(0)
	if err != nil {
		return nil, err
	}

	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, refusal.New(wire.Class_CLASS_NOT_ONE_DOCUMENT)
	}

	document := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}}

	check := checker{open: map[*yaml.Node]bool{}, sizes: map[*yaml.Node]int{}}
	if _, err := check.node(document, 0); err != nil {
		return nil, err
	}

	return []*yaml.Node{document}, nil
}

type jsonReader struct {
	decoder *json.Decoder
	text    string
	halves  bool
}

func (r *jsonReader) refuse(class wire.Class) error {
	return refusal.New(class).In(0).At(r.line())
}

func (r *jsonReader) line() int {
	return 1 + strings.Count(r.text[:r.decoder.InputOffset()], "\n")
}

func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	if depth > limits.Depth {
		return nil, r.refuse(wire.Class_CLASS_TOO_DEEP)
	}

	token, err := r.decoder.Token()
	if err != nil {
		return nil, r.refuse(wire.Class_CLASS_SYNTAX)
	}

	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line()}

	switch token := token.(type) {
	case json.Delim:
		return r.collection(n, token, depth)
	case string:
		if r.halves && strings.ContainsRune(token, utf8.RuneError) {
			return nil, r.refuse(wire.Class_CLASS_SYNTAX)
		}

		n.Tag, n.Value, n.Style = strTag, token, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = "!!int", token.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case bool:
		n.Tag, n.Value = "!!bool", map[bool]string{true: "true", false: "false"}[token]
	case nil:
		n.Tag, n.Value = nullTag, "null"
	}

	return n, nil
}

func (r *jsonReader) collection(n *yaml.Node, open json.Delim, depth int) (*yaml.Node, error) {
	n.Kind, n.Tag, n.Style = yaml.SequenceNode, "!!seq", yaml.FlowStyle
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}

	for r.decoder.More() {
		child, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}

		n.Content = append(n.Content, child)
	}

	// The closing bracket; the text was found valid before.
	if _, err := r.decoder.Token(); err != nil {
		return nil, r.refuse(wire.Class_CLASS_SYNTAX)
	}

	return n, nil
}
