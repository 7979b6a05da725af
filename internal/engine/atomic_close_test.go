package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/rdmap"
)

// Proves A25: the peer's FIN before its Atomic Response cuts the operation off, as it does a Read, and the error names it.
func TestAtomicCutOff(t *testing.T) {
	p := initiator(t)
	p.post(add(1, 5))
	p.want(added(1, 1, 5))
	p.fin()
	p.collectOutputs()
	f := p.wantCause(rdmap.CodeCatastrophicStream, false)
	if !strings.Contains(f.Reason, "Atomic Operations were outstanding") {
		t.Error(f)
	}
}

// Proves A25: a close waits for an Atomic Response as for a Read's, and says what did not come.
func TestAtomicUnansweredAtClose(t *testing.T) {
	p := initiator(t)
	p.post(add(1, 5))
	p.want(added(1, 1, 5))
	p.closeOrderly()
	p.wantNothing()
	p.wantState(RTS)
	p.advance(closeTime)
	p.collectOutputs()
	p.wantState(Error)
	if err := p.Machine.Cause(); !strings.Contains(err.Error(), "did not answer RDMA Reads or Atomic Operations") {
		t.Error(err)
	}

	p = initiator(t)
	p.post(add(2, 5))
	p.want(added(1, 1, 5))
	p.closeOrderly()
	p.send(atomicResponse(1, 1, 37))
	p.completion(fetched(2, OpFetchAdd, 37))
	p.wantLLP(Finish)
}

// The answers to Atomic Operations that the peer had asked for before a close are progress of it as they leave; to
// those that it asks for later they are none.
//
// Proves A22.
func TestAtomicAnswersAtClose(t *testing.T) {
	const many = 1000
	for _, before := range []bool{true, false} {
		s := newServer(t, func(s *setup) { s.IRD, s.CloseLimit = 2*many, time.Minute })
		asks := func(from, n uint32) {
			for i := range n {
				s.send(atomicRequest(from+i, s.to(rdmap.FetchAdd(1, 0), i, 0)))
			}
		}
		s.window = 0
		asks(1, many)
		if before {
			s.closeOrderly()
		} else {
			s.window = -1
			s.output()
			s.post(work(1, OpRead)) // which is not answered
			s.output()
			s.window = 0
			s.closeOrderly()
			asks(many+1, many)
		}
		got := keeps(s.peer, func(int) { s.window = 4 << 10 })
		if got == closeTime == before {
			t.Errorf("asked before: %t, the close was given up after %v: %v", before, got, s.Machine.Cause())
		}
	}
}
