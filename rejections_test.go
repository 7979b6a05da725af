package iwarp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// mayReject are the packages whose code calls a Reject, with the reason. All others go by internal/refuse, which decides how long
// who is rejected is waited for.
var mayReject = map[string]string{
	"":                     "it has the Request",
	"internal/association": "its Reject is that of the machine of package sctp",
	"internal/matrix":      "it tries out rejections, with depths too, and has the connection afterwards",
	"internal/refuse":      "it is where the rule is",
	"programs/engine":      "its Reject is that of programs/verbs, which goes by internal/refuse",
	"examples/kv":          "its code is to be copied, and nobody can copy an import of internal/refuse",
	"examples/queue":       "as examples/kv",
}

// TestRejections holds that servers reject by internal/refuse.
func TestRejections(t *testing.T) {
	for pkg := range mayImport {
		files, err := filesOf(pkg, 0)
		must(t, err)
		found := false
		for name, file := range files {
			if n := rejections(file); n > 0 {
				found = true
				if mayReject[pkg] == "" {
					t.Errorf("%s calls Reject: internal/refuse does that", name)
				}
			}
		}
		if mayReject[pkg] != "" && !found {
			t.Errorf("mayReject has a row for %q, which calls no Reject", pkg)
		}
	}
}

// rejections returns how often a file calls a method Reject or RejectDepths.
func rejections(file *ast.File) (n int) {
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Reject" || sel.Sel.Name == "RejectDepths") {
			n++
		}
		return true
	})
	return n
}

// TestRejectionsFound finds calls. An option of the name, as rping has one, is none.
func TestRejectionsFound(t *testing.T) {
	for src, want := range map[string]int{
		`func f(r *iwarp.Request) { _, _ = r.Reject(nil) }`:              1,
		`func f(r *iwarp.Request) { g(r.RejectDepths(nil, 1, 1)) }`:      1,
		`func f(c config) bool { return c.Reject != nil }`:               0,
		`func f(d *refuse.Door) { _ = d.Refuse(nil, nil) }`:              0,
		`type t struct{ Reject *string }; func (t) Reject(b []byte) { }`: 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+src, parser.SkipObjectResolution)
		must(t, err)
		if got := rejections(file); got != want {
			t.Errorf("%s: %d, want %d", src, got, want)
		}
	}
}
