package housecheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"
)

// A place is where the product does something, by one rule; others may do it too, each for a reason.
type place struct {
	what string
	is   sight
	may  map[string]string
}

// A sight reports whether a piece of code does it.
type sight func(*types.Info, ast.Node) bool

var places = []place{
	{"rejects a request", methods("Reject", "RejectDepths", "RejectKeep"), map[string]string{
		"internal/admission":   "it is where the rule is: how long who is rejected is waited for, and what becomes of who could not be told",
		"":                     "it has the Request",
		"internal/association": "its Reject is that of the machine of package sctp",
		"perf":                 "it tells by a rejection that it takes a connection for plain TCP, and uses that afterwards",
		"internal/matrix":      "it tries out rejections, with depths too, and has the connection afterwards",
		"examples/kv":          "its code is to be copied, and nobody can copy an import of internal/admission",
		"examples/queue":       "as examples/kv",
	}},
	{"builds FPDUs", either(uses("internal/layout", "AppendCRC", "AppendMarker"),
		uses("internal/crc32c", "Weave")), map[string]string{
		"mpa":             "it is where the Writer is",
		"capture/decode":  "it shows the CRC that an FPDU should have",
		"conform":         "it compares a CRC with that of an FPDU from which a marker was taken",
		"internal/probe":  "it compares a peer's CRC with the one that is due",
		"internal/script": "it gives FPDUs that were spoiled a CRC that is right",
	}},
	{"computes a CRC32c", either(uses("internal/layout", "CRC32C"),
		uses("internal/crc32c", "Step", "Update", "Copy", "Weave"),
		uses("hash/crc32", "Castagnoli")), map[string]string{
		"internal/crc32c":   "it is where CRC32c is",
		"internal/layout":   "it has that of an FPDU, and where it stands",
		"mpa":               "it writes and verifies FPDUs",
		"internal/recovery": "it looks for FPDUs in the middle of a stream, which their CRCs show",
		"internal/chunk":    "SCTP's packets have one, too",
		"capture/decode":    "it tells zeros and swapped bytes in the CRC fields of a peer from damage",
		"conform":           "it says what the CRC of an FPDU of its own would have to be",
		"internal/probe":    "as conform",
		"internal/script":   "as conform",
		"examples/kv":       "its records have one, and its code is to be copied",
	}},
	{"has a Writer of FPDUs", uses("mpa", "NewWriter"), map[string]string{
		"internal/engine":        "it is the endpoint",
		"internal/script":        "it is the peer that is played by hand, of conform, peersim, probe and matrix",
		"internal/oooexperiment": "it sends ULPDUs over a TCP without an endpoint",
		"conform":                "it has an FPDU go with the Request, when there is no connection to be framed for yet",
	}},
	{"says what an implementation does", either(uses("internal/peers", "Behavior"),
		value("internal/peers", "Behavior")), map[string]string{
		"internal/peers":   "it is the table",
		"internal/peersim": "it does what it finds there",
	}},
}

// forC cannot be checked without a C compiler, and may import nothing with which it could do any of this: [mayImport].
const forC = "programs/engine"

// TestOnePlace holds that what has a place in the product is not done a second time elsewhere. It looks at what Linux
// builds, as TestImports does.
func TestOnePlace(t *testing.T) {
	t.Parallel()
	imports(t) // skips where there is no go command
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.LoadSyntax, BuildFlags: []string{"-tags=interop"},
		Env: append(os.Environ(), "GOOS=linux", "GOARCH=amd64"),
	}, "./...")
	must(t, err)
	seen := []string{forC}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			t.Error(p.Errors)
		}
		seen = append(seen, inModule(p.PkgPath))
		for _, place := range places {
			place.check(t, inModule(p.PkgPath), p.Syntax, p.TypesInfo)
		}
		for _, file := range p.Syntax {
			wantNoHexTexts(t, func(n ast.Node) string { return p.Fset.Position(n.Pos()).String() }, file, p.TypesInfo)
		}
	}
	for pkg := range mayImport {
		if !slices.Contains(seen, pkg) {
			t.Errorf("%q was not looked at", pkg)
		}
	}
}

// check compares what a package does with what it may.
func (p place) check(t *testing.T, pkg string, files []*ast.File, info *types.Info) {
	n := 0
	for _, file := range files {
		n += p.count(file, info)
	}
	switch {
	case n > 0 && p.may[pkg] == "":
		t.Errorf("%q %s, which has its place elsewhere: %v", pkg, p.what, p.may)
	case n == 0 && p.may[pkg] != "":
		t.Errorf("a row says that %q %s, which it does not", pkg, p.what)
	}
}

func (p place) count(file *ast.File, info *types.Info) (n int) {
	ast.Inspect(file, func(node ast.Node) bool {
		if node != nil && p.is(info, node) {
			n++
		}
		return true
	})
	return n
}

// uses sees the names of a package, whatever a file calls the package, and whether or not a function is called there.
func uses(pkg string, names ...string) sight {
	return func(info *types.Info, n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		return ok && isOf(info.Uses[id], pkg, names)
	}
}

// isOf reports whether something is one of these names of a package's scope.
func isOf(o types.Object, pkg string, names []string) bool {
	return o != nil && o.Pkg() != nil && o.Parent() == o.Pkg().Scope() && inModule(o.Pkg().Path()) == pkg &&
		slices.Contains(names, o.Name())
}

