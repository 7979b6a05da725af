//go:build linux && interposer

package programs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// sanitizers have the part in C, and programs, tell of memory that they do wrong with.
var sanitizers = []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"}

// sanitized runs programs that do everything wrong, and what should be right, on a library whose part in C is built with the
// sanitizers of addresses, leaks and undefined behavior.
func (l Library) sanitized(t *testing.T) {
	hardened := Library{t.TempDir()}
	sources, err := filepath.Abs("..")
	if err == nil {
		err = os.Link(l.Engine(), hardened.Engine())
	}
	if err == nil {
		err = hardened.compilePreload(t.Context(), sources, l.stamp(), sanitizers...)
	}
	if err != nil {
		testrig.Lacks(t, err.Error())
	}
	t.Setenv(guiseVariable, string(RoCE))
	for program, args := range map[string][]string{"wrong": nil, "wrong_cm": nil, "built": nil, "windows": nil, "threads": nil, "many": {"50"}, "datagrams": {"50"}} {
		t.Run(program, func(t *testing.T) {
			hardened.compiledWith(t, program, args, slices.Concat(sanitizers, pair)...)
		})
	}
}

// checked runs a program, which does nothing wrong, under tools that check it, on the library as users have it.
func (l Library) checked(t *testing.T) {
	t.Run("address", func(t *testing.T) {
		l.compiled(t, "managed", append(pair, "-fsanitize=address")...)
	})
	t.Run("valgrind", func(t *testing.T) {
		needs(t, "valgrind")
		start(t, l, "valgrind -q --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9 "+l.program(t, "managed", pair...)).end(t)
	})
}

// mixed has an engine and a part in C that were built from different sources: a program that needs both ends, and says why.
func (l Library) mixed(t *testing.T) {
	other := Library{t.TempDir()}
	sources, err := filepath.Abs("..")
	if err == nil {
		err = os.Link(l.Engine(), other.Engine())
	}
	if err == nil {
		err = other.compilePreload(t.Context(), sources, strings.Repeat("0", 64))
	}
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, other, "rping -c -a 127.0.0.1")
	p.await(t)
	if p.err == nil || !strings.Contains(p.out.String(), "built from different sources") {
		t.Errorf("%v\n%s", p.err, p.out.String())
	}
}

// leaks has 10,000 connections, one after the other, and 2,000 pairs of QPs of datagrams.
func (l Library) leaks(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	p := l.compiledWith(t, "many", []string{"10000"}, pair...)
	t.Log(strings.TrimSpace(p.out.String()))
	p = l.compiledWith(t, "datagrams", []string{"2000"}, pair...)
	t.Log(strings.TrimSpace(p.out.String()))
}
