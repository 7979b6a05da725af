package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small is a module in which each kind of arrow, method, bool and export occurs.
var small = map[string]string{
	"go.mod": "module example.com/small\n\ngo 1.26.0\n",
	"high.go": `package small

func Do(m *Middle) int { return m.step() + m.left }
`,
	"middle.go": `package small

import "sync/atomic"

const Limit, hidden = 1, 2

var Default Middle

type Middle struct {
	left   int
	closed bool
	done   atomic.Bool
	yes    answer
	many   []bool
	base
	*Shown
}

type answer bool

func (m *Middle) step() int { return m.depth() }
`,
	"low.go": `package small

type base struct{ open bool }

func (b *base) depth() int { return hidden }
func (b *base) Depth() int { return b.depth() }

type Shown struct{ lost bool }

func (Shown) Show()  {}
func (*Shown) hide() {}

type Shower interface {
	Show()
	hide()
}
`,
	"low_test.go":       "package small\n\nvar _ = Do\n",
	"internal/in/in.go": "package in\n\nfunc In() {}\n",
	"cmd/main.go":       "package main\n\nfunc Main() {}\n\nfunc main() {}\n",
	"open/open.go":      "package open\n\nimport \"example.com/small\"\n\ntype Alias = small.Middle\n\nfunc Open() {}\n",
}

// made writes the module into a directory.
func made(t *testing.T) *sources {
	t.Helper()
	top := t.TempDir()
	for name, text := range small {
		file := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &sources{t.Context(), top}
}

// TestArrows: methods, fields, types and constants make arrows, and what a file uses of itself makes none.
func TestArrows(t *testing.T) {
	p, err := made(t).one(".")
	if err != nil {
		t.Fatal(err)
	}
	g := filesOf(p)
	var got []string
	for from, uses := range g.uses {
		for to, names := range uses {
			for name := range names {
				got = append(got, g.files[from]+" "+g.files[to]+" "+name)
			}
		}
	}
	slices.Sort(got)
	if want := []string{
		"high.go middle.go Middle", "high.go middle.go left", "high.go middle.go step",
		"low.go middle.go hidden", "middle.go low.go Shown", "middle.go low.go base", "middle.go low.go depth",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	order := g.best()
	up := slices.Concat(g.upward(order)...)
	if g.arrows() != 3 || len(up) != 1 || g.mutual() != 1 || g.files[order[0]] != "high.go" {
		t.Errorf("%d arrows, %v upward, %d mutual, and the first file is %s",
			g.arrows(), up, g.mutual(), g.files[order[0]])
	}
}

// TestOrder: files that use only those below them are put into that order, however they are numbered, and each circle
// leaves one upward arrow.
func TestOrder(t *testing.T) {
	const n = 24
	for seed := range uint64(20) {
		number := rand.New(rand.NewPCG(seed, 0)).Perm(n)
		g := &graph{files: make([]string, n), uses: make([]map[int]map[string]bool, n)}
		for i := range g.uses {
			g.uses[i] = map[int]map[string]bool{}
		}
		for from := range n {
			for to := from + 1; to < n; to += 1 + (from+to)%3 {
				g.add(number[from], number[to], "x")
			}
		}
		upward := func() int { return len(slices.Concat(g.upward(g.best())...)) }
		if up := upward(); up != 0 {
			t.Errorf("seed %d: %d upward arrows, want none", seed, up)
		}
		for circle := range 3 {
			g.add(number[8*circle+1], number[8*circle], "y")
		}
		if up := upward(); up != 3 {
			t.Errorf("seed %d: %d upward arrows, want 3", seed, up)
		}
	}
}

// TestMembers: methods and bools that a type has by embedding count, too.
func TestMembers(t *testing.T) {
	p, err := made(t).one(".")
	if err != nil {
		t.Fatal(err)
	}
	all := membersOf(p)
	m := all[slices.IndexFunc(all, func(m members) bool { return m.name == "Middle" })]
	if m.methods != 1 || m.exported != 0 || m.promoted != 4 {
		t.Errorf("%+v", m)
	}
	if got := strings.Join(m.bools, " "); got != "closed done yes base.open Shown.lost" {
		t.Errorf("bools: %s", got)
	}
}

// TestExported counts the root and the public package, and neither what is internal nor what is a command.
func TestExported(t *testing.T) {
	pkgs, err := made(t).load("./...")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range pkgs {
		if public(p) {
			for _, names := range exportsOf(p) {
				got = append(got, strings.Join(names, ","))
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"", "", "", "Alias", "Default", "Do", "Limit", "Middle,Shower,Shown",
		"Middle.Depth,Shower.Show,Shown.Show", "Open",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
