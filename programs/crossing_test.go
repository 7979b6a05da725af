//go:build linux && interposer

package programs

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// crossing measures what calls cost: testdata/crossing.c. No verdict hangs on it.
func (l Library) crossing(t *testing.T) {
	compiler, err := findCompiler()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "crossing")
	if err := run(exec.CommandContext(t.Context(), compiler, "-O2", "-Wall", "-o", binary, "testdata/crossing.c", "-libverbs")); err != nil {
		t.Fatal(err)
	}
	p := start(t, l, binary)
	p.end(t)
	t.Logf("%s", p.out.String())
}
