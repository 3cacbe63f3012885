// The renderer worker: Talos's own configuration machinery behind one inherited
// socket. The server starts it (adapters/machinery), confined, without arguments,
// environment or files. Never in this program: a log line, a file, a network
// connection, or any text of a request outside the answer to it.
//
// Build: CGO_ENABLED=0 go build -trimpath -o <out> .
package main

import (
	"os"

	"golang.org/x/sys/unix"

	"bronzeward/renderer-worker/internal/serve"
)

// socketDescriptor is where the server leaves our end of the socket pair.
const socketDescriptor = 3

func main() {
	// Plaintext lives in this memory: no core dump, no reading by another process
	// of the same user.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)

	socket := os.NewFile(socketDescriptor, "socket")
	if socket == nil {
		os.Exit(serve.ExitNoSocket)
	}

	os.Exit(serve.Run(socket, serve.Machinery))
}
