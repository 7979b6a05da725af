package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A change is what a mutant does to an operator: fn of switch.txt does it, and to are the
// operators that its mutants have instead, numbered in this order.
type change struct {
	fn string
	to []string
}

// changes are those of binary operators and, without "=", of assignments.
var changes = map[string]change{
	"<": {"mutantLess", []string{"<=", ">="}}, "<=": {"mutantLessEq", []string{"<", ">"}},
	">": {"mutantMore", []string{">=", "<="}}, ">=": {"mutantMoreEq", []string{">", "<"}},
	"==": {"mutantNot", []string{"!="}}, "!=": {"mutantNot", []string{"=="}},
	"&&": {"mutantAnd", []string{"||"}}, "||": {"mutantOr", []string{"&&"}},
	"+": {"mutantAdd", []string{"-"}}, "-": {"mutantSub", []string{"+"}},
	"&": {"mutantBitAnd", []string{"|"}}, "|": {"mutantBitOr", []string{"&"}},
	"<<": {"mutantShl", []string{">>"}}, ">>": {"mutantShr", []string{"<<"}},
}

// A mutant is one change of one place.
type mutant struct {
	at   token.Position
	key  string // file, function and change, which stay when lines move
	kind kind   // why it makes no difference; empty: nobody knows that it makes none
}

// A pkg is the package to be mutated.
type pkg struct {
	dir     string
	set     *token.FileSet
	files   []*ast.File
	info    types.Info
	mutants []mutant
}

