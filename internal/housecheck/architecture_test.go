package housecheck

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitecture: the files, packages and identifiers that docs/architecture.md names exist.
func TestArchitecture(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	must(t, err)
	known, checked := declaredNames(t), 0
	for _, m := range regexp.MustCompile("`([^` ]+)`").FindAllStringSubmatch(string(page), -1) {
		name := m[1]
		switch first, rest, dotted := strings.Cut(name, "."); {
		case strings.HasSuffix(name, ".go"), strings.Contains(name, "/"):
			if !exists(name) {
				t.Errorf("there is no %s", name)
			}
		case !known[name] && !(dotted && known[rest] && isPackage(first)) && !exists(name):
			t.Errorf("nothing is named %s", name)
		}
		checked++
	}
	if checked < 50 {
		t.Errorf("the page names %d things only", checked)
	}
}

// exists reports whether a path, or one that a pattern names, is there, in the root or in internal.
func exists(name string) bool {
	for _, pattern := range []string{name, path.Join("internal", name)} {
		if found, _ := filepath.Glob(filepath.FromSlash(pattern)); len(found) > 0 {
			return true
		}
	}
	return false
}

// isPackage reports whether a package of the module has this name.
func isPackage(name string) bool {
	for pkg := range mayImport {
		if path.Base(pkg) == name || pkg == "" && name == path.Base(module) {
			return true
		}
	}
	return false
}

// declaredNames has what the packages of the module declare: as name, and what belongs to a type as Type.name.
func declaredNames(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	for pkg := range mayImport {
		files, err := filesOf(pkg, 0)
		must(t, err)
		for _, f := range files {
			for _, d := range f.Decls {
				declare(names, d)
			}
		}
	}
	return names
}

// declare adds what a declaration declares.
func declare(names map[string]bool, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		names[ownerOf(d)+d.Name.Name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if s, ok := s.(*ast.TypeSpec); ok {
				names[s.Name.Name] = true
				declareFields(names, s)
			}
		}
	}
}

// declareFields adds the fields of a struct.
func declareFields(names map[string]bool, s *ast.TypeSpec) {
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range st.Fields.List {
		for _, n := range f.Names {
			names[s.Name.Name+"."+n.Name] = true
		}
	}
}
