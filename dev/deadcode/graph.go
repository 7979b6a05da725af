package main

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A node is a function, method, type or variable: its package's path within the module,
// a dot and its name, with its receiver's in front for a method.
type node string

// A graph says what refers to what in a module, except for its tests.
type graph struct {
	path      string // of the module
	refers    map[node]map[node]bool
	functions map[node]function
}

// A function is what is known of one, or of a method.
type function struct {
	pkg      string // its path within the module
	runs     bool   // the main function of a command, or one that C calls
	exported bool   // and its receiver, too
}

// load reads the module of a directory, as Linux on amd64 builds it: all packages, and those that are for C.
func load(dir string, forC ...string) (*graph, error) {
	pkgs, err := packages.Load(&packages.Config{
		Dir: dir, Mode: packages.LoadSyntax | packages.NeedModule, BuildFlags: []string{"-tags=interop"},
		Env: append(os.Environ(), "GOOS=linux", "GOARCH=amd64"),
	}, "./...")
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(pkgs) > 0 || len(pkgs) == 0 {
		return nil, errors.New("the packages cannot be loaded")
	}
	g := &graph{path: pkgs[0].Module.Path, refers: map[node]map[node]bool{}, functions: map[node]function{}}
	for _, name := range forC {
		p, err := loadForC(dir, name, pkgs)
		if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
	interfaces := interfacesIn(pkgs)
	for _, p := range pkgs {
		for _, f := range p.Syntax {
			for _, d := range f.Decls {
				g.declare(p, d)
			}
		}
		g.dispatch(p.Types, interfaces)
	}
	return g, nil
}

// declare refers from what is declared to all that the declaration mentions.
func (g *graph) declare(p *packages.Package, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		n := g.node(p.TypesInfo.Defs[d.Name])
		g.mentions(p, n, d)
		if d.Recv != nil || d.Name.Name != "init" { // which runs with its package
			names := strings.Split(nameOf(p.TypesInfo.Defs[d.Name]), ".")
			g.functions[n] = function{
				pkg:      strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, g.path), "/"),
				runs:     p.Name == "main" && d.Name.Name == "main" || isForC(d),
				exported: !slices.ContainsFunc(names, func(s string) bool { return !ast.IsExported(s) }),
			}
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec: // each variable refers to what the values do
				for _, name := range s.Names {
					g.mentions(p, g.node(p.TypesInfo.Defs[name]), s)
				}
			case *ast.TypeSpec:
				g.mentions(p, g.node(p.TypesInfo.Defs[s.Name]), s)
			}
		}
	}
}

// mentions refers from a node to what its declaration mentions, and to how the packages of
// that are initialized.
func (g *graph) mentions(p *packages.Package, n node, d ast.Node) {
	ast.Inspect(d, func(at ast.Node) bool {
		if isBlank(at) {
			return false
		}
		id, ok := at.(*ast.Ident)
		if to := g.node(p.TypesInfo.Uses[id]); ok && to != "" {
			g.refer(n, to)
			g.refer(n, g.in(p.TypesInfo.Uses[id].Pkg(), "init"))
		}
		return true
	})
}

// isBlank reports whether a statement only assigns to the blank identifier, and calls nothing.
func isBlank(n ast.Node) bool {
	var left, right []ast.Expr
	switch s := n.(type) {
	case *ast.AssignStmt:
		left, right = s.Lhs, s.Rhs
	case *ast.ValueSpec:
		right = s.Values
		for _, name := range s.Names {
			left = append(left, name)
		}
	}
	named := func(e ast.Expr) bool { id, ok := e.(*ast.Ident); return !ok || id.Name != "_" }
	return len(right) > 0 && !slices.ContainsFunc(left, named) && !slices.ContainsFunc(right, calls)
}

// calls reports whether an expression has a call in it, or receives.
func calls(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			found = true
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		}
		return !found
	})
	return found
}

func (g *graph) refer(from, to node) {
	if g.refers[from] == nil {
		g.refers[from] = map[node]bool{}
	}
	g.refers[from][to] = true
}

func (g *graph) in(p *types.Package, name string) node {
	return node(strings.TrimPrefix(p.Path(), g.path+"/") + "." + name)
}

// node is the node of an object, empty for what is none.
func (g *graph) node(o types.Object) node {
	if o == nil || o.Pkg() == nil || nameOf(o) == "" {
		return ""
	}
	return g.in(o.Pkg(), nameOf(o))
}

// nameOf names an object of a package's scope, or a method; empty for all others.
func nameOf(o types.Object) string {
	fn, ok := o.(*types.Func)
	if !ok && o.Parent() != o.Pkg().Scope() {
		return ""
	}
	if !ok || fn.Signature().Recv() == nil {
		return o.Name()
	}
	t := types.TypeString(fn.Origin().Signature().Recv().Type(), func(*types.Package) string { return "" })
	t, _, _ = strings.Cut(strings.TrimPrefix(t, "*"), "[")
	return t + "." + fn.Name()
}

// asked are methods that the standard library looks for with an interface that has no
// name.
var asked = []string{"Is", "As", "Unwrap", "Timeout", "Temporary", "Error"}

// dispatch has each type of a package refer to the methods by which it implements an
// interface: whoever has a value of the type can come to call them.
func (g *graph) dispatch(p *types.Package, interfaces map[*types.Interface]bool) {
	for _, name := range p.Scope().Names() {
		t, ok := p.Scope().Lookup(name).Type().(*types.Named)
		if !ok || types.IsInterface(t) || t.Obj().Name() != name {
			continue
		}
		set := types.NewMethodSet(types.NewPointer(t))
		// Reflection calls those of package main; what a type with parameters implements
		// depends on them.
		all := p.Name() == "main" || t.TypeParams().Len() > 0
		for sel := range set.Methods() {
			if all || slices.Contains(asked, sel.Obj().Name()) {
				g.refer(g.node(t.Obj()), g.node(sel.Obj()))
			}
		}
		for i := range interfaces {
			for m := range i.Methods() {
				if types.Implements(types.NewPointer(t), i) {
					g.refer(g.node(t.Obj()), g.node(set.Lookup(m.Pkg(), m.Name()).Obj()))
				}
			}
		}
	}
}

// interfacesIn returns all interfaces with a name that packages can know: their own, and
// those of what they import.
func interfacesIn(pkgs []*packages.Package) map[*types.Interface]bool {
	all, seen := map[*types.Interface]bool{}, map[*types.Package]bool{}
	var visit func(p *types.Package)
	visit = func(p *types.Package) {
		if seen[p] {
			return
		}
		seen[p] = true
		for _, name := range p.Scope().Names() {
			if i, ok := p.Scope().Lookup(name).Type().Underlying().(*types.Interface); ok {
				all[i] = true
			}
		}
		for _, i := range p.Imports() {
			visit(i)
		}
	}
	for _, p := range pkgs {
		visit(p.Types)
	}
	return all
}

// reached is all that the main functions of commands, what the libraries export and some
// more refer to, directly or not.
func (g *graph) reached(libraries []string, more map[node]string) map[node]bool {
	todo := slices.Collect(maps.Keys(more))
	for n, f := range g.functions {
		if f.runs || f.exported && slices.Contains(libraries, f.pkg) {
			todo = append(todo, n)
		}
	}
	seen := map[node]bool{}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[n] {
			seen[n] = true
			for to := range g.refers[n] {
				todo = append(todo, to)
			}
		}
	}
	return seen
}
