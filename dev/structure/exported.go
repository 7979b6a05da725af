package main

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

type exportedCmd struct {
	List bool `help:"Print what the root exports, by name."`
}

// Run prints how much each public package exports.
func (e *exportedCmd) Run(s *sources) error {
	pkgs, err := s.load("./...")
	if err != nil {
		return err
	}
	slices.SortFunc(pkgs, func(x, y *packages.Package) int { return strings.Compare(x.PkgPath, y.PkgPath) })
	fmt.Println(" types   funcs  methods  consts   vars     all  package")
	var sum counts
	for _, p := range pkgs {
		if !public(p) {
			continue
		}
		names := exportsOf(p)
		c := names.count()
		if c.all() > 0 {
			fmt.Println(c.row(p.PkgPath))
		}
		if p.PkgPath == p.Module.Path && e.List {
			names.print()
		}
		sum.add(c)
	}
	fmt.Println(sum.row("all public packages"))
	return nil
}

// public reports whether programs of others can import a package.
func public(p *packages.Package) bool {
	return p.Name != "main" && !slices.Contains(strings.Split(p.PkgPath, "/"), "internal")
}

// The kinds of what a package exports.
const (
	aType = iota
	aFunc
	aMethod
	aConst
	aVar
	kinds
)

// exports are the names that a package exports, by their kinds.
type exports [kinds][]string

// exportsOf finds what a package exports. A method counts once for each exported type that declares it, or that has it
// by embedding a type of the package that is not exported. A method that an exported interface asks for counts, too;
// fields do not.
func exportsOf(p *packages.Package) (all exports) {
	for _, name := range p.Types.Scope().Names() {
		o := p.Types.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		kind := kindOf(o)
		all[kind] = append(all[kind], name)
		if t, ok := o.(*types.TypeName); ok && !t.IsAlias() {
			for _, m := range methodsOf(t) {
				all[aMethod] = append(all[aMethod], name+"."+m)
			}
		}
	}
	return all
}

func kindOf(o types.Object) int {
	switch o.(type) {
	case *types.TypeName:
		return aType
	case *types.Func:
		return aFunc
	case *types.Const:
		return aConst
	}
	return aVar
}

// methodsOf returns the exported methods of a type.
func methodsOf(t *types.TypeName) (names []string) {
	if i, ok := t.Type().Underlying().(*types.Interface); ok {
		for m := range i.ExplicitMethods() {
			if m.Exported() {
				names = append(names, m.Name())
			}
		}
		return names
	}
	for sel := range types.NewMethodSet(types.NewPointer(t.Type())).Methods() {
		if m := sel.Obj().(*types.Func); m.Exported() && m.Pkg() == t.Pkg() &&
			(len(sel.Index()) == 1 || !ofExported(m)) {
			names = append(names, m.Name())
		}
	}
	return names
}

// ofExported reports whether a method is one of an exported type, where it counts already.
func ofExported(m *types.Func) bool {
	t := m.Signature().Recv().Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return ok && n.Obj().Exported()
}

func (e *exports) count() (c counts) {
	for kind, names := range e {
		c[kind] = len(names)
	}
	return c
}

func (e *exports) print() {
	for kind, names := range e {
		of := [kinds]string{"types", "functions", "methods", "constants", "variables"}[kind]
		fmt.Printf("  %s: %s\n", of, strings.Join(names, ", "))
	}
}

// counts are how many of each kind there are.
type counts [kinds]int

func (c *counts) add(other counts) {
	for kind, n := range other {
		c[kind] += n
	}
}

func (c *counts) all() (n int) {
	for _, of := range c {
		n += of
	}
	return n
}

func (c *counts) row(name string) string {
	of := "%6d  %6d  %7d  %6d  %5d  %6d  %s"
	return fmt.Sprintf(of, c[aType], c[aFunc], c[aMethod], c[aConst], c[aVar], c.all(), name)
}
