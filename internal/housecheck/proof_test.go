package housecheck

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A bench has what is declared beside a test: in the test files of its directory, and in those of the package.
type bench struct {
	tests   map[string][]ast.Node // declarations of test files, by their names; methods without their receivers
	imports map[ast.Node][]string // the names by which a declaration's file knows packages of the product
	product map[string]bool       // what the package declares for itself
	inside  map[ast.Node]bool     // the declaration is in the package, and not in one of tests alone
	rig     *bench                // what package rig declares, if a file imports it
}

// rigDir is where tests of several packages have what they share.
const rigDir = "internal/e2e/rig"

// newBench reads a directory.
func newBench(dir string) (*bench, error) {
	b := &bench{map[string][]ast.Node{}, map[ast.Node][]string{}, map[string]bool{}, map[ast.Node]bool{}, nil}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if b.rig == nil && importsRig(f) {
			if b.rig, err = newBench(rigDir); err != nil {
				return nil, err
			}
		}
		test := strings.HasSuffix(name, "_test.go") || dir == rigDir
		for n, of := range declared(f) {
			if !test {
				b.product[of] = true
				continue
			}
			b.tests[of] = append(b.tests[of], n)
			b.imports[n], b.inside[n] = productNames(f), !strings.HasSuffix(f.Name.Name, "_test") && dir != rigDir
		}
	}
	return b, nil
}

// importsRig reports whether a file imports package rig, by that name.
func importsRig(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool {
		return s.Name == nil && strings.Trim(s.Path.Value, `"`) == module+"/"+rigDir
	})
}

// declared returns the declarations of a file with a name each.
func declared(f *ast.File) map[ast.Node]string {
	all := map[ast.Node]string{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			all[d] = d.Name.Name
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					all[s] = s.Name.Name
				case *ast.ValueSpec:
					for _, name := range s.Names {
						all[&ast.ValueSpec{Names: []*ast.Ident{name}, Type: s.Type, Values: s.Values}] = name.Name
					}
				}
			}
		}
	}
	return all
}

// productNames returns the names by which a file knows packages of the product.
func productNames(f *ast.File) (names []string) {
	for _, s := range f.Imports {
		imp := strings.Trim(s.Path.Value, `"`)
		switch {
		case !ofModule(imp) || slices.Contains(forTests, inModule(imp)):
		case s.Name != nil:
			names = append(names, s.Name.Name)
		default:
			names = append(names, imp[strings.LastIndex(imp, "/")+1:])
		}
	}
	return names
}

// touches reports whether a declaration of a test mentions something of the product, itself or by what else the test
// files declare. It goes by names: which of two methods with one name is meant it does not know.
func (b *bench) touches(n ast.Node, seen map[ast.Node]bool) (found bool) {
	if seen[n] {
		return false
	}
	seen[n] = true
	ast.Inspect(n, func(at ast.Node) bool {
		switch at := at.(type) {
		case *ast.SelectorExpr:
			x, ok := at.X.(*ast.Ident)
			found = found || ok && (slices.Contains(b.imports[n], x.Name) || x.Name == "rig" &&
				b.rig.touchesBy(at.Sel.Name, seen))
		case *ast.Ident:
			if at.Name == "_" {
				return true
			}
			found = found || b.inside[n] && b.product[at.Name]
			found = found || b.touchesBy(at.Name, seen)
		}
		return !found
	})
	return found
}

// touchesBy reports whether what has a name does so. Without a bench nothing has one.
func (b *bench) touchesBy(name string, seen map[ast.Node]bool) bool {
	return b != nil && slices.ContainsFunc(b.tests[name], func(n ast.Node) bool { return b.touches(n, seen) })
}

// why returns what keeps a function that claims to prove something from being a proof, empty if nothing does: it must
// be one that the go command runs, do something with the product, and not skip itself.
func (b *bench) why(fn *ast.FuncDecl) string {
	switch {
	case !runs(fn):
		return "the go command does not run it"
	case skips(fn.Body):
		return "it returns or skips before it has done anything"
	case !b.touches(b.like(fn), map[ast.Node]bool{}):
		return "it calls nothing of the product"
	}
	return ""
}

// like returns the bench's own reading of a function.
func (b *bench) like(fn *ast.FuncDecl) ast.Node {
	for _, n := range b.tests[fn.Name.Name] {
		if f, ok := n.(*ast.FuncDecl); ok && f.Recv == nil {
			return f
		}
	}
	return fn
}

