package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

// TestPerfInterruptedTable: the rows that a table had when an interrupt came are explained, as those of a whole one
// are. Where there are none, nothing is.
func TestPerfInterruptedTable(t *testing.T) {
	var out strings.Builder
	p := (&perfCmd{TCP: "on", Table: true}).printer(streams{&out, io.Discard})
	testrig.Must(t, p.interrupted(perf.Options{}))
	if out.Len() > 0 {
		t.Errorf("of no rows: %s", out.String())
	}
	busy := perf.Ratios{Inconclusive: []string{"ratio_bw"}}
	p.observer().Result(perf.Result{Op: perf.Send, Size: 64, TCP: new(perf.Figures), Ratios: busy,
		Pairs: perf.Pairs{BWPairs: 40, LatPairs: 44, BWDropped: 3}})
	testrig.Must(t, p.interrupted(perf.Options{}))
	for _, note := range []string{
		" ~: this ratio would differ in another run, ", " 99%: of fewer than 300 ",
		" calls: not counted, as that takes Linux",
		"20 or more for each quantity, 84 in all, of which 3 were disturbed",
	} {
		if !strings.Contains(out.String(), note) {
			t.Errorf("no note %q: %s", note, out.String())
		}
	}
}

// TestPerfResponderEnds: what was measured until the responder was interrupted, or had gone, is printed as after an
// interrupt of the initiator, and the run has failed all the same. What fails otherwise has no results.
func TestPerfResponderEnds(t *testing.T) {
	for _, test := range []struct {
		err  error
		kept bool
	}{
		{&perf.InterruptedError{Side: "responder"}, true},
		{&perf.GoneError{Side: "responder", Cause: io.EOF}, true},
		{fmt.Errorf("perf: the server's process ended: %w",
			&perf.GoneError{Side: "responder", Cause: io.EOF}), true},
		{errors.New("perf: no way"), false},
	} {
		table, err := endedBy(t, &perfCmd{TCP: "on", Table: true}, test.err)
		if !errors.Is(err, test.err) || statusOf(t.Context(), err) != statusFailed {
			t.Errorf("after %v: %v", test.err, err)
		}
		if strings.Contains(table, " 99%: of fewer than 300 ") != test.kept {
			t.Errorf("after %v the table: %s", test.err, table)
		}
		text, _ := endedBy(t, &perfCmd{TCP: "on", JSON: true}, test.err)
		var got perf.Report
		if bad := json.Unmarshal([]byte(text), &got); (bad == nil && got.Interrupted &&
			len(got.Results) == 1) != test.kept || !test.kept && text != "" {
			t.Errorf("after %v: %v: %s", test.err, bad, text)
		}
	}
}

// endedBy is what is printed of a measurement that fails after a row, and what the command ends with.
func endedBy(t *testing.T, c *perfCmd, cause error) (string, error) {
	var out strings.Builder
	p := c.printer(streams{&out, io.Discard})
	p.observer().Result(perf.Result{Op: perf.Send, Size: 64, TCP: new(perf.Figures)})
	err := p.ended(t.Context(), perf.Options{}, nil, cause)
	return out.String(), err
}

// TestPerfTally: a responder tells of those that were interrupted, by which end, and does not count them as failures.
func TestPerfTally(t *testing.T) {
	var out, errs bytes.Buffer
	tally := perfTally{std: streams{&out, &errs}}
	at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7}
	for _, err := range []error{nil, &perf.InterruptedError{Side: "initiator"},
		&perf.InterruptedError{Side: "responder"}, errors.New("perf: no way")} {
		tally.ended(perf.Visit{Remote: at, Err: err})
	}
	if want := "192.0.2.1:7: measured\n"; out.String() != want {
		t.Errorf("printed %q", out.String())
	}
	if want := "192.0.2.1:7: interrupted by the client\n192.0.2.1:7: interrupted\n192.0.2.1:7: perf: no way\n"; errs.String() != want {
		t.Errorf("told %q", errs.String())
	}
	if tally.measured != 1 || tally.interrupted != 2 || tally.failed != 1 {
		t.Errorf("counted %+v", tally)
	}
}
