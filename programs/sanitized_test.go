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

// sanitized runs programs that do everything wrong, and what should be right, on a library whose part in C is built
// with the sanitizers of addresses, leaks and undefined behavior.
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
	for as, programs := range map[Guise]map[string][]string{
		IWARP: {"wrong": nil, "wrong_cm": nil, "outlived": nil, "many_cm": {"50"}},
		RoCE: {"wrong": nil, "wrong_cm": nil, "outlived": nil, "many_cm": {"50"}, "built": nil, "windows": nil,
			"threads": nil, "many": {"50"}, "datagrams": {"50"}},
	} {
		for program, args := range programs {
			t.Run(string(as)+" "+program, func(t *testing.T) {
				t.Setenv(guiseVariable, string(as))
				hardened.compiledWith(t, program, args, slices.Concat(sanitizers, pair)...)
			})
		}
	}
}

// checked runs a program, which does nothing wrong, under tools that check it, on the library as users have it.
func (l Library) checked(t *testing.T) {
	t.Run("address", func(t *testing.T) {
		l.compiled(t, "managed", append(pair, "-fsanitize=address")...)
	})
	t.Run("valgrind", func(t *testing.T) {
		needs(t, "valgrind")
		start(t, l, "valgrind -q --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9 "+
			l.program(t, "managed", pair...)).awaitSuccess(t)
	})
}

// mixed has an engine and a part in C that were built from different sources: a program that needs both ends, and says
// why.
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

// leaks has 10,000 connections by number, one after the other, 3,000 of librdmacm's in each guise, and 2,000 pairs of
// QPs of datagrams.
func (l Library) leaks(t *testing.T) {
	for _, c := range []struct {
		as       Guise
		name, of string
	}{{RoCE, "many", "10000"}, {IWARP, "many_cm", "3000"}, {RoCE, "many_cm", "3000"}, {RoCE, "datagrams", "2000"}} {
		t.Run(string(c.as)+" "+c.name, func(t *testing.T) {
			t.Setenv(guiseVariable, string(c.as))
			p := l.compiledWith(t, c.name, []string{c.of}, pair...)
			t.Log(strings.TrimSpace(p.out.String()))
		})
	}
}
