package housecheck

import (
	"go/ast"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestVerbsDocument: the names of Go in docs/from-verbs.md exist, those in its tables and those in its text.
func TestVerbsDocument(t *testing.T) {
	names := exportedNames(t, ".", "")
	maps.Copy(names, exportedNames(t, "mpa", "mpa."))
	text, err := os.ReadFile("docs/from-verbs.md")
	must(t, err)
	found := 0
	for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(text), -1) {
		name := code[1]
		if !regexp.MustCompile(`^(mpa\.)?[A-Z]\w*(\.\w+)?$`).MatchString(name) || strings.HasPrefix(name, "Test") {
			continue
		}
		found++
		if !names[name] {
			t.Errorf("there is no %s", name)
		}
	}
	if found < 100 {
		t.Errorf("only %d names", found)
	}
}

// exportedNames has what a package exports: X for a type, function or constant, T.M for a method, and T.F for a field.
func exportedNames(t *testing.T, pkg, prefix string) map[string]bool {
	t.Helper()
	files, err := filesOf(pkg, 0)
	must(t, err)
	names := map[string]bool{}
	for _, file := range files {
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				names[prefix+ownerOf(decl)+decl.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					exportedBy(spec, func(name string) { names[prefix+name] = true })
				}
			}
		}
	}
	return names
}

// ownerOf is the type of a method, with a dot, and empty for a function.
func ownerOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	expr := f.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	if id, ok := expr.(*ast.Ident); ok {
		return id.Name + "."
	}
	return "?."
}

func exportedBy(spec ast.Spec, add func(string)) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			add(name.Name)
		}
	case *ast.TypeSpec:
		add(spec.Name.Name)
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					add(spec.Name.Name + "." + name.Name)
				}
			}
		}
	}
}
