package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/network"
)

// inOneWay is how errors of the command line name what is wrong: the command, then, if it is about some of its flags,
// these, and a colon after each.
var inOneWay = regexp.MustCompile(`^(%s|[a-z]+): (-{1,2}(%s|[A-Za-z][a-z-]*)(, -{1,2}[a-z-]+)*( and -{1,2}[a-z-]+)?: |[^-])`)

// TestErrorsNameFlagsInOneWay reads the sources: no error names a flag in a way of its own.
func TestErrorsNameFlagsInOneWay(t *testing.T) {
	packages, err := parser.ParseDir(token.NewFileSet(), ".", nil, parser.SkipObjectResolution) //nolint:staticcheck // build tags play no part
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	ast.Inspect(packages["main"], func(n ast.Node) bool {
		call, _ := n.(*ast.CallExpr)
		if call == nil || len(call.Args) == 0 {
			return true
		}
		name, _ := call.Fun.(*ast.Ident)
		text, _ := call.Args[0].(*ast.BasicLit)
		if name == nil || text == nil || !slices.Contains([]string{"usage", "findings"}, name.Name) {
			return true
		}
		seen++
		if format, _ := strconv.Unquote(text.Value); !inOneWay.MatchString(format) &&
			strings.Trim(format, "%w") == format {
			t.Errorf("%s(%q)", name.Name, format)
		}
		return true
	})
	if seen < 40 {
		t.Errorf("%d errors were found", seen)
	}
}

// TestWarn: who listens at a TUN device that is not up, or that is still to be made, is told.
func TestWarn(t *testing.T) {
	for name, want := range map[string]string{network.OnTUN(
		"iwarp77=198.51.100.2"): "iwarp: rping: --tun: there is no TUN device iwarp77: ",
		network.UserTCP: "", network.TCP: ""} {
		over, err := network.Open(name)
		var told strings.Builder
		if warn(streams{err: &told}, "rping", over); err != nil || !strings.HasPrefix(told.String(), want) ||
			want == "" && told.String() != "" {
			t.Errorf("%s: %v: %q", name, err, &told)
		}
	}
}
