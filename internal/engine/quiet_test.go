package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
)

// rtt is the round trip of these tests.
const rtt = 150 * time.Millisecond

// closeFar is BeginClose on a path with a round trip.
func (p *peer) closeFar() {
	p.Machine.BeginClose(p.clock, rtt)
	p.collectOutputs()
}

// wantLateFIN wants a FIN now, after half of CloseTimeout.
func (p *peer) wantLateFIN() {
	p.Helper()
	p.wantLLP(Finish)
	if took := p.clock.Sub(epoch); took < closeTime/2 || took > closeTime/2+rtt {
		p.Errorf("a FIN after %v", took)
	}
}

// served is a Responder whose peer has read from a region, which is 100 bytes long.
func served(t *testing.T, change ...func(*setup)) (*peer, *memory.Region) {
	p := responder(t, change...)
	r := p.region(numbered(100), remoteAll)
	p.send(request(1, readOf(r.STag(), 1)))
	p.want(response(5, 0, numbered(1)))
	return p, r
}

// Reads that arrive within a round trip after our work is done are answered, and so are
// those that their answers bring; then the FIN is sent.
//
// Proves D30.
func TestQuietServesReads(t *testing.T) {
	p, r := served(t)
	p.post(work(1, OpSend))
	p.window = 0 // the LLP does not take it at once
	p.closeFar()
	p.output()
	p.advance(time.Second)
	p.window = -1
	p.want(send(1, nil))
	for msn := range uint32(5) {
		p.advance(rtt + activeWait - 1)
		p.wantNothing()
		p.wantLLP()
		p.send(request(msn+2, readOf(r.STag(), 10)))
		p.want(response(5, 0, numbered(10)))
	}
	p.advance(rtt + activeWait - 1)
	p.wantLLP()
	p.advance(1)
	p.wantLLP(Finish)
	if !p.Machine.FINHeldUntil().IsZero() {
		t.Error("a FIN is held back that was sent")
	}
	p.send(request(7, readOf(r.STag(), 10)))
	p.wantNothing()
	if got := p.Machine.Stats().Odd.Late; got != 1 {
		t.Errorf("%d late Reads", got)
	}
	p.advance(closeTime - 1) // the FIN was progress
	p.wantState(RTS)
	p.fin()
	p.wantState(Idle)
	p.wantLLP(Drop)
	if !p.Machine.Deadline().IsZero() {
		t.Error("a deadline after the end")
	}
}

// There is nothing to wait for where the peer cannot read, or has closed its half: before
// the close, or while it waits.
func TestQuietAtOnce(t *testing.T) {
	p := initiator(t, func(s *setup) { s.IRD = 0 })
	p.closeFar()
	p.wantLLP(Finish)

	p, _ = served(t, func(s *setup) { s.Linger = time.Hour })
	p.fin()
	p.closeFar()
	p.wantLLP(Drop)
	p.wantState(Idle)

	p, _ = served(t)
	p.closeFar()
	p.advance(rtt / 2)
	p.wantLLP()
	p.fin()
	p.wantLLP(Drop)
	p.wantState(Idle)

	p, _ = served(t) // an error that is found meanwhile
	p.closeFar()
	p.send(request(9, readOf(1, 0)))
	p.wantState(Terminate)
	if at := p.Machine.FINHeldUntil(); !at.IsZero() {
		t.Errorf("waits until %v", at.Sub(p.clock))
	}
}

// Two ends that close at once wait at the same time: a round trip in all.
func TestQuietBothAtOnce(t *testing.T) {
	p := newPair(t)
	p.a.post(work(1, OpSend)) // so that the Responder may send
	p.b.receive(1)
	p.run()
	for _, h := range []*host{p.a, p.b} {
		h.Machine.BeginClose(p.clock, rtt)
		h.collectOutputs()
	}
	p.run()
	p.a.wantState(RTS)
	p.clock = p.clock.Add(rtt)
	for _, h := range []*host{p.a, p.b} {
		h.Machine.HandleTimeout(p.clock)
		h.collectOutputs()
	}
	p.run()
	p.a.wantState(Idle)
	p.b.wantState(Idle)
}

// The peer's next Read may wait for bytes of ours that the LLP has not sent yet.
func TestQuietUnsent(t *testing.T) {
	p, _ := served(t)
	p.Machine.Unsent(p.clock) // when nothing is held back
	p.closeFar()
	for range 3 {
		p.advance(rtt - 1)
		p.Machine.Unsent(p.clock)
	}
	p.wantLLP()
	for !p.Machine.finished && p.clock.Before(epoch.Add(time.Hour)) { // but not for ever
		p.Machine.Unsent(p.clock)
		p.advance(rtt / 2)
	}
	p.wantLateFIN()
}

