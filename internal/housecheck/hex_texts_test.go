package housecheck

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// verbs are those of a format, of which the second group is what is counted as an argument too, and the last the
// letter.
var verbs = regexp.MustCompile(`%[-+# 0]*(?:\d+|(\*))?(?:\.(?:\d+|(\*)))?([a-zA-Z%])`)

// hexTexts returns the arguments of a call that are printed in hexadecimal digits although their type has a method
// String or Error: fmt then prints the letters of that text, as 3136333832 for a 16382. A format is any constant text
// in front of what it is for.
func hexTexts(info *types.Info, n ast.Node) (found []string) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	for i, arg := range call.Args {
		v := info.Types[arg].Value
		if v == nil || v.Kind() != constant.String {
			continue
		}
		for at, verb := range verbsOf(constant.StringVal(v)) {
			if at += i + 1; at < len(call.Args) && (verb == "x" || verb == "X") &&
				hasText(info.TypeOf(call.Args[at]), 0) {
				found = append(found, fmt.Sprintf("%%%s of a %v", verb, info.TypeOf(call.Args[at])))
			}
		}
	}
	return found
}

// verbsOf returns the letter for each argument of a format.
func verbsOf(format string) (all []string) {
	for _, m := range verbs.FindAllStringSubmatch(format, -1) {
		for _, star := range m[1:3] {
			if star != "" {
				all = append(all, "d")
			}
		}
		if m[3] != "%" {
			all = append(all, m[3])
		}
	}
	return all
}

// hasText reports whether fmt asks a value, or those in it, for its text.
func hasText(t types.Type, depth int) bool {
	if t == nil || depth > 4 {
		return false
	}
	if slices.ContainsFunc([]string{"String", "Error"}, func(name string) bool { return isTextMethod(t, name) }) {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Slice:
		return hasText(u.Elem(), depth+1)
	case *types.Array:
		return hasText(u.Elem(), depth+1)
	case *types.Map:
		return hasText(u.Key(), depth+1) || hasText(u.Elem(), depth+1)
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() && hasText(f.Type(), depth+1) {
				return true
			}
		}
	}
	return false
}

func isTextMethod(t types.Type, name string) bool {
	o, _, _ := types.LookupFieldOrMethod(t, false, nil, name)
	f, ok := o.(*types.Func)
	return ok && f.Signature().Params().Len() == 0 && f.Signature().Results().Len() == 1
}

// TestHexTextsFound finds what is printed so, however the function is called, and not what has no text.
// [TestOnePlace] looks for it in all packages.
func TestHexTextsFound(t *testing.T) {
	t.Parallel()
	const head = `package p; type depth uint16; func (depth) String() string { return "" }; type plain uint16; func say(string, ...any) {}; `
	for src, want := range map[string]int{
		`func f(d depth) { say("0x%x", d) }`:                         1,
		`func f(d depth) { say("%d %04X", 1, d) }`:                   1,
		`func f(d depth) { say("%*d %#x", 1, 2, d) }`:                1,
		`func f(d depth) { say("%% %.*f%x", 1, 2.0, d) }`:            1,
		`func f(d []depth) { say("%x", d) }`:                         1,
		`func f(d struct{ D depth }) { say("%x", d) }`:               1,
		`func f(err error) { say("%x", err) }`:                       1,
		`const form = "%x"; func f(d depth) { say(form, d) }`:        1,
		`func f(d depth) { say("%x %d", uint16(d), d) }`:             0,
		`func f(d plain, e depth) { say("%x %v", d, e) }`:            0,
		`func f(d depth) { say("%x") ; say("100 %"+"x", []byte{}) }`: 0,
	} {
		file, info := typed(t, "p", head+src)
		n := 0
		ast.Inspect(file, func(node ast.Node) bool {
			n += len(hexTexts(info, node))
			return true
		})
		if n != want {
			t.Errorf("%s: %d, want %d", src, n, want)
		}
	}
}

// wantNoHexTexts wants a file to have no such call.
func wantNoHexTexts(t *testing.T, at func(ast.Node) string, file *ast.File, info *types.Info) {
	ast.Inspect(file, func(node ast.Node) bool {
		if found := hexTexts(info, node); len(found) > 0 {
			t.Errorf("%s: %s: print its number", at(node), strings.Join(found, ", "))
		}
		return true
	})
}
