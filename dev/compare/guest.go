package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/goiwarp/iwarp/programs"
)

// inGuest boots the guest of interop with options of its own, and returns what a script says in it. The script is told
// the port at which the host has for it what build makes in a directory.
func inGuest(ctx context.Context, build func(ctx context.Context, dir string) error, script func(port int) string,
	options ...string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "compare")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := build(ctx, tmp); err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	go func() { _ = http.Serve(ln, http.FileServer(http.Dir(tmp))) }() //nolint:gosec // to the guest, for a minute
	args := append(append([]string{"run"}, options...), "--", script(ln.Addr().(*net.TCPAddr).Port))
	guest := exec.CommandContext(ctx, filepath.Join("interop", "siw-vm", "siw-vm"), args...)
	guest.Stderr = os.Stderr
	out, err := guest.Output()
	if err != nil {
		return nil, fmt.Errorf("the guest: %w: %.2000s", err, out)
	}
	return out, nil
}

// buildIwarp builds iwarp so that it runs without libraries of the host's.
func buildIwarp(ctx context.Context, dir string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir, "./cmd/iwarp")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// buildBoth builds iwarp, and the library of iwarp run beside it.
func buildBoth(ctx context.Context, dir string) error {
	if err := buildIwarp(ctx, dir); err != nil {
		return err
	}
	return programs.Library{Dir: dir}.Build(ctx, "(devel)")
}

// fetchIwarp has the guest's shell get iwarp.
func fetchIwarp(port int) string { return fetch(port, "iwarp") + "chmod +x iwarp\n" }

// fetchLibrary has the guest's shell get what programs load, whose libc is the guest's, and tells iwarp run where that
// is.
func fetchLibrary(port int) string {
	var l programs.Library
	return fetch(port, filepath.Base(l.Engine())) + fetch(port, filepath.Base(l.Preload())) + "export IWARP_LIBRARY=.\n"
}

func fetch(port int, file string) string {
	return fmt.Sprintf("wget -q -O %[2]s http://10.0.2.2:%[1]d/%[2]s || exit 1\n", port, file)
}
