package engine

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

func noticeText(n Notice) string { return fmt.Sprintf("%d %v %v %v", n.Kind, n.From, n.To, n.Err) }

// readOf is a Read Request for the first bytes of a region.
func readOf(stag, size uint32) rdmap.ReadRequest {
	return rdmap.ReadRequest{SinkSTag: 5, Size: size, SrcSTag: stag}
}

// readThenSend has the Initiator read and then send.
func readThenSend(t *testing.T) (p *pair, sink []byte) {
	p = newPair(t, markers(true, true), both(func(s *setup) { s.MULPDU = layout.MinMULPDU }))
	sink = make([]byte, 600)
	rd, rs := p.a.region(sink[100:500], memory.LocalWrite), p.b.region(numbered(400), memory.RemoteRead)
	p.b.receive(3, all(p.b.region(make([]byte, 10), memory.LocalWrite), 10))
	w := work(1, OpRead, all(rd, 400))
	w.RemoteSTag = rs.STag()
	p.a.post(w)
	p.a.post(work(2, OpSend))
	return p, sink
}

// checkSink expects bytes of the source up to somewhere and zeros after.
func checkSink(t *testing.T, sink []byte) {
	t.Helper()
	n := len(slices.Collect(func(yield func(int) bool) {
		for i, b := range sink[100:500] {
			if b != numbered(400)[i] || !yield(i) {
				return
			}
		}
	}))
	for i, b := range sink {
		if (i < 100 || i >= 100+n) && b != 0 {
			t.Fatalf("byte %d has changed, %d were read", i, n)
		}
	}
}

// requestSize is the FPDU of a Read Request, with the marker in front.
const requestSize = 4 + 2 + 18 + 28 + 4

// A peer that disappears after any byte, of either direction, in the middle of a Read.
//
// Proves D08, D34, D35, P38, P28, R08: all work ends, in order, nothing succeeds that
// has not, and what has come of the response is the beginning of it.
func TestPeerDisappears(t *testing.T) {
	p, _ := readThenSend(t)
	p.run()
	forth, back := p.ab.passed, p.ba.passed
	for cut := range forth + back {
		p, sink := readThenSend(t)
		if cut < forth {
			p.ab.cut = cut
		} else {
			p.ba.cut = cut - forth
		}
		p.run()
		p.cutOff()
		p.a.wantState(Error)
		p.b.wantState(Error)
		if cut >= requestSize && cut < forth { // answered, before the Send was cut off
			p.a.completion(success(1, OpRead, 400), success(2, OpSend, 0))
		} else {
			p.a.completion(flushed(1, OpRead), flushed(2, OpSend))
		}
		p.a.noCompletion()
		if len(p.b.done) != 1 || p.b.done[0].Status == StatusSuccess && cut < forth {
			t.Fatalf("cut at %d: %+v", cut, p.b.done)
		}
		if !errors.Is(p.a.Machine.Cause(), ErrLost) {
			t.Fatal(p.a.Machine.Cause())
		}
		checkSink(t, sink)
	}
}

// The same with a FIN after any byte of the response: never a success, never in
// order.
func TestPeerClosesDuringResponse(t *testing.T) {
	p, _ := readThenSend(t)
	p.run()
	for cut := range p.ba.passed {
		p, sink := readThenSend(t)
		p.ba.cut = cut
		p.run()
		p.a.fin()
		p.a.output()
		p.a.completion(flushed(1, OpRead), flushed(2, OpSend))
		p.a.wantState(Error)
		if p.a.Machine.Cause() == nil {
			t.Fatal("no cause")
		}
		checkSink(t, sink)
	}
}

// A connection that is lost while one of several Sends is half taken: those taken
// whole have succeeded, the others have not.
//
// Proves D03, S05.
func TestLostAfterAnyByte(t *testing.T) {
	for n := range 24*3 + 1 {
		p := initiator(t)
		for id := range uint64(3) {
			p.post(work(id, OpSend))
		}
		p.window = n
		p.output()
		p.Machine.Abandon(p.clock, p.g)
		p.Machine.Failed(p.clock, errReset)
		p.collectOutputs()
		for id := range uint64(3) {
			want := StatusFlushed
			if 24*(int(id)+1) <= n {
				want = StatusSuccess
			}
			p.completion(failed(id, OpSend, want))
		}
	}
}

// Proves D34, D08, D35, Q16, R08: a lost connection is told as such, in every
// state, and all work ends in error.
func TestLost(t *testing.T) {
	for s, reach := range inState {
		p := reach(t)
		p.output()
		p.llp, p.notices, p.done = nil, nil, nil
		p.Machine.Failed(p.clock, errReset)
		p.collectOutputs()
		switch s {
		case RTS, Closing:
			p.wantState(Error)
			p.wantNotices(NoticeConnectionLost)
			p.wantLLP(Reset)
			if !errors.Is(p.Machine.Cause(), ErrLost) || !errors.Is(p.Machine.Cause(), errReset) {
				t.Error(p.Machine.Cause())
			}
		case Terminate:
			p.wantState(Error)
			p.wantLLP(Drop)
			p.wantCause(0, false)
		default:
			p.wantState(s)
			p.wantLLP()
		}
	}
}

// Proves D03, S05: a segment that was handed to the LLP and not taken by it leaves
// its work failed, not done.
func TestLostInFlight(t *testing.T) {
	p := initiator(t)
	p.window = 30 // one FPDU of 24 bytes and a part of the next
	p.post(work(1, OpSend))
	p.post(work(2, OpSend))
	p.output()
	p.completion(success(1, OpSend, 0))
	p.noCompletion()
	p.Machine.Abandon(p.clock, p.g)
	p.Machine.Failed(p.clock, errReset)
	p.collectOutputs()
	p.completion(flushed(2, OpSend))
	p.wantState(Error)
}
