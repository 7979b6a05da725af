package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// module makes a module of one package, and enters it.
func module(t *testing.T, code, tests string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	testrig.Must(t, os.Mkdir("p", 0o755))
	const mod = "module example.com/small\n\ngo 1.26.0\n"
	for name, text := range map[string]string{"go.mod": mod, "p/p.go": code, "p/p_test.go": tests} {
		testrig.Must(t, os.WriteFile(filepath.FromSlash(name), []byte(text), 0o600))
	}
}

const small = `package p

func Most(a, b int) int {
	if a < b {
		a = b
	}
	return a
}

func Many(n int) bool { return n > 3 }

func Reset(p *int) { clear(p) }

func clear(p *int) { *p = 0 }
`

const smallTests = `package p

import "testing"

func TestAll(t *testing.T) {
	n := 7
	Reset(&n)
	if Most(1, 2) != 2 || Most(2, 1) != 2 || !Many(10) || Many(1) || n != 0 {
		t.Error("wrong")
	}
}
`

// TestSurvivors: what no test has noticed survives, and is told apart from what makes no difference.
func TestSurvivors(t *testing.T) {
	module(t, small, smallTests)
	p, b, names, err := prepare(t.TempDir(), "p", false)
	testrig.Must(t, err)
	var alive []string
	for _, id := range p.inOrder(names) {
		if _, killed := b.kills(id); !killed {
			alive = append(alive, p.mutants[id].key)
		}
	}
	want := []string{"p/p.go Most: a < b → a <= b", "p/p.go Many: n > 3 → n >= 3"}
	if !slices.Equal(alive, want) || len(p.mutants) != 5 {
		t.Errorf("of %d changes survive %q, want %q", len(p.mutants), alive, want)
	}
	survived, allowed := (&cli{}).survivors(p, b, names)
	if survived != 1 || total(allowed) != 1 || allowed[either] != 1 {
		t.Errorf("%d survived, and %v", survived, allowed)
	}
}

// kindly has changes of each kind, and beside them those that look like them.
const kindly = `package p

import (
	"context"
	"os"
	"sync"
	"time"
)

type other struct{}

func (other) Put(int) {}
func (other) Stop()   {}
func (other) Close()  {}

func calls(ctx context.Context, pool *sync.Pool, timer *time.Timer, f *os.File, o other) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer timer.Stop()
	defer f.Close()
	defer o.Stop()
	defer o.Close()
	pool.Put(ctx)
	o.Put(1)
	timer.Stop()
	cancel()
}

func bounds(a, b, c int, p, q []byte) int {
	if a < b {
		a = b
	}
	if b > a {
		b = c
	}
	if len(p) > cap(q) {
		q = make([]byte, len(p))
	}
	if b > 0 {
		c += b
	}
	if a > 0 {
		c += b
	}
	if len(q) > 0 {
		copy(p, q)
	}
	if len(p) > 0 {
		copy(p, q)
	}
	if a >= 0 {
		c += a
	}
	if int64(a) <= int64(c) {
		return a
	}
	return c
}
`

// TestKinds: a change is of a kind only if it makes no difference by what stands there.
func TestKinds(t *testing.T) {
	module(t, kindly, "package p\n")
	p, err := load("p")
	testrig.Must(t, err)
	_, err = p.write(t.TempDir(), nil)
	testrig.Must(t, err)
	var got []string
	for _, m := range p.mutants {
		if m.kind != "" {
			_, change, _ := strings.Cut(m.key, " ")
			got = append(got, change+" ("+string(m.kind)+")")
		}
	}
	want := []string{
		"calls: defer cancel() → nothing (" + string(released) + ")",
		"calls: defer timer.Stop() → nothing (" + string(released) + ")",
		"calls: defer f.Close() → nothing (" + string(released) + ")",
		"calls: pool.Put(ctx) → nothing (" + string(pooled) + ")",
		"bounds: a < b → a <= b (" + string(either) + ")",
		"bounds: len(p) > cap(q) → len(p) >= cap(q) (" + string(grown) + ")",
		"bounds: b > 0 → b >= 0 (" + string(empty) + ")",
		"bounds: len(q) > 0 → len(q) >= 0 (" + string(empty) + ")",
		"bounds: int64(a) <= int64(c) → int64(a) < int64(c) (" + string(either) + ")",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
