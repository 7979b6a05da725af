//go:build linux && interposer

package programs

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// crossing measures what calls cost: testdata/crossing.c. No verdict hangs on it.
func (l Library) crossing(t *testing.T) {
	p := l.compiled(t, "crossing")
	t.Logf("%s", p.out.String())
}

// signals is testdata/signals.c: no signal of the library's interrupts a program.
func (l Library) signals(t *testing.T) {
	l.compiled(t, "signals")
}

// extended is testdata/extended.c: two QPs of one process that connect by themselves, with the extended verbs.
func (l Library) extended(t *testing.T) {
	t.Setenv(guiseVariable, string(RoCE))
	l.compiled(t, "extended")
}

// compiled runs a program of testdata, which must succeed.
func (l Library) compiled(t *testing.T, name string) *process {
	t.Helper()
	compiler, err := findCompiler()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), name)
	source := filepath.Join("testdata", name+".c")
	if err := run(exec.CommandContext(t.Context(), compiler, "-O2", "-Wall", "-o", binary, source, "-libverbs", "-lpthread")); err != nil {
		t.Fatal(err)
	}
	p := start(t, l, binary)
	p.end(t)
	return p
}
