package tree

import (
	"strings"

	"bronzeward/renderer-worker/internal/limits"
)

// Within answers true only for a text of which no tree can exceed a limit and that can
// hold no tag, anchor or alias: the machinery may load it without a parse of our own
// before, which would cost as much as most of the loading. It looks at bytes alone and
// counts what stands in strings and comments too, so false says nothing.
func Within(text string) bool {
	if len(text) > limits.InputBytes {
		return false
	}

	var s scan
	for i := range len(text) {
		if !s.take(text, i) {
			return false
		}
	}

	// A block level needs a column, or shares its parent's as a sequence does; a flow
	// level needs a bracket.
	depth := 2*(s.widest+2) + s.brackets
	nodes := 2*s.lines + 2*s.commas + 2*s.colons + s.escapes

	return depth <= limits.Depth && s.colons <= limits.MappingKeys && s.markers < limits.Documents &&
		len(text)+nodes*(8+4*depth) <= limits.OutputBytes
}

type scan struct {
	lines, colons, commas, brackets, escapes, markers int
	// lead counts the indicators and blanks that begin the current line.
	lead, widest int
	leading      bool
}

// take counts one byte, and refuses one that a count cannot judge.
func (s *scan) take(text string, i int) bool {
	c := text[i]

	if i == 0 || text[i-1] == '\n' {
		s.lines++
		s.lead, s.leading = 0, true

		if strings.HasPrefix(text[i:], "---") {
			s.markers++
		}
	}

	if s.leading {
		if strings.IndexByte(" \t-?:", c) >= 0 {
			s.lead++
			s.widest = max(s.widest, s.lead)
		} else {
			s.leading = false
		}
	}

	switch c {
	case ':':
		s.colons++
	case ',':
		s.commas++
	case '[', '{':
		s.brackets++
	case '\\':
		s.escapes++
	case '!', '&', '*':
		// One of these begins a tag, an anchor or an alias only at a token's begin.
		return i > 0 && strings.IndexByte(" \t\n,[{:-?", text[i-1]) < 0
	case '%':
		// A directive at the begin of a line.
		return i > 0 && text[i-1] != '\n'
	case '\r', 0xC2, 0xE2, 0xEF, 0xFE, 0xFF:
		// May begin a line break of another kind, or another encoding.
		return false
	}

	return true
}
