package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// turns are the figures of all rounds, by work and tool.
type turns struct {
	figures map[[2]string]byRound
	failed  map[[2]string][]error
}

// byRound are a tool's figures of one work, by the number of the round. One whose turn failed is not there, so that a
// figure is never compared with one of another round.
type byRound map[int]float64

func newTurns() *turns {
	return &turns{figures: make(map[[2]string]byRound), failed: make(map[[2]string][]error)}
}

// maxFailures is how often a tool may fail at a work before it has no more turns at it.
const maxFailures = 2

// runTurn measures a work with a tool. One of our own that fails ends the run.
func (t *turns) runTurn(ctx context.Context, round int, by tool, w work, cc string) error {
	key := [2]string{w.key, by.name()}
	if len(t.failed[key]) == maxFailures {
		return nil
	}
	x, err := by.measure(ctx, w, cc)
	_, ours := by.(ownTool)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		t.add(key, round, x)
	case ours:
		return err
	case !errors.Is(err, errNotMeasured):
		t.failed[key] = append(t.failed[key], err)
	}
	return nil
}

func (t *turns) add(key [2]string, round int, x float64) {
	if t.figures[key] == nil {
		t.figures[key] = make(byRound)
	}
	t.figures[key][round] = x
}

// values sums the turns up.
func (t *turns) values(tools []tool) []value {
	var all []value
	for _, w := range works() {
		base := t.figures[[2]string{w.key, plainTCP}]
		for _, by := range tools {
			if own := t.figures[[2]string{w.key, by.name()}]; len(own) > 0 {
				all = append(all, newValue(w, by.name(), own, base))
			}
		}
	}
	return all
}

// missing tells of the turns that failed.
func (t *turns) missing(works []work, tools []tool) (all []missing) {
	for _, w := range works {
		for _, by := range tools {
			key := [2]string{w.key, by.name()}
			if failed := t.failed[key]; len(failed) > 0 {
				all = append(all, missing{Tool: by.name(), Work: w.key,
					Reason: failedText(failed, len(t.figures[key]))})
			}
		}
	}
	return all
}

// failedText says how many turns failed beside those that did not, and why the last did.
func failedText(failed []error, others int) string {
	n, gaveUp := len(failed), ""
	if n == maxFailures {
		gaveUp = ", and it had no more"
	}
	return fmt.Sprintf("%d of %d turns failed%s: %v", n, n+others, gaveUp, failed[n-1])
}

// all are the figures in the order of rounds.
func (f byRound) all() (figures []float64) {
	for _, round := range f.rounds() {
		figures = append(figures, f[round])
	}
	return figures
}

func (f byRound) rounds() []int { return slices.Sorted(maps.Keys(f)) }

// beside compares with the figures that others have of the same rounds.
func (f byRound) beside(base byRound, how func(x, base float64) float64) (compared []float64) {
	for _, round := range f.rounds() {
		if other, ok := base[round]; ok {
			compared = append(compared, how(f[round], other))
		}
	}
	return compared
}
