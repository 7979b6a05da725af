package main

import (
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/internal/quantile"
)

// A spreadOf is the median of all rounds, and the quartiles: all zero if there are no figures.
type spreadOf struct {
	Median float64 `json:"median"`
	Lower  float64 `json:"lower_quartile"`
	Upper  float64 `json:"upper_quartile"`
}

func newSpread(values []float64) (s spreadOf) {
	s.Median, s.Lower, s.Upper = quartiles(values)
	return s
}

// quartiles returns the median and the quartiles, and zeros of none.
func quartiles(values []float64) (median, lower, upper float64) {
	if len(values) == 0 {
		return 0, 0, 0
	}
	lower, upper = quantile.Quartiles(values)
	return quantile.Median(values), lower, upper
}

// fewest is how many rounds have quartiles: those of less would be made of one figure or two.
const fewest = 4

// unrepeated stands for the median of a ratio for which another run would find something else.
const unrepeated = "busy"

// repeatable reports whether another run would find about the same median. It is package perf's rule, by the quartiles:
// the record has no more of the rounds.
func (s spreadOf) repeatable(rounds int) bool { return s.Upper <= s.Lower*apart(rounds) }

// cells are the median of a ratio, if another run would find it again, and the quartiles, if there are any.
func (s spreadOf) cells(rounds int) []string {
	median, quarters := fmt.Sprintf("%.2f", s.Median), quartilesText(s.Lower, s.Upper)
	switch {
	case s == spreadOf{}:
		return []string{"-", "-"}
	case rounds < fewest:
		return []string{median, "-"}
	case !s.repeatable(rounds):
		return []string{unrepeated, quarters}
	}
	return []string{median, quarters}
}

// text has both cells in one.
func (s spreadOf) text(rounds int) string {
	cells := s.cells(rounds)
	switch {
	case cells[1] == "-":
		return cells[0]
	case cells[0] == unrepeated:
		return unrepeated + ": " + cells[1]
	}
	return cells[0] + " (" + cells[1] + ")"
}

// ratio is that of a tool's figures.
func (v value) ratio() spreadOf { return spreadOf{v.Ratio, v.RatioLower, v.RatioUpper} }

// figureCells are the median of a tool's figures and the quartiles, if there are any.
func (v value) figureCells() []string {
	median := short(v.Median) + " " + v.Unit
	if v.Rounds < fewest {
		return []string{median, "-"}
	}
	return []string{median, short(v.Lower) + " - " + short(v.Upper)}
}

// quartilesText are those of a ratio.
func quartilesText(lower, upper float64) string { return fmt.Sprintf("%.2f - %.2f", lower, upper) }

// mediansOf stands above a table of rounds, and says when a ratio has no median there.
func mediansOf(rounds int) string {
	if rounds < fewest {
		return fmt.Sprintf("Medians of %d rounds: too few for quartiles, and to say what another run would find.",
			rounds)
	}
	return fmt.Sprintf("Medians of %d rounds with the quartiles; a ratio is `%s` whose quartiles are more than %.2f apart.", rounds, unrepeated, apart(rounds))
}

// apart returns how far the quartiles of n ratios, 1 or more, may be apart, as their ratio, for that interval to be no
// wider than quantile.Widest. It is for where the values are not at hand: it takes their logarithms for normally
// distributed, whose median has an interval 3.64 times as wide as the quartiles are apart, divided by the root of n.
func apart(n int) float64 { return math.Pow(quantile.Widest, math.Sqrt(float64(n))/3.64) }
