package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

type methodsCmd struct {
	Type string `arg:"" optional:"" placeholder:"TYPE" help:"The type (default: all types of the package that have methods or bools)."`
	Dir  string `default:"." placeholder:"DIR" help:"The directory of the package (default: the root)."`
	List bool   `help:"Print the names of the methods, by their files."`
}

// errNoType is of a name that is no type of the package.
var errNoType = errors.New("the package has no such type with methods or fields")

// Run prints the methods and bools of a type, or of all.
func (m *methodsCmd) Run(s *sources) error {
	p, err := s.one(m.Dir)
	if err != nil {
		return err
	}
	all := membersOf(p)
	if m.Type != "" {
		all = slices.DeleteFunc(all, func(t members) bool { return t.name != m.Type })
		if len(all) == 0 {
			return fmt.Errorf("%s: %w", m.Type, errNoType)
		}
	}
	fmt.Println("methods  exported  of embedded  bools  type")
	for _, t := range all {
		fmt.Printf("%7d  %8d  %11d  %5d  %s\n", t.methods, t.exported, t.promoted, len(t.bools), t.name)
		if m.Type != "" {
			for _, b := range t.bools {
				fmt.Println("  bool " + b)
			}
		}
		if m.List {
			t.tellFiles()
		}
	}
	return nil
}

// members are what a type has.
type members struct {
	name string
	// its own, the exported ones of them, and those of types of the module that it embeds
	methods, exported, promoted int
	bools                       []string
	byFile                      map[string][]string
}

// membersOf returns the members of each type of a package, those with the most methods first.
func membersOf(p *packages.Package) (all []members) {
	for _, name := range p.Types.Scope().Names() {
		o, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
		if !ok || o.IsAlias() || types.IsInterface(o.Type()) {
			continue
		}
		t := members{name: name, byFile: map[string][]string{}}
		t.count(p, o)
		t.bools = bools(o.Type().Underlying(), p.Module.Path, nil)
		if t.methods+t.promoted+len(t.bools) > 0 {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(x, y members) int {
		return cmp.Compare(y.methods+y.promoted,
			x.methods+x.promoted)
	})
	return all
}

// count counts methods.
func (t *members) count(p *packages.Package, o *types.TypeName) {
	for sel := range types.NewMethodSet(types.NewPointer(o.Type())).Methods() {
		m := sel.Obj()
		if len(sel.Index()) > 1 {
			if m.Pkg() != nil && within(m.Pkg().Path(), p.Module.Path) {
				t.promoted++
			}
			continue
		}
		if t.methods++; m.Exported() {
			t.exported++
		}
		file := filepath.Base(p.Fset.Position(m.Pos()).Filename)
		t.byFile[file] = append(t.byFile[file], m.Name())
	}
}

func (t *members) tellFiles() {
	files := make([]string, 0, len(t.byFile))
	for file := range t.byFile {
		files = append(files, file)
	}
	slices.SortFunc(files, func(x, y string) int {
		return cmp.Or(cmp.Compare(len(t.byFile[y]), len(t.byFile[x])), strings.Compare(x, y))
	})
	for _, file := range files {
		fmt.Printf("  %3d %s: %s\n", len(t.byFile[file]), file, strings.Join(t.byFile[file], ", "))
	}
}

// within reports whether a package is of a module.
func within(pkg, module string) bool { return pkg == module || strings.HasPrefix(pkg, module+"/") }

// bools returns the fields of a struct that are true or false, and those of the structs of the module that are
// embedded in it.
func bools(t types.Type, module string, path []string) (all []string) {
	s, ok := t.(*types.Struct)
	if !ok {
		return nil
	}
	for f := range s.Fields() {
		at := append(slices.Clone(path), f.Name())
		if isBool(f.Type()) {
			all = append(all, strings.Join(at, "."))
		}
		if inner := embedded(f); inner != nil && inner.Pkg() != nil && within(inner.Pkg().Path(), module) {
			all = append(all, bools(inner.Type().Underlying(), module, at)...)
		}
	}
	return all
}

// embedded is the type that a field embeds, or nil. A pointer to it counts as it does.
func embedded(f *types.Var) *types.TypeName {
	t := types.Unalias(f.Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if n, ok := t.(*types.Named); ok && f.Embedded() {
		return n.Obj()
	}
	return nil
}

// isBool reports whether values of a type are true or false: bool, a type made of it, and atomic.Bool.
func isBool(t types.Type) bool {
	if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == "sync/atomic" {
		return n.Obj().Name() == "Bool"
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}
