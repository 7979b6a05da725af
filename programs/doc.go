// Package programs runs programs that were written for libibverbs and librdmacm, unmodified, on package iwarp: rping,
// perftest and others, as a distribution ships them, with neither RDMA hardware nor a kernel module nor root.
//
// It builds two shared libraries, and has a program load them: the sources in preload are a small one in C, which takes
// the place of the functions of libibverbs and librdmacm, and package engine is the other in Go, which the first loads
// when a program needs it. Only that takes a C compiler. docs/programs.md has what runs, and the limits.
package programs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The files of a [Library].
const (
	preloadName = "libiwarp-preload.so"
	engineName  = "libiwarp-engine.so"
)

// A Library is the directory with the two shared libraries.
type Library struct{ Dir string }

// LibraryOf returns the Library of a version of this module. It is in the directory that the environment variable
// IWARP_LIBRARY names, or came with the program, in ../lib/iwarp, or is in the user's cache directory. It may not be
// built yet. On a system without such programs it is ErrSystem.
func LibraryOf(version string) (Library, error) {
	if err := checkSystem(); err != nil {
		return Library{}, err
	}
	if dir := os.Getenv("IWARP_LIBRARY"); dir != "" {
		dir, err := filepath.Abs(dir)
		return Library{dir}, err
	}
	if l := shipped(); l.built() {
		return l, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Library{}, fmt.Errorf("no place for the library of iwarp run: %w: name a directory by IWARP_LIBRARY",
			err)
	}
	return Library{filepath.Join(cache, "iwarp", strings.Trim(version, "()")+ofCheckout(version))}, nil
}

// ofCheckout tells the libraries of several checkouts apart, which would otherwise be built anew in turn.
func ofCheckout(version string) string {
	dir, err := checkoutAbove(".")
	if err != nil || released(version) {
		return ""
	}
	sum := sha256.Sum256([]byte(dir))
	return fmt.Sprintf("-%x", sum[:4])
}

// A PlaceError is the error of a Library where no program finds it.
type PlaceError struct{ Dir string }

// Error says what is wrong with the place.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("no program finds the library in %q, as spaces and colons separate the files of LD_PRELOAD: name another directory by IWARP_LIBRARY", e.Dir)
}

// Check returns a *PlaceError if programs do not find the library in its directory.
func (l Library) Check() error {
	if strings.ContainsAny(l.Dir, preloadSeparators) {
		return &PlaceError{l.Dir}
	}
	return nil
}

// preloadSeparators are between the files of LD_PRELOAD. There is no way to write one of them in a name.
const preloadSeparators = ": "

// Preload and Engine return the files of the two libraries.
func (l Library) Preload() string { return filepath.Join(l.Dir, preloadName) }

// Engine returns the file of the Go side.
func (l Library) Engine() string { return filepath.Join(l.Dir, engineName) }

// built reports whether both are there.
func (l Library) built() bool {
	for _, name := range []string{l.Preload(), l.Engine()} {
		if s, err := os.Stat(name); err != nil || !s.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// ErrSystem is the error of systems other than Linux on amd64 and arm64.
var ErrSystem = errors.New("iwarp run needs Linux, on amd64 or arm64: run it, and the program, there")

func checkSystem() error { return systemError(runtime.GOOS, runtime.GOARCH) }

func systemError(system, processor string) error {
	if system == "linux" && (processor == "amd64" || processor == "arm64") {
		return nil
	}
	return fmt.Errorf("%w: this is %s on %s", ErrSystem, system, processor)
}

// Environment returns the environment in which a program uses the library. What is preloaded already comes after it.
func (l Library) Environment(environ []string) []string {
	out := slices.Clone(environ)
	for _, v := range append(l.checkers(), list{"LD_PRELOAD", l.Preload(), preloadSeparators}) {
		out = v.in(out)
	}
	return out
}
