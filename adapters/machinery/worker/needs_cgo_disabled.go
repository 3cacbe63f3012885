//go:build cgo

package main

// A worker linked against libc needs a loader and libraries, which its
// confinement does not let it open. This name does not exist, on purpose.
var _ = build_the_worker_with_CGO_ENABLED_0
