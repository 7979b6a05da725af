package housecheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamplesAskErr: code that is there to be copied looks at the error of each completion that it takes. The call that
// takes it cannot say that the request has failed.
func TestExamplesAskErr(t *testing.T) {
	takers := 0
	for _, name := range filesWith(t, ".go") {
		name = filepath.ToSlash(name)
		if !strings.HasPrefix(name, "examples/") && !strings.HasPrefix(name, "example_") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		must(t, err)
		takers += wantErrAsked(t, name, file)
	}
	if takers < 10 {
		t.Errorf("only %d functions take completions", takers)
	}
}

// wantErrAsked returns how many functions of a file take completions.
func wantErrAsked(t *testing.T, name string, file *ast.File) (takers int) {
	t.Helper()
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		taken := calls(f, "Next") + calls(f, "Poll")
		if taken > 0 {
			takers++
		}
		if asked := calls(f, "Err") + calls(f, "succeeded"); taken > asked {
			t.Errorf("%s: %s takes completions, and not all are asked for their Err", name, f.Name.Name)
		}
	}
	return takers
}

// calls counts the calls of a function or method in another.
func calls(in *ast.FuncDecl, name string) (n int) {
	ast.Inspect(in, func(node ast.Node) bool {
		if c, ok := node.(*ast.CallExpr); ok {
			switch f := c.Fun.(type) {
			case *ast.Ident:
				n += count(f.Name == name)
			case *ast.SelectorExpr:
				n += count(f.Sel.Name == name)
			}
		}
		return true
	})
	return n
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
