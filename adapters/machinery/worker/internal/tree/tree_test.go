package tree_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"

	"bronzeward/renderer-worker/internal/limits"
	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/tree"
	"bronzeward/renderer-worker/internal/wire"
)

// again parses a text, carries it over the wire form and writes it.
func again(t *testing.T, text string) string {
	t.Helper()

	documents, err := tree.Parse(text)
	if err != nil {
		t.Fatalf("parse: %v\n%s", err, text)
	}

	flat, err := tree.ToWire(documents)
	if err != nil {
		t.Fatal(err)
	}

	built, err := tree.FromWire(flat)
	if err != nil {
		t.Fatal(err)
	}

	out, err := tree.Write(built)
	if err != nil {
		t.Fatalf("write: %v\n%s", err, text)
	}

	return out
}

// decoded is what a typed consumer reads of a text.
func decoded(t *testing.T, text string) []any {
	t.Helper()

	var out []any

	decoder := yaml.NewDecoder(strings.NewReader(text))

	for {
		var value any
		if err := decoder.Decode(&value); err != nil {
			return out
		}

		out = append(out, value)
	}
}

// comments lists a text's comments, sorted: the encoder may move one by a blank line.
func comments(text string) []string {
	var out []string

	for line := range strings.Lines(text) {
		if at := strings.Index(line, "# c"); at >= 0 {
			out = append(out, strings.TrimSpace(line[at:]))
		}
	}

	slices.Sort(out)

	return out
}

// covers-part: IC-ING-5 (generated texts)
func TestGeneratedTextsAreAFixedPointThatDecodesToTheSameValuesAndKeepsComments(t *testing.T) {
	for seed := range uint64(400) {
		text := randomText(rand.New(rand.NewPCG(seed, 1)))

		first := again(t, text)
		if second := again(t, first); second != first {
			t.Fatalf("seed %d is no fixed point:\n%s\n---- then\n%s\n---- then\n%s", seed, text, first, second)
		}

		if before, after := decoded(t, text), decoded(t, first); !reflect.DeepEqual(before, after) {
			t.Fatalf("seed %d decodes to other values:\n%s\n---- then\n%s", seed, text, first)
		}

		if before, after := comments(text), comments(first); !slices.Equal(before, after) {
			t.Fatalf("seed %d: comments %q became %q\n%s\n----\n%s", seed, before, after, text, first)
		}
	}
}

// randomText writes YAML of every construct the tree keeps.
func randomText(r *rand.Rand) string {
	var out strings.Builder

	w := writer{r: r, out: &out}
	footed := false

	for i := range 1 + r.IntN(3) {
		if i > 0 {
			out.WriteString("---\n")
		}

		w.anchors = 0

		// The library drops the comment that ends a document when the next one begins
		// with a comment as well (see Parse).
		if r.IntN(3) == 0 && !footed {
			w.comment("")
			out.WriteString("\n")
		}

		w.mapping("", 0)

		if footed = r.IntN(4) == 0; footed {
			out.WriteString("\n")
			w.comment("")
		}
	}

	return out.String()
}

type writer struct {
	r       *rand.Rand
	out     *strings.Builder
	anchors int
	notes   int
	keys    int
}

func (w *writer) comment(indent string) {
	w.notes++
	fmt.Fprintf(w.out, "%s# c%d\n", indent, w.notes)
}

func (w *writer) key() string {
	w.keys++

	forms := []string{"key-%d", "\"quoted %d\"", "'single/%d~x'", "example.test/role.%d", "%d"}

	return fmt.Sprintf(forms[w.r.IntN(len(forms))], w.keys)
}

func (w *writer) mapping(indent string, depth int) {
	for range 1 + w.r.IntN(4) {
		if w.r.IntN(5) == 0 {
			w.comment(indent)
		}

		fmt.Fprintf(w.out, "%s%s:", indent, w.key())
		w.value(indent, depth)
	}
}

func (w *writer) value(indent string, depth int) {
	if depth < 4 && w.r.IntN(3) == 0 {
		w.out.WriteString(w.anchor() + "\n")

		if w.r.IntN(2) == 0 {
			w.mapping(indent+"  ", depth+1)
		} else {
			w.sequence(indent+"  ", depth+1)
		}

		return
	}

	w.scalar(indent)
}

func (w *writer) sequence(indent string, depth int) {
	for range 1 + w.r.IntN(3) {
		w.out.WriteString(indent + "-")

		if depth < 4 && w.r.IntN(3) == 0 {
			fmt.Fprintf(w.out, " %s:", w.key())
			w.value(indent+"  ", depth+1)
			w.mapping(indent+"  ", depth+1)

			continue
		}

		w.scalar(indent + "  ")
	}
}

