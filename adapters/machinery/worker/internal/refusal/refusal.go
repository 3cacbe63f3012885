// Package refusal is the one form in which this worker says no. Its Error text is
// the class alone: the machinery's own text travels in Message and nowhere else.
package refusal

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"bronzeward/renderer-worker/internal/wire"
)

// Refusal is an error with a class, a place and, where it may be told, a text.
type Refusal struct {
	wire *wire.Refusal
}

// New makes a refusal of a class.
func New(class wire.Class) *Refusal {
	return &Refusal{wire: &wire.Refusal{Class: class}}
}

// Error names the class; no part of a configuration is in it.
func (r *Refusal) Error() string { return r.wire.GetClass().String() }

// In says which document of the stream is meant, counted from 0.
func (r *Refusal) In(document int) *Refusal {
	r.wire.Document = proto.Uint32(uint32(document))

	return r
}

// At says which line is meant, counted from 1.
func (r *Refusal) At(line int) *Refusal {
	if line > 0 {
		r.wire.Line = uint32(line)
	}

	return r
}

// Fragment says which patch of a composition is meant, counted from 0.
func (r *Refusal) Fragment(index int) *Refusal {
	r.wire.Fragment = proto.Uint32(uint32(index))

	return r
}

// Saying carries the machinery's text. The library cuts quoted values by bytes,
// so the text need not be valid UTF-8 as it comes.
func (r *Refusal) Saying(err error) *Refusal {
	r.wire.Message = strings.ToValidUTF8(err.Error(), "\uFFFD")

	return r
}

// Wire is the form in which it is answered.
func (r *Refusal) Wire() *wire.Refusal { return r.wire }
