package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// tries is how often the search begins anew from a disturbed order.
const tries = 400

// best returns an order of the files with few upward arrows. To find the one with the fewest is NP-hard (feedback arc
// set). This is a local search: it moves one file at a time to its best place, and begins again from orders in which
// some files were moved at random. Two runs give the same.
func (g *graph) best() []int {
	w := g.matrix()
	order := make([]int, len(w))
	for i := range order {
		order[i] = i
	}
	// A file that uses much and is used little begins above.
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(w.surplus(y), w.surplus(x)) })
	w.improve(order)
	random := rand.New(rand.NewPCG(1, 2))
	for least := w.upward(order); len(order) > 2 && least > 0; {
		found := false
		for range tries {
			other := disturbed(order, random)
			w.improve(other)
			if n := w.upward(other); n <= least {
				found = found || n < least
				order, least = other, n
			}
		}
		if !found {
			break
		}
	}
	return order
}

// A matrix has 1 where the file of the row uses that of the column.
type matrix [][]int

func (g *graph) matrix() matrix {
	w := make(matrix, len(g.files))
	for from := range w {
		w[from] = make([]int, len(g.files))
		for to := range g.uses[from] {
			w[from][to] = 1
		}
	}
	return w
}

// surplus is how many more files one uses than use it.
func (w matrix) surplus(f int) (n int) {
	for other := range w {
		n += w[f][other] - w[other][f]
	}
	return n
}

// upward counts the upward arrows of an order.
func (w matrix) upward(order []int) (n int) {
	for at, from := range order {
		for _, to := range order[:at] {
			n += w[from][to]
		}
	}
	return n
}

// improve moves single files as long as that leaves fewer upward arrows.
func (w matrix) improve(order []int) {
	for moved := true; moved; {
		moved = false
		for at := range order {
			if to, gain := w.place(order, at); gain > 0 {
				move(order, at, to)
				moved = true
			}
		}
	}
}

// place finds the best place for the file at one place, and how many upward arrows fewer that leaves.
func (w matrix) place(order []int, at int) (to, gain int) {
	f := order[at]
	for sum, i := 0, at-1; i >= 0; i-- { // above those that it uses
		if sum += w[f][order[i]] - w[order[i]][f]; sum > gain {
			to, gain = i, sum
		}
	}
	for sum, i := 0, at+1; i < len(order); i++ { // below those that use it
		if sum += w[order[i]][f] - w[f][order[i]]; sum > gain {
			to, gain = i, sum
		}
	}
	return to, gain
}

// move takes a file from one place to another; those between make room.
func move(order []int, from, to int) {
	f := order[from]
	copy(order[from:], order[from+1:])
	copy(order[to+1:], order[to:len(order)-1])
	order[to] = f
}

// disturbed is an order in which some files were moved at random.
func disturbed(order []int, random *rand.Rand) []int {
	other := slices.Clone(order)
	for range 2 + random.IntN(6) {
		move(other, random.IntN(len(other)), random.IntN(len(other)))
	}
	return other
}
