package iwarp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// A place is where the product does something, by one rule; others may do it too, each for a reason.
type place struct {
	what string
	uses func(*ast.File) int
	may  map[string]string
}

var places = []place{
	{"rejects a request", calls("Reject", "RejectDepths"), map[string]string{
		"internal/refuse":      "it is where the rule is: how long who is rejected is waited for, and what becomes of who could not be told",
		"":                     "it has the Request",
		"internal/association": "its Reject is that of the machine of package sctp",
		"internal/matrix":      "it tries out rejections, with depths too, and has the connection afterwards",
		"programs/engine":      "its Reject is that of programs/verbs, which goes by internal/refuse",
		"examples/kv":          "its code is to be copied, and nobody can copy an import of internal/refuse",
		"examples/queue":       "as examples/kv",
	}},
	{"builds FPDUs", calls("layout.AppendCRC", "layout.AppendMarker"), map[string]string{
		"mpa":             "it is where the Writer is",
		"conform":         "it compares a CRC with that of an FPDU from which a marker was taken",
		"internal/probe":  "it compares a peer's CRC with the one that is due",
		"internal/script": "it gives FPDUs that were spoiled a CRC that is right",
	}},
	{"has a Writer of FPDUs", calls("mpa.NewWriter"), map[string]string{
		"internal/engine": "it is the endpoint",
		"internal/script": "it is the peer that is played by hand, of conform, peersim, probe and matrix",
		"internal/study":  "it sends ULPDUs over a TCP without an endpoint",
		"conform":         "it has an FPDU go with the Request, when there is no connection to be framed for yet",
	}},
	{"spells the key of a startup frame", literals("MPA ID "), map[string]string{"mpa": "it is where the frames are"}},
	{"says what an implementation does", composites("Behavior", "peers.Behavior"), map[string]string{"internal/peers": "it is the table"}},
}

// TestOnePlace holds that what has a place in the product is not done a second time elsewhere.
func TestOnePlace(t *testing.T) {
	for pkg := range mayImport {
		files, err := filesOf(pkg, 0)
		must(t, err)
		for _, p := range places {
			n := 0
			for name, file := range files {
				if found := p.uses(file); found > 0 {
					n += found
					if p.may[pkg] == "" {
						t.Errorf("%s %s, which has its place elsewhere: %v", name, p.what, p.may)
					}
				}
			}
			if p.may[pkg] != "" && n == 0 {
				t.Errorf("a row says that %q %s, which it does not", pkg, p.what)
			}
		}
	}
}

// calls counts the calls of functions, such as "layout.AppendCRC", or of methods, such as "Reject", whatever they are of.
func calls(names ...string) func(*ast.File) int {
	return func(file *ast.File) int {
		return count(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			return ok && isNamed(call.Fun, names)
		})
	}
}

// composites counts the values of types that are written down.
func composites(names ...string) func(*ast.File) int {
	return func(file *ast.File) int {
		return count(file, func(n ast.Node) bool {
			value, ok := n.(*ast.CompositeLit)
			return ok && value.Type != nil && isNamed(value.Type, names)
		})
	}
}

// literals counts the texts that begin so.
func literals(begin string) func(*ast.File) int {
	return func(file *ast.File) int {
		return count(file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			return ok && text.Kind == token.STRING && strings.HasPrefix(text.Value[1:], begin)
		})
	}
}

func count(file *ast.File, is func(ast.Node) bool) (n int) {
	ast.Inspect(file, func(node ast.Node) bool {
		if is(node) {
			n++
		}
		return true
	})
	return n
}

// isNamed reports whether an expression is one of these names, which are those of a package's, of methods, or of the file's own package.
func isNamed(e ast.Expr, names []string) bool {
	for _, name := range names {
		pkg, member, qualified := strings.Cut(name, ".")
		switch e := e.(type) {
		case *ast.Ident:
			if !qualified && e.Name == name {
				return true
			}
		case *ast.SelectorExpr:
			x, _ := e.X.(*ast.Ident)
			if !qualified && e.Sel.Name == name || qualified && e.Sel.Name == member && x != nil && x.Name == pkg {
				return true
			}
		}
	}
	return false
}

// TestUsesFound finds calls, and not what only has the name, such as an option of rping's.
func TestUsesFound(t *testing.T) {
	reject, framed, key, table := places[0].uses, places[1].uses, places[3].uses, places[4].uses
	for _, c := range []struct {
		src  string
		uses func(*ast.File) int
		want int
	}{
		{`func f(r *iwarp.Request) { _, _ = r.Reject(nil); g(r.RejectDepths(nil, 1, 1)) }`, reject, 2},
		{`func f(c config) bool { return c.Reject != nil }`, reject, 0},
		{`type t struct{ Reject *string }; func (t) Reject(b []byte) { }`, reject, 0},
		{`var b = layout.AppendCRC(nil, 1)`, framed, 1},
		{`var b = other.AppendCRC(nil, 1)`, framed, 0},
		{"const a, b, c = \"MPA ID Req Frame\", `MPA ID`, \"an MPA ID \"", key, 1},
		{`var b, c = peers.Behavior{Revision: 1}, other.Manners{}`, table, 1},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+c.src, parser.SkipObjectResolution)
		must(t, err)
		if got := c.uses(file); got != c.want {
			t.Errorf("%s: %d, want %d", c.src, got, c.want)
		}
	}
}
