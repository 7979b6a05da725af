package iwarp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples: examples/README.md tells of each example, and each has a test.
func TestExamples(t *testing.T) {
	text, err := os.ReadFile("examples/README.md")
	must(t, err)
	dirs, err := filepath.Glob("examples/*/main.go")
	must(t, err)
	if len(dirs) < 5 {
		t.Errorf("only %d examples", len(dirs))
	}
	for _, main := range dirs {
		name := filepath.Base(filepath.Dir(main))
		if !strings.Contains(string(text), "| ["+name+"]("+name+") |") {
			t.Errorf("examples/README.md has no row for %s", name)
		}
		if tests, err := filepath.Glob("examples/" + name + "/*_test.go"); err != nil || len(tests) == 0 {
			t.Errorf("%s has no test (%v)", name, err)
		}
	}
}
