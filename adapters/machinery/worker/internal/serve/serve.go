// Package serve is the worker's loop: one request, one answer, over one socket.
// The server kills a worker that overruns; this loop only makes sure that nothing
// a request holds gets out in another way than its answer.
package serve

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"time"

	yaml "go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"

	"bronzeward/renderer-worker/internal/limits"
	"bronzeward/renderer-worker/internal/refusal"
	"bronzeward/renderer-worker/internal/render"
	"bronzeward/renderer-worker/internal/tree"
	"bronzeward/renderer-worker/internal/wire"
)

// How a worker ends. The server reads nothing into these but for its own tests.
const (
	ExitClosed   = 0
	ExitNoSocket = 64
	ExitBroken   = 65
	ExitOverrun  = 66
)

// graceAfterDeadline is how long after the server's own deadline a worker ends
// itself: only a worker whose server has died comes this far.
const graceAfterDeadline = 10 * time.Second

// stackBytes bounds a goroutine's stack. Recursion beyond it ends the process.
const stackBytes = 64 << 20

// Handler answers one request. A refusal.Refusal is answered as such; any other
// error is a fault of the request.
type Handler func(*wire.Request) (*wire.Response, error)

// Run answers requests until the server closes the socket.
func Run(socket io.ReadWriter, handle Handler) int {
	debug.SetTraceback("none")
	debug.SetMaxStack(stackBytes)

	for {
		request, err := read(socket)
		if errors.Is(err, io.EOF) {
			return ExitClosed
		}

		if err != nil {
			return ExitBroken
		}

		overrun := time.AfterFunc(time.Duration(request.GetDeadlineMs())*time.Millisecond+graceAfterDeadline, func() {
			os.Exit(ExitOverrun)
		})

		response := answer(request, handle)

		overrun.Stop()

		if err := write(socket, response); err != nil {
			return ExitBroken
		}
	}
}

func answer(request *wire.Request, handle Handler) *wire.Response {
	response, err := guarded(request, handle)

	var refused *refusal.Refusal

	switch {
	case errors.As(err, &refused):
		return &wire.Response{Outcome: &wire.Response_Refusal{Refusal: refused.Wire()}}
	case err != nil:
		return answerRefusal(wire.Class_CLASS_REQUEST)
	}

	return response
}

func answerRefusal(class wire.Class) *wire.Response {
	return &wire.Response{Outcome: &wire.Response_Refusal{Refusal: refusal.New(class).Wire()}}
}

func guarded(request *wire.Request, handle Handler) (response *wire.Response, err error) {
	defer render.Guard(&err)

	return handle(request)
}

func read(socket io.Reader) (*wire.Request, error) {
	var length [4]byte

	if _, err := io.ReadFull(socket, length[:]); err != nil {
		return nil, err
	}

	size := binary.BigEndian.Uint32(length[:])
	if size > limits.FrameBytes {
		return nil, io.ErrShortBuffer
	}

	frame := make([]byte, size)
	if _, err := io.ReadFull(socket, frame); err != nil {
		return nil, io.ErrUnexpectedEOF
	}

	defer clear(frame)

	request := &wire.Request{}

	return request, proto.Unmarshal(frame, request)
}

func write(socket io.Writer, response *wire.Response) error {
	frame := make([]byte, 4, 4+proto.Size(response))

	frame, err := proto.MarshalOptions{}.MarshalAppend(frame, response)
	if err != nil || len(frame)-4 > limits.FrameBytes {
		clear(frame)

		frame, err = proto.MarshalOptions{}.MarshalAppend(make([]byte, 4), answerRefusal(wire.Class_CLASS_OUTPUT_TOO_LARGE))
		if err != nil {
			return err
		}
	}

	defer clear(frame)

	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))

	_, err = socket.Write(frame)

	return err
}

// Machinery answers requests from the machinery.
func Machinery(request *wire.Request) (*wire.Response, error) {
	switch act := request.GetAct().(type) {
	case *wire.Request_Describe:
		description, err := render.Describe()

		return &wire.Response{Outcome: &wire.Response_Description{Description: description}}, err
	case *wire.Request_Parse:
		return parse(act.Parse)
	case *wire.Request_Encode:
		return encode(act.Encode)
	case *wire.Request_ListSecretFields:
		fields, err := render.SecretFields(act.ListSecretFields.GetSource(), act.ListSecretFields.GetText())

		return &wire.Response{Outcome: &wire.Response_SecretFields{SecretFields: &wire.SecretFields{Fields: fields}}}, err
	case *wire.Request_Check:
		err := render.Check(act.Check.GetSource(), act.Check.GetText())

		return &wire.Response{Outcome: &wire.Response_Accepted{Accepted: &wire.Accepted{}}}, err
	case *wire.Request_Compose:
		text, err := render.Compose(act.Compose.GetBase(), act.Compose.GetPatches())

		return &wire.Response{Outcome: &wire.Response_Text{Text: text}}, err
	case *wire.Request_Validate:
		verdict, err := render.Validate(act.Validate.GetConfig(), act.Validate.GetMode())

		return &wire.Response{Outcome: &wire.Response_Verdict{Verdict: verdict}}, err
	}

	return nil, refusal.New(wire.Class_CLASS_REQUEST)
}

func parse(act *wire.Parse) (*wire.Response, error) {
	var (
		documents []*yaml.Node
		err       error
	)

	if act.GetFormat() == wire.Format_FORMAT_STREAM {
		documents, err = tree.Parse(act.GetText())
	} else {
		documents, err = tree.ParseEmbedded(act.GetFormat(), act.GetText())
	}

	if err != nil {
		return nil, err
	}

	flat, err := tree.ToWire(documents)

	return &wire.Response{Outcome: &wire.Response_Tree{Tree: flat}}, err
}

func encode(act *wire.Encode) (*wire.Response, error) {
	documents, err := tree.FromWire(act.GetTree())
	if err != nil {
		return nil, err
	}

	var text string

	if act.GetFormat() == wire.Format_FORMAT_STREAM {
		text, err = tree.Write(documents)
	} else {
		text, err = tree.WriteEmbedded(act.GetFormat(), documents)
	}

	return &wire.Response{Outcome: &wire.Response_Text{Text: text}}, err
}
