package housecheck

import (
	"go/ast"
	"go/parser"
	"regexp"
	"testing"
)

// A tag names a requirement of docs/requirements.md. Whoever reads the documentation of a package has not read that.
var tag = regexp.MustCompile(`\[[A-Z][0-9]{2}\]`)

// TestNoTagsInDocs: the documentation of what packages export names no requirements; their code does.
func TestNoTagsInDocs(t *testing.T) {
	for pkg := range mayImport {
		files, err := filesOf(pkg, parser.ParseComments)
		must(t, err)
		for name, f := range files {
			for _, d := range f.Decls {
				if doc := docOf(d); doc != nil && tag.MatchString(doc.Text()) {
					t.Errorf("%s: %q", name, tag.FindString(doc.Text()))
				}
			}
		}
	}
}

// docOf returns the documentation of an exported declaration.
func docOf(d ast.Decl) *ast.CommentGroup {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || exportedType(d.Recv.List[0].Type)) {
			return d.Doc
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					return d.Doc
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() {
					return d.Doc
				}
			}
		}
	}
	return nil
}

// exportedType reports whether a method's receiver is of an exported type.
func exportedType(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return exportedType(e.X)
	case *ast.IndexExpr:
		return exportedType(e.X)
	case *ast.Ident:
		return e.IsExported()
	}
	return false
}
