// Package limits states what this worker takes and gives. Describe answers these
// numbers; the Rust side holds the same ones and compares (facts T27, T28).
package limits

const (
	// InputBytes bounds every text and the texts of one request together.
	InputBytes = 4 << 20
	// OutputBytes bounds every text answered. It is compared with an estimate
	// before the machinery encodes: its encoder cannot be stopped (T28).
	OutputBytes = 16 << 20
	// Depth bounds how deep nodes nest; the YAML library alone would take 10,000.
	Depth = 100
	// Documents bounds the documents of one stream.
	Documents = 1000
	// MappingKeys bounds the keys of one mapping: loading is quadratic in them (T27).
	MappingKeys = 4000
	// Patches bounds the fragments of one composition.
	Patches = 512
	// FrameBytes bounds one request on the socket. A tree is larger than its text.
	FrameBytes = 128 << 20
)
