package engine

import (
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/rdmap"
)

// Proves X03: the peer's FIN before its Atomic Response cuts the operation off, as it does a Read, and the error names it.
func TestAtomicCutOff(t *testing.T) {
	p := initiator(t)
	p.post(add(1, 5))
	p.want(added(1, 1, 5))
	p.fin()
	p.settle()
	f := p.wantCause(rdmap.CodeCatastrophicStream, false)
	if !strings.Contains(f.Reason, "Atomic Operations were outstanding") {
		t.Error(f)
	}
}

// Proves X03: a close waits for an Atomic Response as for a Read's, and says what did not come.
func TestAtomicUnansweredAtClose(t *testing.T) {
	p := initiator(t)
	p.post(add(1, 5))
	p.want(added(1, 1, 5))
	p.closeOrderly()
	p.wantNothing()
	p.wantState(RTS)
	p.advance(closeTime)
	p.settle()
	p.wantState(Error)
	if err := p.Cause(); !strings.Contains(err.Error(), "did not answer RDMA Reads or Atomic Operations") {
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
