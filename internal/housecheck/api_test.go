package housecheck

import (
	"cmp"
	"fmt"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// apiFile has a line for each name that a public package exports, as Linux on amd64 has it.
const apiFile = "internal/housecheck/testdata/api.txt"

// TestAPI shows what a change does to the API: it fails if a name, a signature, a field or the value of a constant
// changes. With -update it accepts the change.
func TestAPI(t *testing.T) {
	imports(t) // skips where there is no go command
	got := publicAPI(t)
	if *update {
		must(t, os.WriteFile(apiFile, []byte(strings.Join(got, "\n")+"\n"), 0o600))
		return
	}
	text, err := os.ReadFile(apiFile)
	must(t, err)
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	if diff := apiDiff(want, got); diff != "" {
		t.Errorf("the API has changed (- is gone, + is new):\n%s"+
			"If that is meant, say it in CHANGELOG.md, and accept it:\n"+
			"\tgo test ./internal/housecheck -run 'TestAPI$' -update", diff)
	}
}

// TestAPIOfWritableTypes: users can write the type of all that they get or give. An internal type needs an alias.
func TestAPIOfWritableTypes(t *testing.T) {
	imports(t) // skips where there is no go command
	api := publicAPI(t)
	var aliased []string
	for _, line := range api {
		if _, of, ok := strings.Cut(line, " = internal/"); ok && strings.Contains(line, ": type ") {
			aliased = append(aliased, "internal/"+of, "")
		}
	}
	written := strings.NewReplacer(aliased...)
	for _, line := range api {
		if strings.Contains(written.Replace(line), "internal/") {
			t.Errorf("%s\nnames an internal type: declare an alias for it in the package", line)
		}
	}
}

// apiDiff returns the lines that went and came.
func apiDiff(before, now []string) string {
	var b strings.Builder
	for _, line := range before {
		if !slices.Contains(now, line) {
			b.WriteString("- " + line + "\n")
		}
	}
	for _, line := range now {
		if !slices.Contains(before, line) {
			b.WriteString("+ " + line + "\n")
		}
	}
	return b.String()
}

func publicAPI(t *testing.T) (lines []string) {
	t.Helper()
	var dirs []string
	for pkg := range mayImport {
		if isPublic(pkg) {
			dirs = append(dirs, "./"+pkg)
		}
	}
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.LoadTypes, Env: append(os.Environ(), "GOOS=linux", "GOARCH=amd64"),
	}, dirs...)
	must(t, err)
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			t.Error(p.Errors)
		}
		if p.Name != "main" {
			lines = append(lines, apiOf(p.Types)...)
		}
	}
	slices.Sort(lines)
	return lines
}

// isPublic reports whether the promise of docs/api.md is about a package. Those below interop only run tests.
func isPublic(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return pkg != forC && !slices.Contains([]string{"internal", "interop", "cmd", "examples"}, first)
}

func apiOf(pkg *types.Package) []string {
	a := &apiLister{pkg: pkg}
	for _, name := range pkg.Scope().Names() {
		if o := pkg.Scope().Lookup(name); o.Exported() {
			a.add(o)
		}
	}
	return a.lines
}

// An apiLister collects the lines of a package.
type apiLister struct {
	pkg   *types.Package
	lines []string
}

func (a *apiLister) printf(format string, args ...any) {
	a.lines = append(a.lines, a.name(a.pkg)+": "+fmt.Sprintf(format, args...))
}

// name is how the lines call a package: by its path within the module.
func (a *apiLister) name(p *types.Package) string {
	return cmp.Or(inModule(p.Path()), "iwarp")
}

func (a *apiLister) text(t types.Type) string { return types.TypeString(t, a.name) }

func (a *apiLister) add(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		a.printf("const %s %s = %s", o.Name(), a.text(o.Type()), o.Val().ExactString())
	case *types.Var:
		a.printf("var %s %s", o.Name(), a.text(o.Type()))
	case *types.Func:
		a.printf("func %s%s", o.Name(), a.signature(o))
	case *types.TypeName:
		a.addType(o)
	}
}

func (a *apiLister) signature(f *types.Func) string {
	return strings.TrimPrefix(a.text(f.Type()), "func")
}

// addType lists a type with its methods and fields. Those of another type of a public package are listed there.
func (a *apiLister) addType(o *types.TypeName) {
	kind := o.Type().Underlying()
	named, _ := types.Unalias(o.Type()).(*types.Named)
	if o.IsAlias() {
		a.printf("type %s = %s", o.Name(), a.text(types.Unalias(o.Type())))
		if named == nil || named.Obj().Pkg() == nil || !strings.Contains(named.Obj().Pkg().Path(), "/internal/") {
			return
		}
	}
	a.addMembers(o, kind)
	for m := range named.Methods() {
		if m.Exported() {
			a.printf("method (%s) %s%s", a.receiver(m, o.Name()), m.Name(), a.signature(m))
		}
	}
}

func (a *apiLister) receiver(m *types.Func, name string) string {
	if _, ok := m.Signature().Recv().Type().(*types.Pointer); ok {
		return "*" + name
	}
	return name
}

func (a *apiLister) addMembers(o *types.TypeName, kind types.Type) {
	switch kind := kind.(type) {
	case *types.Struct:
		a.printf("type %s struct", o.Name())
		for f := range kind.Fields() {
			if f.Exported() {
				a.printf("field %s.%s %s", o.Name(), f.Name(), a.text(f.Type()))
			}
		}
	case *types.Interface:
		a.printf("type %s interface", o.Name())
		for m := range kind.Methods() {
			a.printf("method %s.%s%s", o.Name(), m.Name(), a.signature(m))
		}
	default:
		a.printf("type %s %s", o.Name(), a.text(kind))
	}
}

// TestAPIDiff: a line that went and one that came are named, and the others are not.
func TestAPIDiff(t *testing.T) {
	_, pkg, _, err := checkSmall("p", `package p
		type T struct { A int; b string }
		func (*T) M(x int) error { return nil }
		func (T) m() {}
		type I interface { N() T }
		const C uint8 = 3
		var V []T
		func F(T) (n int) { return 0 }
		type A = T
		func g() {}`)
	must(t, err)
	got := apiOf(pkg)
	want := []string{
		"p: type A = p.T", "p: const C uint8 = 3", "p: func F(p.T) (n int)", "p: type I interface", "p: method I.N() p.T",
		"p: type T struct", "p: field T.A int", "p: method (*T) M(x int) error", "p: var V []p.T",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if diff := apiDiff([]string{"a", "b"}, []string{"b", "c"}); diff != "- a\n+ c\n" {
		t.Errorf("%q", diff)
	}
}
