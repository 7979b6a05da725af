package main

import (
	"go/ast"
	"go/token"
	"go/types"
)

// A kind is a kind of change that makes no difference that a test could see, wherever it is made: why that is.
type kind string

// The kinds are the allow-list: a survivor of one of them is counted, and not printed.
const (
	released kind = "what a deferred call would give back goes by itself, only later"
	pooled   kind = "what is not put into a pool is made anew"
	either   kind = "where both are equal, either will do"
	grown    kind = "where the capacity is just enough, a new one holds the same"
	empty    kind = "of nothing there is nothing to do"
)

// ofCall is the kind of a call that is left out.
func (w *file) ofCall(call *ast.CallExpr, deferred bool) kind {
	if deferred && w.named(call.Fun, "context", "CancelFunc") {
		return released
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch {
	case s.Sel.Name == "Put" && w.named(s.X, "sync", "Pool"):
		return pooled
	case deferred && s.Sel.Name == "Stop" && (w.named(s.X, "time", "Timer") || w.named(s.X, "time", "Ticker")),
		deferred && s.Sel.Name == "Close" && (w.named(s.X, "os", "File") || w.named(s.X, "os", "Root")):
		return released
	}
	return ""
}

// named reports whether an expression is of a type of another package, or a pointer to it.
func (w *file) named(e ast.Expr, pkg, name string) bool {
	t := w.info.Types[e].Type
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == pkg
}

// ofBound is the kind of a comparison whose bound is changed, such as < to <=.
func (w *file) ofBound(n *ast.BinaryExpr) kind {
	if w.isCap(n.X) || w.isCap(n.Y) {
		return grown
	}
	return w.bounds[n]
}

func (w *file) isCap(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := call.Fun.(*ast.Ident)
	_, builtin := w.info.Uses[id].(*types.Builtin)
	return ok && builtin && id.Name == "cap"
}

// noteBounds looks for conditions of which the bound makes no difference, among statements that follow each other.
func (w *file) noteBounds(list []ast.Stmt) {
	for i, s := range list {
		f, ok := s.(*ast.IfStmt)
		if !ok || f.Init != nil || f.Else != nil || len(f.Body.List) != 1 {
			continue
		}
		c, ok := f.Cond.(*ast.BinaryExpr)
		if !ok {
			continue
		}
		var next ast.Stmt
		if i+1 < len(list) {
			next = list[i+1]
		}
		switch {
		case w.chooses(c, f.Body.List[0], next):
			w.bounds[c] = either
		case c.Op == token.GTR && w.is(c.Y, "0") && w.doesNothing(f.Body.List[0], c.X):
			w.bounds[c] = empty
		}
	}
}

// chooses reports whether an if only chooses between the two that it compares: it sets one to the other, or returns
// one where what follows returns the other.
func (w *file) chooses(c *ast.BinaryExpr, body, next ast.Stmt) bool {
	switch s := body.(type) {
	case *ast.AssignStmt:
		return s.Tok == token.ASSIGN && len(s.Lhs) == 1 && len(s.Rhs) == 1 && w.both(c, s.Lhs[0], s.Rhs[0])
	case *ast.ReturnStmt:
		other, ok := next.(*ast.ReturnStmt)
		return ok && len(s.Results) == 1 && len(other.Results) == 1 && w.both(c, s.Results[0], other.Results[0])
	}
	return false
}

// both reports whether two expressions are the two that are compared, in either order and whatever they are converted
// to.
func (w *file) both(c *ast.BinaryExpr, one, other ast.Expr) bool {
	x, y, a, b := w.value(c.X), w.value(c.Y), w.value(one), w.value(other)
	return a == x && b == y || a == y && b == x
}

// value is the text of an expression without conversions around it.
func (w *file) value(e ast.Expr) string {
	for {
		call, ok := e.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 || !w.info.Types[call.Fun].IsType() {
			return w.src(e.Pos(), e.End())
		}
		e = call.Args[0]
	}
}

// doesNothing reports whether a statement does nothing if n is zero: it adds or takes away n, or goes through or
// copies what has the length n.
func (w *file) doesNothing(s ast.Stmt, n ast.Expr) bool {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return (s.Tok == token.ADD_ASSIGN || s.Tok == token.SUB_ASSIGN) && w.is(s.Rhs[0], w.src(n.Pos(), n.End()))
	case *ast.RangeStmt:
		return w.isLength(n, s.X) || w.is(s.X, w.src(n.Pos(), n.End()))
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && len(call.Args) == 2 && w.is(call.Fun, "copy") && w.isLength(n, call.Args[1])
	}
	return false
}

// isLength reports whether n is the length of x.
func (w *file) isLength(n, x ast.Expr) bool { return w.is(n, "len("+w.src(x.Pos(), x.End())+")") }

// is reports whether an expression is this text.
func (w *file) is(e ast.Expr, text string) bool { return w.src(e.Pos(), e.End()) == text }
