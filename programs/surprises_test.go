//go:build linux && interposer

package programs

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSurprises is testdata/surprises.cc: a program in C++, with threads and exceptions, under a filter of system calls
// that refuses ptrace, which goes on after a dlclose of one of the libraries that ours is for.
func TestSurprises(t *testing.T) {
	needs(t, "g++")
	l := built(t)
	binary := filepath.Join(t.TempDir(), "surprises")
	compile := exec.CommandContext(t.Context(), "g++", "-O2", "-Wall", "-Wextra", "-Werror", "-o", binary,
		"testdata/surprises.cc", "-libverbs", "-lrdmacm", "-lpthread")
	if err := run(compile); err != nil {
		t.Fatal(err)
	}
	start(t, l, binary).awaitSuccess(t)
}
