package housecheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// clock are the functions of package time that read or wait for the clock.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// TestNoClock looks for the clock in the packages that are given the time as a
// value.
func TestNoClock(t *testing.T) {
	for pkg := range mayImport {
		if !isPure(pkg) && pkg != locking {
			continue
		}
		files, err := filesOf(pkg, 0)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files (%v)", pkg, len(files), err)
		}
		for name, file := range files {
			for _, use := range clockUses(file) {
				t.Errorf("%s uses %s", name, use)
			}
		}
	}
}

// clockUses returns the uses of the clock in a file, by whatever name it imports package time. With a dot nobody could
// tell.
func clockUses(file *ast.File) (uses []string) {
	for _, spec := range file.Imports {
		if spec.Path.Value != `"time"` {
			continue
		}
		name := "time"
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			uses = append(uses, "an import of time with a dot")
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name && slices.Contains(clock, sel.Sel.Name) {
				uses = append(uses, "time."+sel.Sel.Name)
			}
			return true
		})
	}
	return uses
}

// TestClockUses finds the clock under every name.
func TestClockUses(t *testing.T) {
	for src, want := range map[string]int{
		`import "time"; var t = time.Now()`:                      1,
		`import clock "time"; var t, u = clock.Now, clock.Since`: 2,
		`import . "time"; var t = Now()`:                         1,
		`import "time"; const d = time.Second`:                   0,
		`import _ "time"`:                                        0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+src, parser.SkipObjectResolution)
		must(t, err)
		if got := clockUses(file); len(got) != want {
			t.Errorf("%s: %q", src, got)
		}
	}
}
