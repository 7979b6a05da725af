package main

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

var analyzer = &analysis.Analyzer{
	Name:     "wccheck",
	Doc:      "report completions of iwarp whose error nobody looks at",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      run,
}

const (
	next = "(*github.com/goiwarp/iwarp.CQ).Next"
	poll = "(*github.com/goiwarp/iwarp.CQ).Poll"
)

func run(pass *analysis.Pass) (any, error) {
	c := checker{pass, pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root()}
	for call := range c.root.Preorder((*ast.CallExpr)(nil)) {
		n := call.Node().(*ast.CallExpr)
		if name := c.callee(n); name == next && !c.nextIsChecked(call) || name == poll && !c.pollIsChecked(n) {
			pass.Reportf(n.Pos(), "nobody looks at whether the request has failed: ask Err of the WC, or use CQ.All")
		}
	}
	return nil, nil
}

type checker struct {
	pass *analysis.Pass
	root inspector.Cursor
}

// callee is the full name of what a call calls, if that is a function or method.
func (c *checker) callee(n *ast.CallExpr) string {
	if f, ok := typeutil.Callee(c.pass.TypesInfo, n).(*types.Func); ok {
		return f.FullName()
	}
	return ""
}

// nextIsChecked judges what becomes of the WC of a call of Next.
func (c *checker) nextIsChecked(call inspector.Cursor) bool {
	switch p := call.Parent().Node().(type) {
	case *ast.ExprStmt:
		return false
	case *ast.AssignStmt:
		return c.targetIsChecked(p.Lhs[0], nil)
	case *ast.ValueSpec:
		return c.targetIsChecked(p.Names[0], nil)
	}
	return true // it is given to somebody
}

// pollIsChecked judges what becomes of the WCs that a call of Poll fills in.
func (c *checker) pollIsChecked(n *ast.CallExpr) bool {
	if len(n.Args) != 1 {
		return true
	}
	of := ast.Unparen(n.Args[0])
	for {
		s, ok := of.(*ast.SliceExpr)
		if !ok {
			break
		}
		of = ast.Unparen(s.X)
	}
	return c.targetIsChecked(of, nil)
}

// targetIsChecked judges a variable that has WCs. One that others than the function see is theirs to look at.
func (c *checker) targetIsChecked(target ast.Expr, seen []types.Object) bool {
	id, ok := target.(*ast.Ident)
	if !ok {
		return true
	}
	v, ok := c.pass.TypesInfo.ObjectOf(id).(*types.Var)
	if !ok { // the blank identifier
		return id.Name != "_"
	}
	if v.Kind() != types.LocalVar {
		return true
	}
	for _, s := range seen {
		if s == v {
			return false
		}
	}
	for use := range c.root.Preorder((*ast.Ident)(nil)) {
		if c.pass.TypesInfo.Uses[use.Node().(*ast.Ident)] == v && c.useChecks(use, append(seen, v)) {
			return true
		}
	}
	return false
}

// useChecks reports whether a use of a variable looks at the error, or gives the WCs to somebody.
func (c *checker) useChecks(use inspector.Cursor, seen []types.Object) bool {
	use = whole(use)
	kind, i := use.ParentEdge()
	switch p := use.Parent().Node().(type) {
	case *ast.SelectorExpr:
		_, field := c.pass.TypesInfo.ObjectOf(p.Sel).(*types.Var)
		return !field || p.Sel.Name == "Status"
	case *ast.CallExpr:
		builtin := c.pass.TypesInfo.Types[p.Fun].IsBuiltin()
		return !builtin && c.callee(p) != poll
	case *ast.RangeStmt:
		return p.Value != nil && c.targetIsChecked(p.Value, seen)
	case *ast.AssignStmt:
		if kind == edge.AssignStmt_Lhs {
			return false
		}
		return p.Tok == token.ASSIGN && isBlank(p.Lhs[i]) || c.targetIsChecked(p.Lhs[i], seen)
	case *ast.ValueSpec:
		return c.targetIsChecked(p.Names[i], seen)
	}
	return true
}

// isBlank reports whether an expression is the blank identifier: what is assigned to it is overlooked on purpose.
func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// whole climbs from a variable to the largest expression for it, an element, or a part.
func whole(use inspector.Cursor) inspector.Cursor {
	for {
		switch kind := use.ParentEdgeKind(); kind {
		case edge.ParenExpr_X, edge.IndexExpr_X, edge.SliceExpr_X, edge.StarExpr_X:
		case edge.UnaryExpr_X:
			if use.Parent().Node().(*ast.UnaryExpr).Op != token.AND {
				return use
			}
		default:
			return use
		}
		use = use.Parent()
	}
}
