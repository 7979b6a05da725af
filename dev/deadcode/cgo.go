package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// loadForC reads a package that imports C, whatever its build constraints say. The go command would call a C compiler
// for it, which need not be there; what C declares is taken on trust.
func loadForC(dir, name string, others []*packages.Package) (*packages.Package, error) {
	p := &packages.Package{
		PkgPath: others[0].Module.Path + "/" + name, Name: "main", Fset: token.NewFileSet(),
		TypesInfo: &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}},
	}
	files, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(name), "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(p.Fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.Syntax = append(p.Syntax, f)
	}
	known := imports{"unsafe": types.Unsafe}
	packages.Visit(others, nil, func(p *packages.Package) { known[p.PkgPath] = p.Types })
	check := types.Config{Importer: known, FakeImportC: true, Sizes: types.SizesFor("gc", "amd64")}
	p.Types, err = check.Check(p.PkgPath, p.Fset, p.Syntax, p.TypesInfo)
	return p, err
}

// imports are packages by their paths.
type imports map[string]*types.Package

// Import returns one.
func (i imports) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("nothing else in the module imports %s", path)
}

// isForC reports whether C may call a function.
//
//housecheck:texts It reads a comment of source code, not a reason.
func isForC(d *ast.FuncDecl) bool {
	if d.Doc == nil {
		return false
	}
	for _, c := range d.Doc.List {
		if c.Text == "//export "+d.Name.Name {
			return true
		}
	}
	return false
}
