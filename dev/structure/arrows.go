package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

type arrowsCmd struct {
	Dir   string `default:"." placeholder:"DIR" help:"The directory of the package (default: the root)."`
	Worst int    `default:"10" placeholder:"N" help:"How many of the files with the most upward arrows to print (default: ${default})."`
	List  bool   `help:"Print every upward arrow, with the identifiers that it stands for."`
	Order bool   `help:"Print the files in the order found, the highest first."`
}

// Run prints the arrows of a package.
func (a *arrowsCmd) Run(s *sources) error {
	p, err := s.one(a.Dir)
	if err != nil {
		return err
	}
	g := filesOf(p)
	order := g.best()
	g.printCounts(order)
	if a.Order {
		fmt.Println("\nthe order, the highest first:")
		for _, f := range order {
			fmt.Println("  " + g.files[f])
		}
	}
	g.tellWorst(order, a.Worst, a.List)
	return nil
}

// A graph says which files of a package use which others. An arrow runs from a file to another one that declares an
// identifier which the first one uses; fields and methods are identifiers, too.
type graph struct {
	files []string                  // their names
	uses  []map[int]map[string]bool // by the file that uses and the one that declares: the identifiers
}

// filesOf finds the arrows of a package.
func filesOf(p *packages.Package) *graph {
	g, number := &graph{}, map[string]int{}
	for i, f := range p.Syntax {
		name := filepath.Base(p.Fset.Position(f.Package).Filename)
		number[name] = i
		g.files, g.uses = append(g.files, name), append(g.uses, map[int]map[string]bool{})
	}
	for from, f := range p.Syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			if o := p.TypesInfo.Uses[id]; o != nil && o.Pkg() == p.Types {
				to, known := number[filepath.Base(p.Fset.Position(o.Pos()).Filename)]
				if known && to != from {
					g.add(from, to, id.Name)
				}
			}
			return true
		})
	}
	return g
}

func (g *graph) add(from, to int, name string) {
	if g.uses[from][to] == nil {
		g.uses[from][to] = map[string]bool{}
	}
	g.uses[from][to][name] = true
}

// arrows counts all arrows.
func (g *graph) arrows() (n int) {
	for _, to := range g.uses {
		n += len(to)
	}
	return n
}

// mutual counts the pairs of files that use each other: one of their two arrows runs upward in any order.
func (g *graph) mutual() (n int) {
	for from, uses := range g.uses {
		for to := range uses {
			if to > from && g.uses[to][from] != nil {
				n++
			}
		}
	}
	return n
}

// upward returns for each file those that it uses although they stand above it.
func (g *graph) upward(order []int) [][]int {
	place, up := make([]int, len(order)), make([][]int, len(order))
	for at, f := range order {
		place[f] = at
	}
	for from, uses := range g.uses {
		for to := range uses {
			if place[to] < place[from] {
				up[from] = append(up[from], to)
			}
		}
		slices.SortFunc(up[from], func(x, y int) int { return place[x] - place[y] })
	}
	return up
}

// printCounts prints how many arrows there are.
func (g *graph) printCounts(order []int) {
	up, all := 0, g.arrows()
	for _, to := range g.upward(order) {
		up += len(to)
	}
	share := 0.0
	if all > 0 {
		share = 100 * float64(up) / float64(all)
	}
	fmt.Printf("%d files, %d arrows, %d of them upward: %.1f %%\n", len(g.files), all, up, share)
	fmt.Printf("No order has fewer than %d: so many pairs of files use each other.\n", g.mutual())
	fmt.Println("This order is the best one that a local search found.")
}

// tellWorst prints the files with the most upward arrows.
func (g *graph) tellWorst(order []int, most int, list bool) {
	up := g.upward(order)
	files := slices.DeleteFunc(slices.Clone(order), func(f int) bool { return len(up[f]) == 0 })
	slices.SortStableFunc(files, func(x, y int) int { return cmp.Compare(len(up[y]), len(up[x])) })
	if !list {
		files = files[:min(most, len(files))]
	}
	fmt.Println("\nupward  file, and what it uses above it")
	for _, f := range files {
		names := make([]string, len(up[f]))
		for i, to := range up[f] {
			if names[i] = g.files[to]; list {
				names[i] += " (" + strings.Join(slices.Sorted(maps.Keys(g.uses[f][to])), ", ") + ")"
			}
		}
		fmt.Printf("%6d  %s: %s\n", len(up[f]), g.files[f], strings.Join(names, ", "))
	}
}
