package housecheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// Texts are for people: what an error or a finding is, code asks its type, its code or its Verdict. TestNoTextDecides
// holds that no code that is not a test looks into the text of an error, or into a field that says why.

// why are the fields, and the methods of no arguments, whose texts say why something is so.
var why = []string{"Error", "Reason", "reason", "Why", "why", "Hint", "hint", "Advice", "advice", "Expected", "Got",
	"Answer", "Text", "text"}

// looks are the functions of packages strings and bytes, and the methods of a regular expression or a Replacer, by
// which a text is looked into or rewritten.
var looks = []string{
	"Contains", "ContainsAny", "ContainsFunc", "ContainsRune", "Count", "Cut", "CutPrefix", "CutSuffix",
	"EqualFold", "Fields", "FieldsFunc",
	"FindAllString", "FindString", "FindStringIndex", "FindStringSubmatch", "HasPrefix", "HasSuffix", "Index",
	"IndexAny", "IndexByte", "IndexFunc", "LastIndex", "Map",
	"MatchString", "Replace", "ReplaceAll", "ReplaceAllString", "Split", "SplitN", "SplitSeq", "FieldsSeq", "Trim",
	"TrimFunc", "TrimLeft", "TrimPrefix", "TrimRight",
	"TrimSpace", "TrimSuffix",
}

// mark is the line in the comment of a function that may do so all the same. What follows says why.
const mark = "//housecheck:texts "

// TestNoTextDecides looks for such code in all packages. What was assigned within a function counts as what it was
// assigned from.
func TestNoTextDecides(t *testing.T) {
	for pkg := range mayImport {
		files, err := filesOf(pkg, parser.ParseComments)
		must(t, err)
		for name, f := range files {
			for _, d := range f.Decls {
				wantNoTexts(t, name, d)
			}
		}
	}
}

// wantNoTexts judges a declaration, which has a mark if it needs one, and only then.
func wantNoTexts(t *testing.T, file string, d ast.Decl) {
	t.Helper()
	found := textsIn(d)
	switch excused := isMarked(d); {
	case !excused && len(found) > 0:
		t.Errorf("%s: %s: %s", file, nameOf(d), strings.Join(found, ", "))
	case excused && len(found) == 0:
		t.Errorf("%s: %s no longer looks into a text: leave out its mark", file, nameOf(d))
	}
}

// isMarked reports whether a function is marked.
func isMarked(d ast.Decl) bool {
	fn, ok := d.(*ast.FuncDecl)
	return ok && fn.Doc != nil && slices.ContainsFunc(fn.Doc.List,
		func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, mark) })
}

// nameOf is the name of a function, and empty for other declarations.
func nameOf(d ast.Decl) string {
	if fn, ok := d.(*ast.FuncDecl); ok {
		return fn.Name.Name
	}
	return ""
}

// textsIn returns what a declaration does with texts that it should not.
func textsIn(d ast.Decl) (found []string) {
	texts := texts{}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			texts.assign(n)
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(looks, s.Sel.Name) &&
				slices.ContainsFunc(n.Args, texts.has) {
				found = append(found, fmt.Sprintf("%s of a text", s.Sel.Name))
			}
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (texts.compared(n.X, n.Y) || texts.compared(n.Y, n.X)) {
				found = append(found, "a text is compared")
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && texts.chooses(n) {
				found = append(found, "a switch on a text")
			}
		case *ast.IndexExpr:
			if texts.has(n.Index) {
				found = append(found, "a text is a key")
			}
		case *ast.SliceExpr:
			if texts.has(n.X) {
				found = append(found, "a text is cut")
			}
		}
		return true
	})
	return found
}

// texts are the variables of a function that hold a text.
type texts map[string]bool

func (t texts) assign(a *ast.AssignStmt) {
	for i, to := range a.Lhs {
		if v, ok := to.(*ast.Ident); ok && len(a.Lhs) == len(a.Rhs) && t.has(a.Rhs[i]) {
			t[v.Name] = true
		}
	}
}

// compared reports whether x is a text that is compared with y. That there is none may be asked, and what is compared
// with a number or with a constant of another package is none.
func (t texts) compared(x, y ast.Expr) bool {
	if !t.has(x) {
		return false
	}
	switch y := y.(type) {
	case *ast.BasicLit:
		return y.Kind == token.STRING && y.Value != `""`
	case *ast.SelectorExpr:
		return t.has(y)
	case *ast.Ident:
		return y.Name != "nil"
	}
	return true
}

// chooses reports whether a switch has a text to choose by.
func (t texts) chooses(s *ast.SwitchStmt) bool {
	return slices.ContainsFunc(s.Body.List, func(clause ast.Stmt) bool {
		return slices.ContainsFunc(clause.(*ast.CaseClause).List, func(e ast.Expr) bool { return t.compared(s.Tag, e) })
	})
}

// has reports whether an expression is a text, or holds one.
func (t texts) has(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return t[e.Name]
	case *ast.ParenExpr:
		return t.has(e.X)
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (t.has(e.X) || t.has(e.Y))
	case *ast.SelectorExpr:
		return slices.Contains(why[1:], e.Sel.Name) // without a call, Error is no text
	case *ast.CallExpr:
		return t.called(e)
	}
	return false
}

// called reports whether a call returns a text: of a method that says why, or of one that is given a text.
func (t texts) called(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return slices.ContainsFunc(c.Args, t.has)
	}
	return len(c.Args) == 0 && slices.Contains(why, s.Sel.Name) || strings.HasPrefix(s.Sel.Name, "Sprint") &&
		slices.ContainsFunc(c.Args, t.has)
}

// TestTextsAreFound: each way to decide by a text is found, and what only prints one is not.
func TestTextsAreFound(t *testing.T) {
	for body, want := range map[string]int{
		`if strings.Contains(err.Error(), "reset") { return }`:             1,
		`s := err.Error(); if strings.HasPrefix(s, "mpa: ") { return }`:    1,
		`s := strings.TrimPrefix(e.Reason, "bad ")`:                        1,
		`if err.Error() == "EOF" { return }`:                               1,
		`if r.Why != gone { return }`:                                      1,
		`s := fmt.Sprintf("%s!", f.Hint); if "x!" == s { return }`:         1,
		`switch e.Reason { case "silent": return }`:                        1,
		`n := known[err.Error()]`:                                          1,
		`s := "a: " + e.text(); s = s[3:]`:                                 1,
		`if pattern.MatchString(err.Error()) { return }`:                   1,
		`if e.Reason != "" { print(e.Reason + ": " + err.Error()) }`:       0,
		`switch e.Reason { case capture.EndFIN: return }`:                  0,
		`if errors.Is(err, io.EOF) || strings.Contains(name, "x") { g() }`: 0,
		`n := c.Findings[decode.Error]`:                                    0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p; func f() { "+body+" }",
			parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := textsIn(f.Decls[0]); len(got) != want {
			t.Errorf("%s: %q, want %d", body, got, want)
		}
	}
}
