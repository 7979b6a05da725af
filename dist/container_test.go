package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A builder builds containers, and runs what it has built.
type builder struct {
	name    string
	works   []string                                          // a command that succeeds if it can be used
	build   func(image, file string, args ...string) []string // of the working directory
	inspect []string                                          // what it says of the image
	config  func(said []byte) (config, error)
	// run runs a program of the image with arguments. It sees dir, if there is one.
	run func(ctx context.Context, image string, entry []string, dir string, args ...string) ([]byte, error)
}

// A config is what an image says of the program that runs in it.
type config struct {
	User       string
	Entrypoint []string
	Cmd        []string
}

const image = "localhost/iwarp-test"

// builders are the ones that are known, the one that needs least first.
func builders(t *testing.T) []builder {
	return []builder{buildah(t), daemon("podman"), daemon("docker")}
}

// buildah keeps everything in a directory of the test's. It runs no entry point by itself: it is told the one that the
// image has.
func buildah(t *testing.T) builder {
	own := []string{"buildah", "--storage-driver", "vfs", "--root", filepath.Join(t.TempDir(), "root"),
		"--runroot", t.TempDir()}
	with := func(args ...string) []string { return append(slices.Clone(own), args...) }
	return builder{
		name: "buildah", works: with("info"),
		build: func(image, file string, args ...string) []string {
			return append(with("bud", "--isolation", "chroot", "-t", image, "-f", file), append(args, ".")...)
		},
		inspect: with("inspect", "--type", "image", image),
		config: func(said []byte) (config, error) {
			var of struct{ OCIv1 struct{ Config config } }
			err := json.Unmarshal(said, &of)
			return of.OCIv1.Config, err
		},
		run: func(ctx context.Context, image string, entry []string, dir string, args ...string) ([]byte, error) {
			from, err := output(ctx, "", with("from", image)...)
			if err != nil {
				return from, err
			}
			run := with("run", "--isolation", "chroot")
			if dir != "" {
				run = append(run, "--volume", dir+":"+probes+":ro")
			}
			return output(ctx, "", slices.Concat(run, []string{strings.TrimSpace(string(from)), "--"}, entry, args)...)
		},
	}
}

// daemon is podman or docker.
func daemon(name string) builder {
	return builder{
		name: name, works: []string{name, "info"},
		build: func(image, file string, args ...string) []string {
			return append([]string{name, "build", "-t", image, "-f", file}, append(args, ".")...)
		},
		inspect: []string{name, "image", "inspect", image},
		config: func(said []byte) (config, error) {
			var of []struct{ Config config }
			if err := json.Unmarshal(said, &of); err != nil {
				return config{}, err
			}
			if len(of) != 1 {
				return config{}, fmt.Errorf("%d images", len(of))
			}
			return of[0].Config, nil
		},
		run: func(ctx context.Context, image string, entry []string, dir string, args ...string) ([]byte, error) {
			run := []string{name, "run", "--rm", "--entrypoint", entry[0]}
			if dir != "" {
				run = append(run, "--volume", dir+":"+probes+":ro")
			}
			return output(ctx, "", slices.Concat(run, []string{image}, entry[1:], args)...)
		},
	}
}

// probes is where a directory of ours is in a container.
const probes = "/probes"

// whoami says as whom it runs.
const whoami = `package main

import (
	"fmt"
	"os"
)

func main() { fmt.Println(os.Getuid(), os.Getgid()) }
`

func output(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		out = append(out, exit.Stderr...)
	}
	return out, err
}

// TestContainer builds the container, compares what it says of the program, its user and its arguments, and runs a
// measurement in it, by its entry point.
func TestContainer(t *testing.T) {
	if !testrig.Everything() || runtime.GOOS != "linux" {
		t.Skip("it takes a while: IWARP_ALL=1 on Linux has it")
	}
	ctx := testrig.Within(t)
	usable(ctx, t).test(ctx, t)
}

// usable is the first builder that works here.
func usable(ctx context.Context, t *testing.T) builder {
	t.Helper()
	there := false
	for _, b := range builders(t) {
		_, err := exec.LookPath(b.name)
		there = there || err == nil
		said, err := output(ctx, "", b.works...)
		if err == nil {
			return b
		}
		t.Logf("%s cannot be used: %v %.200s", b.name, err, said)
	}
	if there {
		testrig.Lacks(t, "what builds containers cannot be used here")
	}
	t.Skip("there is nothing that builds containers, and .ci/run could not install it")
	return builder{}
}

func (b builder) test(ctx context.Context, t *testing.T) {
	dir := t.TempDir()
	copyFile(t, dir, "Containerfile")
	compile(ctx, t, filepath.Join(dir, "iwarp"), "../cmd/iwarp")
	if said, err := output(ctx, dir, b.build(image, "Containerfile")...); err != nil {
		t.Fatalf("%s: %v: %s", b.name, err, said)
	}
	t.Logf("built by %s", b.name)
	said, err := output(ctx, "", b.inspect...)
	testrig.Must(t, err)
	got, err := b.config(said)
	testrig.Must(t, err)
	want := config{User: "65532:65532", Entrypoint: []string{"/iwarp"},
		Cmd: []string{"serve", "--metrics", ":9174", "--log", "json"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("of the image: %s", diff)
	}
	said, err = b.run(ctx, image, got.Entrypoint, "", "perf", "--processes", "1", "--op", "Write", "--size", "64", "-n", "10")
	if err != nil || !strings.Contains(string(said), "All data was verified") {
		t.Errorf("%v: %s", err, said)
	}
	probe := t.TempDir()
	testrig.Must(t, os.Chmod(probe, 0o755)) //nolint:gosec // The user of the container reads it.
	source := filepath.Join(t.TempDir(), "whoami.go")
	testrig.Must(t, os.WriteFile(source, []byte(whoami), 0o600))
	compile(ctx, t, filepath.Join(probe, "whoami"), source)
	if said, err := b.run(ctx, image, []string{probes + "/whoami"}, probe); err != nil ||
		strings.TrimSpace(string(said)) != "65532 65532" {
		t.Errorf("it runs as %s, %v", said, err)
	}
}

// compile makes a program that needs nothing else.
func compile(ctx context.Context, t *testing.T, to, source string) {
	t.Helper()
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", to, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

func copyFile(t *testing.T, dir, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	testrig.Must(t, err)
	testrig.Must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
}
