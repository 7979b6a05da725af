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

// Images of TestProgramContainers.
const (
	baseImage     = "localhost/iwarp-test-base"
	programsImage = "localhost/iwarp-test-programs"
	libraryImage  = "localhost/iwarp-test-library"
	copyingImage  = "localhost/iwarp-test-copying"
)

// copying is an image that knows nothing of iwarp but the library.
const copying = `FROM ` + programsImage + `
COPY --from=` + libraryImage + ` /lib /preloaded
ENV LD_PRELOAD=/preloaded/libiwarp-preload.so
`

// pings has both ends in one container, by a command that comes before rping.
func pings(by string) string {
	return by + ` rping -s -a 127.0.0.1 -C 5 & for turn in 1 2 3 4 5 6 7 8 9; do sleep 1; ` +
		by + ` rping -c -a 127.0.0.1 -C 5 -v && break; done; wait`
}

// TestProgramContainers builds the two containers for RDMA programs, on a Debian that debootstrap unpacks, and one that
// copies the library. rping runs in them.
func TestProgramContainers(t *testing.T) {
	if !testrig.Everything() || runtime.GOOS != "linux" {
		t.Skip("it takes a while: IWARP_ALL=1 on Linux has it")
	}
	if _, err := exec.LookPath("debootstrap"); err != nil || os.Getuid() != 0 {
		testrig.Lacks(t, "debootstrap, which needs root, makes the image that others are built from")
	}
	ctx := t.Context() // a whole system is unpacked
	b, tree := usable(ctx, t), t.TempDir()
	compile(ctx, t, filepath.Join(tree, "bin/iwarp"), "../cmd/iwarp")
	build := exec.CommandContext(ctx, filepath.Join(tree, "bin/iwarp"), "run", "--build")
	build.Env = append(os.Environ(), "IWARP_LIBRARY="+filepath.Join(tree, "lib/iwarp"))
	if said, err := build.CombinedOutput(); err != nil {
		testrig.Lacks(t, string(said))
	}
	for _, name := range []string{"Containerfile.programs", "Containerfile.library"} {
		copyFile(t, tree, name)
	}
	testrig.Must(t, os.WriteFile(filepath.Join(tree, "copying"), []byte(copying), 0o600))
	b.buildBase(ctx, t)
	b.must(ctx, t, tree, programsImage, "Containerfile.programs", "--build-arg", "BASE="+baseImage)
	b.must(ctx, t, tree, libraryImage, "Containerfile.library")
	b.must(ctx, t, tree, copyingImage, "copying")
	for _, c := range []struct{ image, by string }{{programsImage, "iwarp run"}, {copyingImage, ""}} {
		said, err := b.run(ctx, c.image, []string{"/bin/sh"}, "", "-c", pings(c.by))
		if !strings.Contains(string(said), "rdma-ping-4:") {
			t.Errorf("%s: %v: %s", c.image, err, said)
		}
	}
}

// buildBase makes an image of the smallest Debian 12, of this machine's archive.
func (b builder) buildBase(ctx context.Context, t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	said, err := output(ctx, "", "apt-get", "indextargets", "--format", "$(REPO_URI)", "Label: Debian")
	archives := strings.Fields(string(said))
	if err != nil || len(archives) == 0 {
		testrig.Lacks(t, "apt-get knows no archive of Debian: run apt-get update")
	}
	if said, err := output(ctx, dir, "debootstrap", "--variant=minbase", "bookworm", "root", archives[0]); err != nil {
		testrig.Lacks(t, "debootstrap failed: "+string(said[max(0, len(said)-300):]))
	}
	testrig.Must(t, os.WriteFile(filepath.Join(dir, "base"), []byte("FROM scratch\nCOPY root /\n"), 0o600))
	b.must(ctx, t, dir, baseImage, "base")
}

// must builds an image in a directory.
func (b builder) must(ctx context.Context, t *testing.T, dir, image, file string, args ...string) {
	t.Helper()
	if said, err := output(ctx, dir, b.build(image, file, args...)...); err != nil {
		t.Fatalf("%s: %v: %s", file, err, said)
	}
}