// load parses a package and checks its types.
func load(dir string) (*pkg, error) {
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	p := &pkg{dir: dir, set: token.NewFileSet(), info: info}
	own, err := exec.Command("go", "list", "-f", `{{range .GoFiles}}{{println .}}{{end}}`, "./"+dir).Output()
	if err != nil {
		return nil, fmt.Errorf("go list ./%s: %w", dir, err)
	}
	for _, name := range strings.Fields(string(own)) {
		f, err := parser.ParseFile(p.set, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	deps, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./"+dir).Output()
	if err != nil {
		return nil, fmt.Errorf("go list -export ./%s: %w", dir, err)
	}
	exports := map[string]string{}
	for _, line := range strings.Split(string(deps), "\n") {
		path, file, _ := strings.Cut(line, " ")
		exports[path] = file
	}
	config := types.Config{Importer: importer.ForCompiler(p.set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	_, err = config.Check(dir, p.set, p.files, &p.info)
	return p, err
}

// write puts the files named, or all, with every mutant in them into tmp, and returns the overlay.
func (p *pkg) write(tmp string, names []string) (overlay string, err error) {
	replace := map[string]string{}
	put := func(name, text string) error {
		whole, err := filepath.Abs(filepath.Join(p.dir, name))
		replace[whole] = filepath.Join(tmp, name)
		if err != nil {
			return err
		}
		return os.WriteFile(replace[whole], []byte(text), 0o600)
	}
	for _, f := range p.files {
		path := p.set.Position(f.Pos()).Filename
		if names != nil && !slices.Contains(names, filepath.Base(path)) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if err := put(filepath.Base(path), p.mutate(f, path, string(text))); err != nil {
			return "", err
		}
	}
	if err := put("mutant_switch.go", strings.Replace(helpers, "package main",
		"package "+p.files[0].Name.Name, 1)); err != nil {
		return "", err
	}
	list, _ := json.Marshal(map[string]any{"Replace": replace})
	overlay = filepath.Join(tmp, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// helpers are the functions that mutated expressions call.
//
//go:embed switch.txt
var helpers string

// A file is one that is being written anew.
type file struct {
	*pkg
	path, text    string
	fn            string            // the function that is being read
	opens, closes map[int]string    // what to insert at an offset; closes stand before opens
	cut           map[int]int       // how much to leave out at an offset
	bounds        map[ast.Expr]kind // conditions of which the bound makes no difference
}

// mutate returns the text of a file with all its mutants.
func (p *pkg) mutate(f *ast.File, path, text string) string {
	w := &file{
		pkg: p, path: path, text: text,
		opens: map[int]string{}, closes: map[int]string{}, cut: map[int]int{}, bounds: map[ast.Expr]kind{},
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if w.fn = d.Name.Name; d.Body != nil { // else it is written in assembly
				ast.Inspect(d.Body, w.visit)
			}
		case *ast.GenDecl:
			if w.fn = "(declarations)"; d.Tok == token.VAR {
				ast.Inspect(d, w.visit)
			}
		}
	}
	var b strings.Builder
	for at := 0; at < len(text); {
		b.WriteString(w.closes[at] + w.opens[at])
		next := at + max(w.cut[at], 1)
		if w.cut[at] == 0 {
			b.WriteByte(text[at])
		}
		at = next
	}
	return b.String()
}

func (w *file) offset(p token.Pos) int { return w.set.Position(p).Offset }

// src is the text from one position to another.
func (w *file) src(from, to token.Pos) string { return w.text[w.offset(from):w.offset(to)] }

// wrap puts text before and after a node; of two around the same place the outer comes first.
func (w *file) wrap(from, to token.Pos, before, after string) {
	w.opens[w.offset(from)] += before
	w.closes[w.offset(to)] = after + w.closes[w.offset(to)]
}

// instead puts text in the place of an operator.
func (w *file) instead(at token.Pos, op, text string) {
	w.opens[w.offset(at)] += text
	w.cut[w.offset(at)] = len(op)
}

// add enters mutants, one for each of the texts that take the place of what stands there.
func (w *file) add(at token.Pos, from string, to ...string) (id int) {
	short := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	id = len(w.mutants)
	for _, t := range to {
		key := fmt.Sprintf("%s %s: %s → %s", w.path, w.fn, short(from), short(t))
		w.mutants = append(w.mutants, mutant{at: w.set.Position(at), key: key})
	}
	return id
}

// visit enters the mutants of one node.
func (w *file) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		w.binary(n)
	case *ast.AssignStmt:
		if op := strings.TrimSuffix(n.Tok.String(), "="); len(n.Lhs) == 1 &&
			changes[op].fn != "" && n.Tok != token.DEFINE {
			w.assign(n.Lhs[0], n.Rhs[0], n.TokPos, op)
		}
	case *ast.IncDecStmt:
		op := n.Tok.String()
		other := map[string]string{"++": "--", "--": "++"}[op]
		x := w.src(n.X.Pos(), n.X.End())
		id := w.add(n.TokPos, x+op, x+other)
		w.instead(n.TokPos, op, fmt.Sprintf("= %s(%d, %s, 1)", changes[op[:1]].fn, id, x))
	case *ast.IfStmt:
		w.condition(n.Cond)
	case *ast.BlockStmt:
		w.list(n.List)
	case *ast.CaseClause:
		w.list(n.Body)
	case *ast.CommClause:
		w.list(n.Body)
	}
	return true
}

// binary enters the mutants of a binary expression that is no constant.
func (w *file) binary(n *ast.BinaryExpr) {
	op, tv := n.Op.String(), w.info.Types[n]
	c, ok := changes[op]
	if basic, _ := tv.Type.Underlying().(*types.Basic); !ok || tv.Value != nil || basic != nil &&
		basic.Info()&types.IsString != 0 {
		return
	}
	x, y := w.src(n.X.Pos(), n.X.End()), w.src(n.Y.Pos(), n.Y.End())
	var to []string
	for _, t := range c.to {
		to = append(to, x+" "+t+" "+y)
	}
	id := w.add(n.OpPos, x+" "+op+" "+y, to...)
	if len(to) == 2 { // the first of them changes the bound alone
		w.mutants[id].kind = w.ofBound(n)
	}
	switch op {
	case "==", "!=":
		w.wrap(n.Pos(), n.End(), fmt.Sprintf("%s(%d, ", c.fn, id), ")")
		return
	case "&&", "||":
		w.wrap(n.Pos(), n.End(), fmt.Sprintf("%s(%d, ", c.fn, id), ")})")
		w.instead(n.OpPos, op, ", func() bool { return (")
		return
	}
	w.wrap(n.Pos(), n.End(), fmt.Sprintf("%s(%d, ", c.fn, id), ")")
	w.instead(n.OpPos, op, ",")
	if op == "<<" && w.info.Types[n.X].Value != nil {
		own := types.TypeString(tv.Type, func(other *types.Package) string {
			if other.Path() == w.dir {
				return ""
			}
			return other.Name()
		})
		w.wrap(n.X.Pos(), n.X.End(), own+"(", ")")
	}
}

// assign enters the mutants of an assignment with an operator.
func (w *file) assign(left, right ast.Expr, at token.Pos, op string) {
	basic, _ := w.info.Types[left].Type.Underlying().(*types.Basic)
	if basic != nil && basic.Info()&types.IsString != 0 {
		return
	}
	x, y, c := w.src(left.Pos(), left.End()), w.src(right.Pos(), right.End()), changes[op]
	id := w.add(at, x+" "+op+"= "+y, x+" "+c.to[0]+"= "+y)
	w.instead(at, op+"=", fmt.Sprintf("= %s(%d, %s, ", c.fn, id, x))
	w.wrap(right.Pos(), right.End(), "", ")")
}

// condition enters the opposite of an if's condition, if no other mutant is that.
func (w *file) condition(cond ast.Expr) {
	if b, ok := cond.(*ast.BinaryExpr); ok && b.Op != token.LAND && b.Op != token.LOR {
		return
	}
	text := w.src(cond.Pos(), cond.End())
	id := w.add(cond.Pos(), "if "+text, "if !("+text+")")
	w.wrap(cond.Pos(), cond.End(), fmt.Sprintf("mutantNot(%d, ", id), ")")
}

// list enters the mutants of statements that follow each other.
func (w *file) list(list []ast.Stmt) {
	w.noteBounds(list)
	w.calls(list)
}

// calls enters, for each statement that is a call, its absence.
func (w *file) calls(list []ast.Stmt) {
	for _, s := range list {
		var call *ast.CallExpr
		switch s := s.(type) {
		case *ast.ExprStmt:
			call, _ = s.X.(*ast.CallExpr)
		case *ast.DeferStmt:
			call = s.Call
		}
		if call == nil || w.src(call.Fun.Pos(), call.Fun.End()) == "panic" {
			continue
		}
		text := w.src(s.Pos(), s.End())
		if len(text) > 80 {
			text = w.src(s.Pos(), call.Lparen) + "(...)"
		}
		id := w.add(s.Pos(), text, "nothing")
		_, deferred := s.(*ast.DeferStmt)
		w.mutants[id].kind = w.ofCall(call, deferred)
		w.wrap(s.Pos(), s.End(), fmt.Sprintf("if mutantNot(%d, true) { ", id), " }")
	}
}
