package main

import (
	"context"
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// compilers are those of C that build the library for processors other than this machine's, by the names of Debian.
var compilers = map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}

// library builds the library for unmodified programs of a platform, if it has one. The program of this machine builds
// it. If something is missing for that, it says what: there are no files then, or some that need this machine's glibc.
func (b *builder) library(ctx context.Context, p platform, here *program) (all []entry, missing string, err error) {
	compiler, some := compilers[p.arch]
	if p.os != "linux" || !some {
		return nil, "", nil
	}
	if runtime.GOOS != "linux" {
		return nil, "the library for programs is built on Linux only", nil
	}
	if p.arch == runtime.GOARCH {
		compiler = "gcc"
	}
	if _, err := exec.LookPath(compiler); err != nil {
		return nil, fmt.Sprintf("no library for programs, because there is no %s", compiler), nil
	}
	command, err := b.oldCompiler(ctx, p.arch, compiler)
	if err != nil {
		command, missing = compiler, fmt.Sprintf("a library for programs that runs with glibc 2.31: %v", err)
	}
	dir := filepath.Join(b.scratch, "library-"+p.arch)
	if _, err := b.runWith(ctx, p, []string{"GOFLAGS=-trimpath", "CC=" + command, "IWARP_LIBRARY=" + dir},
		here.path, "run", "--build"); err != nil {
		return nil, fmt.Sprintf("no library for programs: %v", err), nil
	}
	all, err = matching(dir, "*", "lib/iwarp/")
	for i := range all {
		all[i].executable = strings.HasSuffix(all[i].name, ".so")
	}
	return all, missing, err
}

// A glibc is a version of it that a file needs, 2.MINOR.
type glibc int

func (g glibc) String() string { return fmt.Sprintf("2.%d", int(g)) }

// neededGlibc is the oldest glibc that has all symbols which a file imports.
func neededGlibc(path string) (needed glibc, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	symbols, err := f.ImportedSymbols()
	for _, s := range symbols {
		if minor, ok := strings.CutPrefix(s.Version, "GLIBC_2."); ok {
			minor, _, _ = strings.Cut(minor, ".")
			n, _ := strconv.Atoi(minor)
			needed = max(needed, glibc(n))
		}
	}
	return needed, err
}
