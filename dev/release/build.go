package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// A platform is what a program is built for, by the names of the go command.
type platform struct{ os, arch string }

func parsePlatform(s string) (platform, error) {
	system, arch, ok := strings.Cut(s, "/")
	if !ok || system == "" || arch == "" {
		return platform{}, fmt.Errorf("--platform: %q is not OS/ARCH, such as linux/amd64", s)
	}
	return platform{system, arch}, nil
}

// program is the name of the executable file.
func (p platform) program() string {
	if p.os == "windows" {
		return "iwarp.exe"
	}
	return "iwarp"
}

// place is where the archive has it. A package has the same tree below /usr.
func (p platform) place() string {
	if p.os == "windows" {
		return p.program()
	}
	return "bin/" + p.program()
}

// A builder builds the programs of a clone, in a directory for what is of no use afterwards.
type builder struct {
	clone, scratch string
	notes          notes
	version        string
}

// newBuilder clones a repository, so that all files are those of the revision, and the go command finds out which that
// is: in a work tree beside the repository it does not.
func newBuilder(ctx context.Context, repository, rev, scratch string) (*builder, error) {
	b := &builder{clone: filepath.Join(scratch, "clone"), scratch: scratch}
	commit, err := command(ctx, repository, nil, "git", "rev-parse", "--verify", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return nil, err
	}
	if _, err := command(ctx, repository, nil, "git", "clone", "--quiet", "--shared", "--no-checkout",
		".", b.clone); err != nil {
		return nil, err
	}
	_, err = command(ctx, b.clone, nil, "git", "checkout", "--quiet", "--detach", strings.TrimSpace(commit))
	if err != nil {
		return nil, err
	}
	return b, b.name(ctx, strings.TrimSpace(commit))
}

// name finds the version of the commit. A commit without a release's tag gets one in the clone, because the go command
// takes the version from there.
func (b *builder) name(ctx context.Context, commit string) error {
	text, err := os.ReadFile(filepath.Join(b.clone, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if b.notes, err = readNotes(string(text)); err != nil {
		return err
	}
	tags, err := command(ctx, b.clone, nil, "git", "tag", "--points-at", commit)
	if err != nil {
		return err
	}
	if b.version, err = tagged(tags); err != nil {
		return err
	}
	if b.version != "" {
		return b.notes.check(b.version)
	}
	seconds, err := command(ctx, b.clone, nil, "git", "show", "--no-patch", "--format=%ct", commit)
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64)
	if err != nil {
		return err
	}
	b.version = b.notes.unreleased(time.Unix(at, 0), commit)
	_, err = command(ctx, b.clone, nil, "git", "tag", b.version)
	return err
}

// A program is one that was built, and what it was built from.
type program struct {
	platform
	path      string
	version   string
	committed time.Time
}

// profile is where the program spends its time, for the compiler (docs/dev/release.md). It is not default.pgo, so that
// whoever builds the command without a release does not compile everything anew.
const profile = "dev/release/iwarp.pgo"

// build builds the program of a platform. It is static, and has no path of this machine in it.
func (b *builder) build(ctx context.Context, p platform) (*program, error) {
	path := filepath.Join(b.scratch, p.os+"-"+p.arch, p.program())
	if _, err := b.run(ctx, p, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w",
		"-pgo="+filepath.Join(b.clone, filepath.FromSlash(profile)), "-o", path, "./cmd/iwarp"); err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if info.Main.Version != b.version {
		return nil, fmt.Errorf("the program has version %s, and not %s", info.Main.Version, b.version)
	}
	committed, err := commitTime(info.Settings)
	return &program{p, path, b.version, committed}, err
}

// commitTime is the time of the commit that a program was built from.
func commitTime(settings []debug.BuildSetting) (at time.Time, err error) {
	err = errors.New("the program does not know its commit")
	for _, s := range settings {
		switch {
		case s.Key == "vcs.modified" && s.Value == "true":
			return at, errors.New("the clone has other files than the commit")
		case s.Key == "vcs.time":
			at, err = time.Parse(time.RFC3339, s.Value)
		}
	}
	return at, err
}

// run runs a command in the clone, for a platform, and returns what it prints.
func (b *builder) run(ctx context.Context, p platform, name string, args ...string) (string, error) {
	return b.runWith(ctx, p, nil, name, args...)
}

// runWith does so with more in the environment.
func (b *builder) runWith(ctx context.Context, p platform, env []string, name string, args ...string) (string, error) {
	// The variants of processors are the default ones, whatever the machine is set to.
	return command(ctx, b.clone, append([]string{
		"GOOS=" + p.os, "GOARCH=" + p.arch, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1",
		"GOARM64=v8.0", "GO386=sse2", "CGO_CFLAGS=", "CGO_LDFLAGS=",
	}, env...), name, args...)
}

func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err, exit.Stderr)
	}
	return string(out), err
}
