// testworker is the renderer worker with faults that tests ask for by the first line
// of a composition's base, `# fault: <name>`. It is a program of its own: the product
// binary holds none of this.
//
//	testworker                 as a worker, on descriptor 3
//	testworker probe           what an unconfined process may do, on standard output
//	testworker leak VALUE FILE keeps VALUE in its arguments and writes it to FILE, then waits
package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bronzeward/renderer-worker/internal/serve"
	"bronzeward/renderer-worker/internal/wire"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "probe":
			fmt.Print(probe())
		case "leak":
			if err := os.WriteFile(os.Args[3], []byte(os.Args[2]), 0o600); err != nil {
				os.Exit(1)
			}

			fmt.Println("leaked")
			time.Sleep(time.Hour)
		}

		return
	}

	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)

	os.Exit(serve.Run(os.NewFile(3, "socket"), handle))
}

func handle(request *wire.Request) (*wire.Response, error) {
	base := request.GetCompose().GetBase()

	name, asked := strings.CutPrefix(strings.SplitN(base, "\n", 2)[0], "# fault: ")
	if !asked {
		return serve.Machinery(request)
	}

	switch name {
	case "hang":
		time.Sleep(time.Hour)
	case "spin":
		for {
		}
	case "panic":
		panic(base)
	case "nil":
		var gone *wire.Request

		gone.DeadlineMs = 1
	case "exit":
		os.Exit(7)
	case "overflow":
		overflow(0)
	case "eat":
		eat()
	case "misanswer":
		return &wire.Response{Outcome: &wire.Response_Accepted{Accepted: &wire.Accepted{}}}, nil
	case "empty":
		return &wire.Response{}, nil
	case "print":
		fmt.Fprintln(os.Stderr, base)
	case "write":
		_ = os.WriteFile(os.TempDir()+"/bronzeward-leaking-worker", []byte(base), 0o600)
	case "probe":
		return text(probe()), nil
	}

	return text("done"), nil
}

func text(text string) *wire.Response {
	return &wire.Response{Outcome: &wire.Response_Text{Text: text}}
}

func overflow(n int) int { return overflow(n+1) + 1 }

func eat() {
	var kept [][]byte

	for {
		block := make([]byte, 8<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}

		kept = append(kept, block)
		_ = kept
	}
}

// probe tries what a confined worker must not be able to do, and says how each went.
func probe() string {
	var out strings.Builder

	attempt := func(name string, err error) {
		verdict := "allowed"
		if err != nil {
			verdict = "refused"
		}

		fmt.Fprintf(&out, "%s %s\n", name, verdict)
	}

	descriptor := func(name string, fd int, err error) {
		if err == nil {
			_ = unix.Close(fd)
		}

		attempt(name, err)
	}

	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	descriptor("socket-inet", fd, err)
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	descriptor("socket-unix", fd, err)

	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		_ = unix.Close(pair[0])
		_ = unix.Close(pair[1])
	}

	attempt("socketpair", err)

	folder := os.TempDir()
	name := fmt.Sprintf("%s/bronzeward-probe-%d", folder, os.Getpid())
	fd, err = unix.Open(name, unix.O_CREAT|unix.O_WRONLY, 0o600)
	descriptor("create-file", fd, err)
	_ = unix.Unlink(name)
	attempt("make-folder", unix.Mkdir(name, 0o700))
	_ = unix.Rmdir(name)
	fd, err = unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	descriptor("list-folder", fd, err)
	fd, err = unix.Open("/etc/passwd", unix.O_RDONLY, 0)
	descriptor("read-file", fd, err)
	fd, err = unix.Open("/dev/null", unix.O_WRONLY, 0)
	descriptor("write-device", fd, err)
	fd, err = unix.Open(fmt.Sprintf("/proc/%d/environ", os.Getpid()), unix.O_RDONLY, 0)
	descriptor("read-process", fd, err)
	fd, err = unix.MemfdCreate("probe", 0)
	descriptor("memory-file", fd, err)

	process, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err == nil {
		_, _ = process.Wait()
	}

	attempt("start-process", err)
	attempt("signal-parent", unix.Kill(os.Getppid(), 0))
	attempt("name-host", unix.Access("/etc/hosts", unix.R_OK))

	_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
	// EFAULT: the kernel looked at the arguments, so the call itself was let through.
	if errno == unix.EFAULT {
		errno = 0
	}

	attempt("io-uring", nilIfZero(errno))

	fmt.Fprintf(&out, "descriptors %s\n", strings.Join(open(), ","))
	fmt.Fprintf(&out, "arguments %d\n", len(os.Args)-1)
	fmt.Fprintf(&out, "environment %s\n", strings.Join(os.Environ(), " "))

	return out.String()
}

func nilIfZero(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}

	return errno
}

// open lists the descriptors that are open and were not opened by this program: its
// runtime's own are an epoll instance and an event counter.
func open() []string {
	var out []string

	for fd := range 256 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			continue
		}

		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == 0 {
			continue
		}

		out = append(out, fmt.Sprint(fd))
	}

	return out
}
