package checkout

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goiwarp/iwarp/dev/internal/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestTop: the top is found from any depth, past the modules within it, and outside of it there is none.
func TestTop(t *testing.T) {
	dir := rig.Repository(t)
	rig.WriteBelow(t, dir, "go.mod", module)
	rig.WriteBelow(t, dir, "dev/go.mod", "module github.com/goiwarp/iwarp/dev\n")
	rig.WriteBelow(t, dir, "dev/tool/main.go", "package main\n")
	for _, from := range []string{".", "dev", "dev/tool"} {
		t.Chdir(filepath.Join(dir, from))
		testrig.Must(t, Enter())
		if here, err := os.Getwd(); err != nil || !same(t, here, dir) {
			t.Errorf("from %s: in %s (%v), want %s", from, here, err, dir)
		}
	}
	t.Chdir(t.TempDir())
	if err := Enter(); err == nil {
		t.Error("there is no repository here")
	}
}

// TestUnpack: a revision has the files as they were committed.
func TestUnpack(t *testing.T) {
	dir := rig.Repository(t, "a.go")
	rig.WriteBelow(t, dir, "a.go", "changed\n")
	rig.WriteBelow(t, dir, "b.go", "new\n")
	t.Chdir(dir)
	tree := filepath.Join(t.TempDir(), "tree")
	testrig.Must(t, Unpack(t.Context(), "HEAD", tree))
	if text, err := os.ReadFile(filepath.Join(tree, "a.go")); err != nil || string(text) == "changed\n" {
		t.Errorf("a.go is %q (%v)", text, err)
	}
	if _, err := os.Stat(filepath.Join(tree, "b.go")); err == nil {
		t.Error("b.go was not committed")
	}
	if _, err := os.Stat(tree + ".tar"); err == nil {
		t.Error("the archive was left")
	}
	if err := Unpack(t.Context(), "none", filepath.Join(t.TempDir(), "tree")); err == nil {
		t.Error("there is no such revision")
	}
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	testrig.Must(t, err)
	y, err := os.Stat(b)
	testrig.Must(t, err)
	return os.SameFile(x, y)
}
