package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

// TestPerfInterruptedTable: the rows that a table had when an interrupt came are explained, as those of a whole one are. Where there are none, nothing is.
func TestPerfInterruptedTable(t *testing.T) {
	var out strings.Builder
	p := (&perfCmd{TCP: "on"}).printer(streams{&out, io.Discard})
	testrig.Must(t, p.interrupted(perf.Options{}))
	if out.Len() > 0 {
		t.Errorf("of no rows: %s", out.String())
	}
	busy := perf.Ratios{Inconclusive: []string{"ratio_bw"}}
	p.observer().Result(perf.Result{Op: perf.Send, Size: 64, TCP: new(perf.Figures), Ratios: busy, Pairs: perf.Pairs{BWPairs: 40, LatPairs: 44, BWDropped: 3}})
	testrig.Must(t, p.interrupted(perf.Options{}))
	for _, note := range []string{
		" busy: inconclusive, ", " 99%: of fewer than 300 ", " calls: not counted, as that takes Linux", "40 or more for each quantity, 84 in all, of which 3 were disturbed",
	} {
		if !strings.Contains(out.String(), note) {
			t.Errorf("no note %q: %s", note, out.String())
		}
	}
}

// TestPerfTally: a responder tells of those that were interrupted, by which end, and does not count them as failures.
func TestPerfTally(t *testing.T) {
	var out, errs bytes.Buffer
	tally := perfTally{std: streams{&out, &errs}}
	at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7}
	for _, err := range []error{nil, &perf.InterruptedError{Side: "initiator"}, &perf.InterruptedError{Side: "responder"}, errors.New("perf: no way")} {
		tally.ended(perf.Visit{Remote: at, Err: err})
	}
	if want := "192.0.2.1:7: measured\n"; out.String() != want {
		t.Errorf("printed %q", out.String())
	}
	if want := "192.0.2.1:7: interrupted by the initiator\n192.0.2.1:7: interrupted\n192.0.2.1:7: perf: no way\n"; errs.String() != want {
		t.Errorf("told %q", errs.String())
	}
	if tally.measured != 1 || tally.interrupted != 2 || tally.failed != 1 {
		t.Errorf("counted %+v", tally)
	}
}
