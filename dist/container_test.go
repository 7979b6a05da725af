package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A builder builds containers, and runs a command in what it has built.
type builder struct {
	name  string
	works []string // a command that succeeds if it can be used
	build []string // in the directory with the Containerfile
	run   func(ctx context.Context, args ...string) ([]byte, error)
}

const image = "localhost/iwarp-test"

// builders are the ones that are known, the one that needs least first. Buildah keeps everything in a directory of the test's.
func builders(t *testing.T) []builder {
	own := []string{"--storage-driver", "vfs", "--root", filepath.Join(t.TempDir(), "root"), "--runroot", t.TempDir()}
	buildah := func(args ...string) []string { return append(append([]string{"buildah"}, own...), args...) }
	all := []builder{{"buildah", buildah("info"), buildah("bud", "--isolation", "chroot", "-t", image, "-f", "Containerfile", "."),
		func(ctx context.Context, args ...string) ([]byte, error) {
			from, err := output(ctx, "", buildah("from", image)...)
			if err != nil {
				return from, err
			}
			return output(ctx, "", append(buildah("run", "--isolation", "chroot", strings.TrimSpace(string(from)), "--", "/iwarp"), args...)...)
		}}}
	for _, name := range []string{"podman", "docker"} {
		all = append(all, builder{name, []string{name, "info"}, []string{name, "build", "-t", image, "-f", "Containerfile", "."},
			func(ctx context.Context, args ...string) ([]byte, error) {
				return output(ctx, "", append([]string{name, "run", "--rm", image}, args...)...)
			}})
	}
	return all
}

func output(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		out = append(out, exit.Stderr...)
	}
	return out, err
}

// TestContainer builds the container, and runs a measurement in it.
func TestContainer(t *testing.T) {
	if !testrig.Everything() || runtime.GOOS != "linux" {
		t.Skip("it takes a while: IWARP_ALL=1 on Linux has it")
	}
	ctx, there := testrig.Within(t), false
	for _, b := range builders(t) {
		_, err := exec.LookPath(b.name)
		there = there || err == nil
		if said, err := output(ctx, "", b.works...); err != nil {
			t.Logf("%s cannot be used: %v %.200s", b.name, err, said)
			continue
		}
		dir := t.TempDir()
		copyFile(t, dir, "Containerfile")
		compile := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", filepath.Join(dir, "iwarp"), "../cmd/iwarp")
		compile.Env = append(os.Environ(), "CGO_ENABLED=0")
		said, err := compile.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		if said, err := output(ctx, dir, b.build...); err != nil {
			t.Fatalf("%s: %v: %s", b.name, err, said)
		}
		t.Logf("built by %s", b.name)
		said, err = b.run(ctx, "perf", "--processes", "1", "--op", "Write", "--size", "64", "-n", "10")
		if err != nil || !strings.Contains(string(said), "All data was verified") {
			t.Errorf("%v: %s", err, said)
		}
		return
	}
	if there {
		testrig.Lacks(t, "what builds containers cannot be used here")
	}
	t.Skip("there is nothing that builds containers, and .ci/run could not install it")
}

func copyFile(t *testing.T, dir, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	testrig.Must(t, err)
	testrig.Must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
}