// runs reports whether a function has the form of a test, a fuzz target or an example.
func runs(fn *ast.FuncDecl) bool {
	for prefix, param := range map[string]string{"Test": "T", "Fuzz": "F", "Example": ""} {
		rest, ok := strings.CutPrefix(fn.Name.Name, prefix)
		if r, _ := utf8.DecodeRuneInString(rest); !ok || fn.Recv != nil ||
			unicode.IsLower(r) || fn.Type.Results != nil {
			continue
		}
		params := fn.Type.Params.List
		if param == "" {
			return len(params) == 0
		}
		if len(params) != 1 {
			return false
		}
		star, _ := params[0].Type.(*ast.StarExpr)
		return star != nil && isTesting(star.X, param)
	}
	return false
}

func isTesting(e ast.Expr, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == "testing" && sel.Sel.Name == name
}

// skips reports whether a body returns or skips without a condition.
func skips(body *ast.BlockStmt) bool {
	for _, s := range body.List {
		switch s := s.(type) {
		case *ast.ReturnStmt:
			return true
		case *ast.ExprStmt:
			call, _ := s.X.(*ast.CallExpr)
			if call == nil {
				continue
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(sel.Sel.Name, "Skip") {
				return true
			}
		}
	}
	return false
}

// built reports whether CI builds a file: on Linux, for tests with the system's kernel by the tag interop.
func built(path string) (bool, error) {
	for _, tags := range [][]string{nil, {"interop"}} {
		ctx := build.Default
		ctx.GOOS, ctx.GOARCH, ctx.BuildTags = "linux", "amd64", tags
		if ok, err := ctx.MatchFile(filepath.Dir(path), filepath.Base(path)); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// TestProofs refuses what is no proof.
func TestProofs(t *testing.T) {
	for src, want := range map[string]string{
		`func TestX(t *testing.T) { if iwarp.Version == 0 { t.Fail() } }`:                 "",
		`func TestX(t *testing.T) { help(t) }; func help(*testing.T) { iwarp.NewRNIC() }`: "",
		`func FuzzX(f *testing.F) { f.Fuzz(iwarp.Parse) }`:                                "",
		`func ExampleX() { iwarp.Parse() }`:                                               "",
		`func TestX(t *testing.T) {}`:                                                     "it calls nothing of the product",
		`func TestX(t *testing.T) { if 1 > 2 { t.Fail() } }`:                              "it calls nothing of the product",
		`func TestX(t *testing.T) { testrig.Must(t, nil) }`:                               "it calls nothing of the product",
		`func TestX(t *testing.T) { rig.Must(t, nil) }`:                                   "it calls nothing of the product",
		`func TestX(t *testing.T) { rig.Connect(t) }`:                                     "",
		`func TestX(t *testing.T) { t.Skip("later"); iwarp.NewRNIC() }`:                   "it returns or skips before it has done anything",
		`func TestX(t *testing.T) { return; iwarp.NewRNIC() }`:                            "it returns or skips before it has done anything",
		`func Testimony() bool { iwarp.NewRNIC(); return true }`:                          "the go command does not run it",
		`func TestX() { iwarp.NewRNIC() }`:                                                "the go command does not run it",
		`func TestX(b *testing.B) { iwarp.NewRNIC() }`:                                    "the go command does not run it",
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, "x_test.go")
		must(t, os.WriteFile(name, []byte(`package x_test; import ("testing"; "`+module+`"; "`+module+
			`/internal/testrig"; "`+module+"/"+rigDir+`"); `+src), 0o600))
		b, err := newBench(dir)
		must(t, err)
		for _, ns := range b.tests {
			if fn, ok := ns[0].(*ast.FuncDecl); ok && isTest(fn) && b.why(fn) != want {
				t.Errorf("%s: %q", src, b.why(fn))
			}
		}
	}
}

// TestBuilt knows the files that CI builds.
func TestBuilt(t *testing.T) {
	for constraint, want := range map[string]bool{"": true, "never": false, "interop": true, "!interop": true,
		"windows": false, "linux": true} {
		name := filepath.Join(t.TempDir(), "x_test.go")
		text := "package x"
		if constraint != "" {
			text = "//go:build " + constraint + "\n\n" + text
		}
		must(t, os.WriteFile(name, []byte(text), 0o600))
		if got, err := built(name); got != want || err != nil {
			t.Errorf("%q: %v, %v", constraint, got, err)
		}
	}
}
