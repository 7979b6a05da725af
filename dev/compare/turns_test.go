package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A scripted tool has a figure for each of its turns at any work, and fails at those where it has none.
type scripted struct {
	label string
	turns []float64
}

func (s *scripted) name() string { return s.label }

func (s *scripted) measure(context.Context, work, string) (float64, error) {
	x := s.turns[0]
	if s.turns = s.turns[1:]; x == 0 {
		return 0, errors.New("no end within 20s")
	}
	return x, nil
}

// played has the tools take a turn at the first work in each round.
func played(t *testing.T, rounds int, tools ...tool) *turns {
	t.Helper()
	all := newTurns()
	for round := range rounds {
		for _, by := range tools {
			testrig.Must(t, all.runTurn(t.Context(), round, by, works()[0], ""))
		}
	}
	return all
}

// TestFailedTurn: a tool that is as fast as plain TCP in each round is so, too, if the first of its turns fails; the
// others are compared with plain TCP's of their own rounds.
func TestFailedTurn(t *testing.T) {
	for _, base := range []string{plainTCP, ownPerf} {
		tools := []tool{&scripted{base, []float64{1, 2, 4, 8, 16, 32, 64}},
			&scripted{"UCX", []float64{0, 2, 4, 8, 16, 32, 64}}}
		all := played(t, 7, tools...)
		values := all.values(tools)
		if base == ownPerf {
			values = nil
			for _, b := range all.besides(tools) {
				if b.More != 0 || b.MoreLower != 0 || b.MoreUpper != 0 {
					t.Errorf("%+v", b)
				}
				values = append(values, b.value)
			}
		}
		v := values[len(values)-1]
		if v.Tool != "UCX" || v.Ratio != 1 || v.RatioLower != 1 || v.RatioUpper != 1 ||
			v.Rounds != 6 || v.Median != 12 {
			t.Errorf("beside %s: %+v", base, v)
		}
	}
}

// TestFailedTurnIsTold in the table, and in what is missing from it.
func TestFailedTurnIsTold(t *testing.T) {
	tools := []tool{&scripted{plainTCP, []float64{1, 1, 1}}, &scripted{"UCX", []float64{1, 0, 1}},
		&scripted{"libfabric", []float64{0, 0}}}
	all := played(t, 3, tools...)
	rec := &record{Rounds: 3, Values: all.values(tools), Missing: all.missing(works(), tools)}
	rec.Library = &libraryStudy{Missing: rec.Missing}
	for _, v := range rec.Values {
		rec.Library.Values = append(rec.Library.Values, beside{value: v})
	}
	told := "- UCX, 64 bytes, half a round trip: 1 of 3 turns failed: no end within 20s\n" +
		"- libfabric, 64 bytes, half a round trip: 2 of 2 turns failed, and it had no more: no end within 20s\n"
	if got := missingText(rec); got != told {
		t.Errorf("missing: %q", got)
	}
	for name, table := range map[string]string{"tools": toolsTable(rec), "library": libraryTable(rec)} {
		if !strings.Contains(table, "| UCX (2 of 3 rounds) | 1.00 us |") ||
			!strings.Contains(table, "| plain TCP | 1.00 us |") || strings.Contains(table, "| libfabric") {
			t.Errorf("%s: %s", name, table)
		}
	}
	if table := libraryTable(rec); !strings.HasPrefix(table, "Medians of 3 rounds") ||
		!strings.Contains(table, "\n\n"+told) {
		t.Errorf("library: %s", table)
	}
}

// TestLackingIsTold says which works a tool does not have, of those that have any figures.
func TestLackingIsTold(t *testing.T) {
	figures := []value{{Tool: plainTCP}, {Tool: "UCX"}, {Tool: "libfabric"}}
	rec := &record{Values: figures, Library: &libraryStudy{}}
	for _, v := range figures {
		rec.Library.Values = append(rec.Library.Values, beside{value: v})
	}
	for _, w := range libraryWorks() {
		lacks := "- libfabric, " + w.title + ": "
		if got := libraryTable(rec); strings.Contains(got, lacks) != (w.key != "latency-64") ||
			strings.Contains(got, "iperf3") {
			t.Errorf("%q in %s", lacks, got)
		}
	}
	if got := missingText(rec); strings.Contains(got, "UCX") || strings.Count(got, "- libfabric, ") != 2 {
		t.Error(got)
	}
}
