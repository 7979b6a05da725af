package main

import (
	"bytes"
	"errors"
	"net"
	"testing"

	"github.com/goiwarp/iwarp/perf"
)

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
