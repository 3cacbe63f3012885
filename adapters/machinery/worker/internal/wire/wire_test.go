package wire_test

import (
	"context"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	"bronzeward/renderer-worker/internal/wire"
)

func TestTheGeneratedCodeAgreesWithTheProtocolsSource(t *testing.T) {
	compiler := protocompile.Compiler{
		Resolver: &protocompile.SourceResolver{ImportPaths: []string{"../../../../../proto"}},
	}

	files, err := compiler.Compile(context.Background(), "renderer.proto")
	if err != nil {
		t.Fatal(err)
	}

	source := protodesc.ToFileDescriptorProto(files[0])
	generated := protodesc.ToFileDescriptorProto(wire.File_renderer_proto)

	if !proto.Equal(source, generated) {
		t.Fatalf("generate internal/wire again: protoc -I proto --go_out=adapters/machinery/worker "+
			"--go_opt=module=bronzeward/renderer-worker proto/renderer.proto\nsource:\n%s\ngenerated:\n%s",
			prototext.Format(source), prototext.Format(generated))
	}
}