// A Read may have been posted after messages that are still arriving: whatever comes from the
// peer begins the round trip anew, but not for ever.
//
// Proves D30.
func TestQuietWhileBytesCome(t *testing.T) {
	p, r := served(t)
	p.closeFar()
	for range 4 {
		p.advance(rtt - 1)
		p.send(write(r.STag(), 0, numbered(10)))
	}
	p.advance(rtt - 1)
	p.send(request(2, readOf(r.STag(), 10)))
	p.want(response(5, 0, numbered(10)))
	p.advance(rtt + activeWait - 1)
	p.wantLLP()
	p.advance(1)
	p.wantLLP(Finish)

	p, r = served(t) // a part of an FPDU counts too
	p.closeFar()
	b := p.w.Append(nil, request(2, readOf(r.STag(), 10)).ulpdu())
	for piece := range slices.Chunk(b, 8) {
		p.advance(rtt - 1)
		p.sendBytes(piece)
	}
	p.want(response(5, 0, numbered(10)))

	p, r = served(t) // on a short path a peer that has sent something gets some time
	p.Machine.BeginClose(p.clock, time.Microsecond)
	p.collectOutputs()
	p.send(write(r.STag(), 0, numbered(10)))
	p.advance(activeWait - 1)
	p.send(request(2, readOf(r.STag(), 10)))
	p.want(response(5, 0, numbered(10)))
	p.advance(time.Microsecond + activeWait - 1)
	p.wantLLP()
	p.advance(1)
	p.wantLLP(Finish)

	for _, n := range []int{10, drainBytes} { // endless, also where each message is progress of the close
		p, _ = served(t, func(s *setup) { s.MULPDU = layout.MaxMULPDU })
		large := p.region(make([]byte, drainBytes), remoteAll)
		p.closeFar()
		for !p.Machine.finished && p.clock.Before(epoch.Add(time.Hour)) {
			p.send(write(large.STag(), 0, numbered(n)))
			p.advance(rtt / 2)
		}
		p.wantLateFIN()
	}
}

// A peer that reads without end keeps a close for half of CloseTimeout: then no more of
// its Reads are taken, those that were are answered, and the connection is closed by FIN.
func TestQuietEndlessReader(t *testing.T) {
	p, r := served(t)
	p.closeFar()
	msn := uint32(2)
	for ; !p.Machine.finished && msn < 1000; msn++ {
		p.send(request(msn, readOf(r.STag(), 10)))
		p.want(response(5, 0, numbered(10)))
		p.advance(rtt / 2)
	}
	p.wantLateFIN()
	p.advance(closeTime - rtt)
	p.wantState(RTS)
	p.advance(rtt)
	p.wantState(Error)
	p.wantLLP(Reset)

	p, r = served(t) // one that is never without a Read under way
	p.window = 0
	p.send(request(2, readOf(r.STag(), 10)), request(3, readOf(r.STag(), 20)))
	p.closeFar()
	p.output()
	p.advance(closeTime/2 - 1)
	p.send(request(4, readOf(r.STag(), 30)))
	p.advance(1)
	p.send(request(5, readOf(r.STag(), 40))) // too late
	p.wantLLP()
	p.window = -1
	p.want(response(5, 0, numbered(10)), response(5, 0, numbered(20)), response(5, 0, numbered(30)))
	p.wantNothing()
	p.wantLLP(Finish)

	p, _ = served(t) // one whose last answer is so long that it is progress
	long := p.region(make([]byte, 1<<16), remoteAll)
	p.window = 0
	p.send(request(2, readOf(long.STag(), 1<<16)))
	p.closeFar()
	p.output()
	p.advance(closeTime / 2)
	p.window = -1
	p.output()
	p.wantLLP(Finish)

	p, r = served(t) // and one that does not take its answer
	p.window = 0
	p.send(request(2, readOf(r.STag(), 10)))
	p.closeFar()
	p.output()
	p.advance(closeTime)
	p.wantState(Error)
	p.wantLLP(Reset)
	if err := p.Machine.Cause(); !strings.Contains(err.Error(), "did not take") {
		t.Error(err)
	}
}

// Work of ours that is not carried out yet keeps a close by itself: as long as there is
// any, the peer's Reads are taken.
func TestQuietOwnWork(t *testing.T) {
	p, r := served(t)
	p.window = 0
	p.post(work(1, OpSend))
	p.send(request(2, readOf(r.STag(), 10)))
	p.closeFar()
	p.output()
	p.advance(closeTime / 2)
	p.send(request(3, readOf(r.STag(), 20)))
	if got := p.Machine.Stats().Odd.Late; got != 0 {
		t.Errorf("%d late Reads", got)
	}
}

// The FIN is progress: the peer has a whole CloseTimeout to answer it.
func TestQuietThenCloseTimeout(t *testing.T) {
	p, _ := served(t)
	p.closeFar()
	p.clock = p.clock.Add(rtt + activeWait)
	p.Machine.HandleTimeout(p.clock)
	p.collectOutputs()
	p.wantLLP(Finish)
	if left := p.Machine.Deadline().Sub(p.clock); left != closeTime {
		t.Errorf("%v left", left)
	}
	p.advance(closeTime - 1)
	p.wantState(RTS)
	p.advance(1)
	p.wantState(Error)
}

// A Read that arrives within a round trip was posted before the peer could know of the
// close: its answer is progress, as far as it comes on. That of a later one is none.
func TestQuietProgress(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		want  time.Duration
	}{
		{0, time.Minute},
		{rtt - 1, time.Minute},
		{rtt, closeTime},
	} {
		p, _ := served(t, func(s *setup) { s.CloseLimit = time.Minute })
		r := p.region(make([]byte, 4<<20), remoteAll)
		if c.after >= rtt { // something keeps the FIN back
			p.closeFar()
			p.advance(rtt - 1)
			p.Machine.Unsent(p.clock)
			p.advance(1)
		} else {
			p.closeFar()
			p.advance(c.after)
		}
		p.window = 0
		p.send(request(2, readOf(r.STag(), 4<<20)))
		keeps(p, func(int) { p.window = 4 << 10 })
		if got := p.clock.Sub(epoch).Round(time.Second); got != c.want {
			t.Errorf("a Read after %v: waited for %v, want %v; %v", c.after, got, c.want, p.Machine.Cause())
		}
	}
}