// methods sees methods, whatever they are of, and whether or not they are called.
func methods(names ...string) sight {
	return func(info *types.Info, n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return false
		}
		f, ok := info.Uses[id].(*types.Func)
		return ok && f.Signature().Recv() != nil && slices.Contains(names, f.Name())
	}
}

// value sees the values of a type that are written down, also those in a table that leaves the type out.
func value(pkg, name string) sight {
	return func(info *types.Info, n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return false
		}
		t := types.Unalias(info.TypeOf(lit))
		if p, ok := t.(*types.Pointer); ok {
			t = types.Unalias(p.Elem())
		}
		named, ok := t.(*types.Named)
		return ok && isOf(named.Obj(), pkg, []string{name})
	}
}

// either sees what one of them sees.
func either(all ...sight) sight {
	return func(info *types.Info, n ast.Node) bool {
		return slices.ContainsFunc(all, func(is sight) bool { return is(info, n) })
	}
}

// small are packages with a few of the names, for [TestPlacesFound].
var small = map[string]string{
	module:                      "package iwarp; type Request struct{}; func (*Request) Reject([]byte) error { return nil }; func (*Request) RejectDepths() {}",
	module + "/mpa":             "package mpa; func NewWriter() int { return 0 }",
	module + "/internal/layout": "package layout; func AppendCRC([]byte) []byte { return nil }; func CRC32C() uint32 { return 0 }",
	module + "/internal/crc32c": "package crc32c; func Update() uint32 { return 0 }",
	module + "/internal/peers":  "package peers; type Behavior struct{ Revision int }; type Table []Behavior; var Siw Behavior",
	"hash/crc32":                "package crc32; const IEEE, Castagnoli = 1, 2; func MakeTable(int) int { return 0 }",
	"example.org/layout":        "package layout; func AppendCRC() {}",
	"example.org/manners":       "package manners; type Behavior struct{}",
}

// TestPlacesFound finds what does something, however it is written, and not what only has the name, such as an option
// of rping's.
func TestPlacesFound(t *testing.T) {
	t.Parallel()
	const reject, framed, crc, writer, table = 0, 1, 2, 3, 4
	const (
		root, layout, crc32c = `import "` + module + `"; `, `import "` + module + `/internal/layout"; `,
			`import "` + module + `/internal/crc32c"; `
		peers, hash = `import "` + module + `/internal/peers"; `, `import "hash/crc32"; `
	)
	for _, c := range []struct {
		src         string
		place, want int
	}{
		{root + `func f(r *iwarp.Request) { _ = r.Reject(nil); r.RejectDepths() }`, reject, 2},
		{root + `func f(r *iwarp.Request) { no := r.Reject; _ = no(nil) }`, reject, 1},
		{root + `var no = (*iwarp.Request).Reject`, reject, 1},
		{root + `type one interface{ Reject([]byte) error }; func f(r *iwarp.Request) { _ = one(r).Reject(nil) }`,
			reject, 1},
		{`type config struct { Reject *string }; func f(c config) bool { return c.Reject != nil }`, reject, 0},
		{`type c struct{}; func (c) Reject(b []byte) { }`, reject, 0},
		{layout + `var b = layout.AppendCRC(nil)`, framed, 1},
		{layout + `var b = layout.AppendCRC`, framed, 1},
		{`import other "` + module + `/internal/layout"; var b = other.AppendCRC(nil)`, framed, 1},
		{`import . "` + module + `/internal/layout"; var b = AppendCRC(nil)`, framed, 1},
		{`import "example.org/layout"; func f() { layout.AppendCRC() }`, framed, 0},
		{layout + `var b = layout.CRC32C()`, crc, 1},
		{crc32c + `var b = crc32c.Update()`, crc, 1},
		{hash + `var b = crc32.MakeTable(crc32.Castagnoli)`, crc, 1},
		{hash + `var b = crc32.MakeTable(crc32.IEEE)`, crc, 0},
		{`import "` + module + `/mpa"; var w = mpa.NewWriter()`, writer, 1},
		{peers + `var b = peers.Behavior{Revision: 1}`, table, 2}, // the name, and the value
		{peers + `var b = []peers.Behavior{{Revision: 1}}`, table, 2},
		{peers + `var b = []*peers.Behavior{{Revision: 1}, {}}`, table, 3},
		{peers + `var b = map[string]peers.Behavior{"siw": {Revision: 1}}`, table, 2},
		{peers + `var b = peers.Table{{Revision: 1}}`, table, 1},
		{peers + `var b = new(peers.Behavior)`, table, 1},
		{peers + `var b = peers.Siw.Revision`, table, 0},
		{`import "example.org/manners"; var b = manners.Behavior{}`, table, 0},
	} {
		if got := places[c.place].count(typed(t, "p", "package p; "+c.src)); got != c.want {
			t.Errorf("%s: %d, want %d", c.src, got, c.want)
		}
	}
}

// typed checks a file of a package, which may import those of [small].
func typed(t *testing.T, path, src string) (*ast.File, *types.Info) {
	t.Helper()
	file, _, info, err := checkSmall(path, src)
	must(t, err)
	return file, info
}

func checkSmall(path, src string) (*ast.File, *types.Package, *types.Info, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path+".go", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, nil, err
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	pkg, err := (&types.Config{Importer: smallOnes{}}).Check(path, fset, []*ast.File{file}, info)
	return file, pkg, info, err
}

// smallOnes imports the packages of [small].
type smallOnes struct{}

func (smallOnes) Import(path string) (*types.Package, error) {
	_, pkg, _, err := checkSmall(path, small[path])
	return pkg, err
}
