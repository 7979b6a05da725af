package iwarp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/goiwarp/iwarp"

// mayImport says which packages of the module a package may import, by paths
// within the module; "" is the package iwarp. A package that is not here may
// import what stands under "*", and nobody may import it but tests.
var mayImport = map[string][]string{
	"mpa":              {},
	"ddp":              {},
	"rdmap":            {"ddp"},
	"internal/memory":  {},
	"internal/tcp":     {},
	"internal/engine":  {"mpa", "ddp", "rdmap", "internal/memory"},
	"":                 {"mpa", "ddp", "rdmap", "internal/memory", "internal/tcp", "internal/engine"},
	"perf":             {"", "mpa", "ddp", "rdmap"},
	"internal/rping":   {"", "mpa", "ddp", "rdmap"},
	"internal/matrix":  {"", "mpa", "ddp", "rdmap"},
	"internal/probe":   {"mpa", "ddp", "rdmap"},
	"conform":          {"mpa", "ddp", "rdmap"},
	"capture/decode":   {"mpa", "ddp", "rdmap", "capture"},
	"capture/page":     {"rdmap", "capture", "capture/decode"},
	"internal/testrig": {},
	"*":                {"", "mpa", "ddp", "rdmap", "perf", "internal/rping", "internal/testrig"},
	"cmd/iwarp":        {"", "mpa", "ddp", "rdmap", "capture", "capture/decode", "capture/page", "conform", "perf", "internal/matrix", "internal/probe", "internal/rping"},
}

// pure are the packages that hold protocol and do nothing else.
var pure = []string{"mpa", "ddp", "rdmap"}

// TestImports holds the direction in which the packages of the module depend on
// each other, and keeps the pure ones free of everything but the standard library.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-e", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...").Output()
	if err != nil {
		t.Skipf("no go command here: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg, imports := inModule(words[0]), words[1:]
		allowed, known := mayImport[pkg]
		if !known {
			allowed = mayImport["*"]
		}
		for _, imp := range imports {
			switch {
			case imp == module || strings.HasPrefix(imp, module+"/"):
				if !slices.Contains(allowed, inModule(imp)) {
					t.Errorf("%s imports %s", words[0], imp)
				}
			case slices.Contains(pure, pkg):
				impure(t, words[0], imp)
			}
		}
	}
}

// inModule is an import path within the module.
func inModule(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

func impure(t *testing.T, pkg, imp string) {
	t.Helper()
	first, _, _ := strings.Cut(imp, "/")
	if strings.Contains(first, ".") || slices.Contains([]string{"net", "os", "sync", "syscall", "unsafe"}, first) {
		t.Errorf("%s imports %s", pkg, imp)
	}
}

// clock are the functions of package time that read or wait for the clock.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// TestNoClock looks for the clock in the packages that are given the time as a
// value.
func TestNoClock(t *testing.T) {
	for _, pkg := range append([]string{"internal/engine", "internal/memory"}, pure...) {
		paths, err := filepath.Glob(filepath.Join(pkg, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files (%v)", pkg, len(paths), err)
		}
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				noClock(t, path)
			}
		}
	}
}

func noClock(t *testing.T, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, sel.Sel.Name) {
			t.Errorf("%s uses time.%s", path, sel.Sel.Name)
		}
		return true
	})
}