// anchor names a node now and then; names are used again, as YAML allows.
func (w *writer) anchor() string {
	if w.r.IntN(4) != 0 {
		return ""
	}

	w.anchors++

	return fmt.Sprintf(" &a%d", w.anchors)
}

func (w *writer) scalar(indent string) {
	if w.anchors > 0 && w.r.IntN(8) == 0 {
		// An alias of the innermost open collection would be refused.
		fmt.Fprintf(w.out, " %s\n", pick(w.r, "null", "~", "x"))

		return
	}

	forms := []string{
		"plain text", "yes", "0123", "1.10", "1_000", "0x1f", "true", "null", "~", "2026-01-02", "12345678901234567890123",
		"\"a \\\"double\\\" \\t one\"", "'it''s single'", "\"\"", "!!str 12", "!!binary aGVsbG8=", "[a, {b: c}, 1]", "{a: [1, 2], b: x}",
		"https://user@host.test:6443/p?q=1", "- dash", "&b" + fmt.Sprint(w.keys) + " anchored", "!bwref some/name", ".5", "1e3", "<<",
		strings.Repeat("long words ", 30) + "end",
	}
	form := forms[w.r.IntN(len(forms))]

	if form == "- dash" {
		form = "'- dash'"
	}

	switch w.r.IntN(8) {
	case 0:
		fmt.Fprintf(w.out, " %s\n%s  first line\n%s    deeper\n\n%s  last\n", pick(w.r, "|", "|-", "|+"), indent, indent, indent)
	case 1:
		fmt.Fprintf(w.out, " %s\n%s  folded words\n%s  of one line\n\n%s  and another\n", pick(w.r, ">", ">-"), indent, indent, indent)
	case 2:
		w.notes++
		fmt.Fprintf(w.out, " %s # c%d\n", form, w.notes)
	default:
		fmt.Fprintf(w.out, " %s\n", form)
	}
}

func pick(r *rand.Rand, forms ...string) string { return forms[r.IntN(len(forms))] }

func TestAliasesMergesAndLocalTagsAreKept(t *testing.T) {
	text := "a: &x\n  b: 1\nc: *x\nd:\n  <<: *x\n  e: !bwref some/name\nf: [*x, *x]\n"
	if got := again(t, text); got != text {
		t.Fatalf("%s", got)
	}
}

// covers-part: IC-ING-6 (duplicate keys, keys that are not scalars)
func TestRefusalsNameAClassADocumentAndALine(t *testing.T) {
	deep := strings.Repeat("[", limits.Depth+1) + strings.Repeat("]", limits.Depth+1)

	for text, want := range map[string]struct {
		class wire.Class
		line  uint32
	}{
		"a: 1\nb: 2\na: 3\n":                              {wire.Class_CLASS_DUPLICATE_KEY, 3},
		"a: 1\n---\nb: {c: 1, \"c\": 2}\n":                {wire.Class_CLASS_DUPLICATE_KEY, 3},
		"1: a\n\"1\": b\n":                                {wire.Class_CLASS_DUPLICATE_KEY, 2},
		"x: &k name\n*k : 1\nname: 2\n":                   {wire.Class_CLASS_DUPLICATE_KEY, 3},
		"a: 1\n? [b]\n: 2\n":                              {wire.Class_CLASS_KEY_NOT_SCALAR, 2},
		"x: &k [a]\n*k : 1\n":                             {wire.Class_CLASS_KEY_NOT_SCALAR, 2},
		"a: 1\n b: 2\n":                                   {wire.Class_CLASS_SYNTAX, 2},
		"a: \"secret-line 99\n":                           {wire.Class_CLASS_SYNTAX, 1},
		"a: *nowhere\n":                                   {wire.Class_CLASS_ALIAS, 1},
		"a: &x\n  b: *x\n":                                {wire.Class_CLASS_ALIAS, 2},
		"a: " + deep + "\n":                               {wire.Class_CLASS_TOO_DEEP, 1},
		"a: " + strings.Repeat("[", 10_001):               {wire.Class_CLASS_TOO_DEEP, 1},
		strings.Repeat("---\na: 1\n", limits.Documents+1): {wire.Class_CLASS_TOO_MANY_DOCUMENTS, 0},
	} {
		_, err := tree.Parse(text)

		var got *refusal.Refusal
		if !errors.As(err, &got) || got.Wire().GetClass() != want.class {
			t.Fatalf("%.40q: %v", text, err)
		}

		if got.Wire().GetMessage() != "" {
			t.Fatalf("%.40q: a text is told", text)
		}

		if want.line != 0 && got.Wire().GetLine() != want.line {
			t.Errorf("%.40q: line %d", text, got.Wire().GetLine())
		}
	}
}

func TestATreeThatNoTextReadsBackAsIsRefused(t *testing.T) {
	scalar := func(tag, text string) *wire.Tree {
		return &wire.Tree{Documents: []*wire.Document{{Nodes: []*wire.Node{
			{Kind: wire.Kind_KIND_MAPPING, Tag: "!!map", Children: 2},
			{Kind: wire.Kind_KIND_SCALAR, Tag: "!!str", Text: "k"},
			{Kind: wire.Kind_KIND_SCALAR, Tag: tag, Text: text},
		}}}}
	}

	for _, text := range []string{"true", "12", "null", "", " padded ", "a: b", "# no comment", "- x", "line\nline\n", "tab\tand\u2028more", "\u0007", "!bwref x", "<<", "~"} {
		documents, err := tree.FromWire(scalar("!!str", text))
		if err != nil {
			t.Fatal(err)
		}

		written, err := tree.Write(documents)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}

		if got := decoded(t, written)[0].(map[string]any)["k"]; got != text {
			t.Fatalf("%q became %q", text, got)
		}
	}

	for _, bad := range []*wire.Tree{
		{Documents: []*wire.Document{{Nodes: []*wire.Node{{Kind: wire.Kind_KIND_ALIAS, Text: "nowhere"}}}}},
		{Documents: []*wire.Document{{Nodes: []*wire.Node{{Kind: wire.Kind_KIND_MAPPING, Tag: "!!map", Children: 1}}}}},
		{Documents: []*wire.Document{{}}},
	} {
		documents, err := tree.FromWire(bad)
		if err == nil {
			var text string
			if text, err = tree.Write(documents); err == nil {
				t.Fatalf("written as %q", text)
			}
		}

		var got *refusal.Refusal
		if !errors.As(err, &got) {
			t.Fatal(err)
		}
	}
}

// covers-part: IC-CMP-4 (how embedded yaml and json documents are written)
func TestEmbeddedDocumentsAreWrittenInTheirFormats(t *testing.T) {
	for _, one := range []struct {
		format     wire.Format
		text, want string
	}{
		{wire.Format_FORMAT_EMBEDDED_JSON, "{\"b\": [1, 1.10, true, null], \"a\": \"<&>\"}", "{\"a\":\"\\u003c\\u0026\\u003e\",\"b\":[1,1.10,true,null]}\n"},
		{wire.Format_FORMAT_EMBEDDED_JSON, "{\"endpoint\": \"https://a\", \"token\": x}\n", "{\"endpoint\":\"https://a\",\"token\":\"x\"}\n"},
		{wire.Format_FORMAT_EMBEDDED_JSON, "{\"a\": \"\\/\\ud83d\\ude00\", \"n\": 12345678901234567890123}", "{\"a\":\"/\U0001F600\",\"n\":12345678901234567890123}\n"},
		{wire.Format_FORMAT_EMBEDDED_JSON, "a: 2026-01-02\nb: 0x1f\n", "{\"a\":\"2026-01-02\",\"b\":31}\n"},
		{wire.Format_FORMAT_EMBEDDED_YAML, "b:    1\na:\n- x\n", "b: 1\na:\n  - x\n"},
	} {
		documents, err := tree.ParseEmbedded(one.format, one.text)
		if err != nil {
			t.Fatalf("%q: %v", one.text, err)
		}

		got, err := tree.WriteEmbedded(one.format, documents)
		if err != nil {
			t.Fatalf("%q: %v", one.text, err)
		}

		if got != one.want {
			t.Errorf("%q became %q", one.text, got)
		}
	}

	for text, class := range map[string]wire.Class{
		"a: 1\n---\nb: 2\n":      wire.Class_CLASS_NOT_ONE_DOCUMENT,
		"":                       wire.Class_CLASS_NOT_ONE_DOCUMENT,
		"{\"a\": 1, \"a\": 2}":   wire.Class_CLASS_DUPLICATE_KEY,
		"{\"a\": \"\\ud83d x\"}": wire.Class_CLASS_SYNTAX,
		"a: .inf":                wire.Class_CLASS_NOT_JSON,
		"a: {<<: {b: 1}}":        wire.Class_CLASS_NOT_JSON,
		"1: a":                   wire.Class_CLASS_NOT_JSON,
		"a: !!binary aGVsbG8=":   wire.Class_CLASS_NOT_JSON,
	} {
		documents, err := tree.ParseEmbedded(wire.Format_FORMAT_EMBEDDED_JSON, text)
		if err == nil {
			_, err = tree.WriteEmbedded(wire.Format_FORMAT_EMBEDDED_JSON, documents)
		}

		var got *refusal.Refusal
		if !errors.As(err, &got) || got.Wire().GetClass() != class {
			t.Errorf("%q: %v", text, err)
		}
	}
}
