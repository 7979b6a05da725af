package engine

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// closing is a QP that has closed in order and waits for the peer's FIN.
func closing(t *testing.T, change ...func(*setup)) *peer {
	p := initiator(t, change...)
	p.post(work(100, OpSend))
	p.closeOrderly()
	p.want(send(1, nil))
	p.wantNothing()
	p.completion(success(100, OpSend, 0))
	p.wantLLP(Finish)
	return p
}

// Proves D33, D30: after the FIN of an orderly close, what the peer sends is received,
// placed and delivered until its own FIN, whenever that comes.
func TestDrainReceives(t *testing.T) {
	p := closing(t)
	mem := make([]byte, 20)
	r := p.region(mem, remoteAll)
	p.receive(1, all(r, 20))
	p.receive(2)
	p.advance(closeTime - 1)
	p.send(write(r.STag(), 15, []byte("abc")), send(1, []byte("defgh")))
	p.completion(success(1, OpReceive, 5))
	if string(mem) != "defgh\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00abc\x00\x00" {
		t.Errorf("%q", mem)
	}
	p.wantNothing()
	p.wantLLP()
	p.advance(closeTime - 1) // that was progress
	p.wantState(RTS)
	p.fin()
	p.wantState(Idle)
	p.wantLLP(Drop)
	p.completion(flushed(2, OpReceive))
	p.wantNotices(NoticeHalfClosed, NoticeCloseComplete)
	if p.Machine.Cause() != ErrClosedHere {
		t.Error(p.Machine.Cause())
	}
}

// RFC 5040, section 5.4: "The RDMAP layer MUST Deliver the Terminate Message to the
// ULP", after our FIN too.
//
// Proves P38: a Terminate is surfaced whenever it comes.
func TestDrainSurfacesTerminate(t *testing.T) {
	p := closing(t)
	p.send(terminate(rdmap.CodeDDPInvalidSTag))
	p.wantCause(rdmap.CodeDDPInvalidSTag, true)
	p.wantNotices(NoticeTerminateReceived)
	p.wantNothing()
	p.wantState(Terminate)
	p.wantLLP()
	p.fin()
	p.wantState(Error)
	p.wantLLP(Drop)
}

// Reads are answered as long as our half is open. One that comes later costs the peer
// only that Read: what else it sends is delivered.
func TestDrainReads(t *testing.T) {
	p := responder(t)
	r := p.region(numbered(100), remoteAll)
	p.receive(1)
	p.send(request(1, readOf(r.STag(), 10)))
	p.closeOrderly()
	p.send(request(2, readOf(r.STag(), 20)))
	p.want(response(5, 0, numbered(10)), response(5, 0, numbered(20)))
	p.wantNothing()
	p.wantLLP(Finish)
	p.send(request(3, readOf(r.STag(), 30)), request(4, readOf(r.STag(), 40)), send(1, nil))
	p.wantNothing()
	p.completion(success(1, OpReceive, 0))
	if got := p.Machine.Stats().Odd.Late; got != 2 {
		t.Errorf("%d late Reads", got)
	}
	p.fin()
	p.wantState(Idle)
	p.wantLLP(Drop)

	p = closing(t) // what is wrong with it is an error all the same
	p.send(request(7, readOf(1, 0)))
	p.wantState(Error)
	p.wantCause(rdmap.Code(0x1203), false)
}

// keeps has something happen every second after an orderly close has begun, and
// returns how long the QP waits.
func keeps(p *peer, each func(i int)) time.Duration {
	for i := range 1000 {
		if p.Machine.State() != RTS {
			return time.Duration(i) * time.Second
		}
		each(i)
		p.sent = append(p.sent, p.output()...)
		p.advance(time.Second)
	}
	return time.Hour
}

// A close goes on as long as it comes on, and no longer: not for empty messages, Reads
// that were not there when it began, or bytes by the piece; and with all progress not
// beyond its limit.
func TestDrainProgress(t *testing.T) {
	const limit = 40 * time.Second
	limited := func(s *setup) { s.CloseLimit, s.RecvDepth = limit, 100 }
	for _, c := range []struct {
		name string
		each func(p *peer, r *memory.Region) func(i int)
		want time.Duration
	}{
		{"nothing", func(*peer, *memory.Region) func(int) { return func(int) {} }, closeTime},
		{"empty Writes", func(p *peer, _ *memory.Region) func(int) {
			return func(int) { p.send(write(1, 0, nil)) }
		}, closeTime},
		{"bytes", func(p *peer, r *memory.Region) func(int) {
			return func(int) { p.send(write(r.STag(), 0, []byte("x"))) }
		}, closeTime},
		{"Reads", func(p *peer, r *memory.Region) func(int) {
			return func(i int) { p.send(request(uint32(i+1), readOf(r.STag(), 1<<14))) }
		}, closeTime},
		{"ten messages", func(p *peer, _ *memory.Region) func(int) {
			return func(i int) {
				if i < 10 {
					p.send(send(uint32(i+1), nil))
				}
			}
		}, 9*time.Second + closeTime},
		{"many messages", func(p *peer, _ *memory.Region) func(int) {
			return func(i int) { p.send(send(uint32(i+1), nil)) }
		}, limit},
		{"Writes of some size", func(p *peer, r *memory.Region) func(int) {
			return func(int) { p.send(write(r.STag(), 0, numbered(1<<12))) }
		}, limit},
	} {
		p := closing(t, limited)
		r := p.region(make([]byte, 1<<15), remoteAll)
		for id := range uint64(100) {
			p.receive(id)
		}
		if got := keeps(p, c.each(p, r)); got != c.want {
			t.Errorf("%s: waited for %v, want %v", c.name, got, c.want)
		}
		p.wantState(Error)
		p.wantLLP(Reset)
		if err := p.Machine.Cause(); !errors.Is(err, ErrLost) || !errors.Is(err, ErrTimeout) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// The same before our FIN: our work, and the Reads that were there before, count as
// far as they come on; a peer that takes a byte a second, or asks for more, gains
// nothing.
func TestDrainProgressOfWork(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int  // that the LLP takes each second
		reads bool // of the peer's that were there, in place of our work
		new   bool // and such that come later
		want  time.Duration
		says  string
	}{
		{"nothing taken", 0, false, false, closeTime, "did not take"},
		{"a byte", 1, false, false, closeTime, "did not take"},
		{"some bytes", 4 << 10, false, false, time.Minute, "took more than"},
		{"some bytes for old Reads", 4 << 10, true, false, time.Minute, "took more than"},
		{"some bytes for new Reads", 4 << 10, false, true, closeTime, "did not answer"},
	} {
		p := initiator(t, func(s *setup) { s.CloseLimit = time.Minute })
		r := p.region(make([]byte, 4<<20), remoteAll)
		p.window = 0
		switch {
		case c.reads:
			p.send(request(1, readOf(r.STag(), 4<<20)))
		case c.new:
			p.window = -1
			p.post(work(1, OpRead))
			p.output()
			p.window = 0
		default:
			p.post(work(1, OpSend, all(r, 4<<20)))
		}
		p.closeOrderly()
		if c.new {
			p.send(request(1, readOf(r.STag(), 4<<20)))
		}
		got := keeps(p, func(int) { p.window = c.bytes })
		if got != c.want || !strings.Contains(p.Machine.Cause().Error(), c.says) {
			t.Errorf("%s: waited for %v, want %v; %v", c.name, got, c.want, p.Machine.Cause())
		}
	}
}

// Proves D32: after the peer's FIN work can still be posted and goes out, but for what
// the peer would have to answer; our half is closed when there was none for as long as
// Linger says, or when the consumer closes it.
func TestLinger(t *testing.T) {
	const linger = 300 * time.Millisecond
	p := initiator(t, func(s *setup) { s.Linger = linger })
	p.receive(9)
	p.fin()
	p.completion(flushed(9, OpReceive))
	p.wantNotices(NoticeHalfClosed)
	for i := range uint32(5) {
		p.advance(linger - 1)
		p.wantState(RTS)
		p.post(work(uint64(i), OpSend))
		p.want(send(i+1, nil))
	}
	read, receive := work(1, OpRead), RecvWork{}
	if err := p.Machine.PostSend(&read); !errors.Is(err, ErrPeerClosed) {
		t.Error(err)
	}
	if err := p.Machine.PostReceive(&receive); !errors.Is(err, ErrPeerClosed) {
		t.Error(err)
	}
	p.window = 0 // work that does not get out keeps it open
	p.post(work(7, OpSend))
	p.advance(time.Hour)
	p.wantState(RTS)
	p.window = -1
	p.want(send(6, nil))
	p.advance(linger - 1)
	p.wantState(RTS)
	p.wantLLP()
	p.advance(1)
	p.wantState(Idle)
	p.wantLLP(Drop)
	p.wantNotices(NoticeCloseComplete)
	if p.Machine.Cause() != ErrPeerClosed {
		t.Error(p.Machine.Cause())
	}

	p = initiator(t, func(s *setup) { s.Linger = time.Hour })
	p.fin()
	p.closeOrderly()
	p.wantState(Idle)
	p.wantLLP(Drop)
	if p.Machine.Cause() != ErrPeerClosed {
		t.Error(p.Machine.Cause())
	}
}

// A connection without halves is over when one is closed.
func TestWholeClosed(t *testing.T) {
	p := initiator(t)
	p.receive(1)
	p.closeOrderly()
	p.wantLLP(Finish)
	p.Machine.WholeClosed(p.clock)
	p.collectOutputs()
	p.wantState(Idle)
	p.wantLLP(Drop)
	p.completion(flushed(1, OpReceive))
	p.wantNotices(NoticeCloseComplete)

	for _, change := range []func(*setup){
		func(s *setup) { s.Linger = time.Hour }, func(s *setup) { s.HalfClose = true },
	} {
		p = initiator(t, change)
		p.Machine.WholeClosed(p.clock)
		p.collectOutputs()
		p.wantStates(RTS, Closing, Idle)
		p.wantLLP(Drop)
	}

	p = initiator(t)
	p.modify(Terminate)
	p.want(terminate(0))
	p.Machine.WholeClosed(p.clock)
	p.collectOutputs()
	p.wantStates(RTS, Terminate, Error)
}

// The response to a Read keeps a close too, and so do requests that complete, however short
// they are.
//
// Proves D30.
func TestDrainOwnWork(t *testing.T) {
	const limit = 40 * time.Second
	p := initiator(t, func(s *setup) { s.CloseLimit = limit })
	r := p.region(make([]byte, 1<<20), remoteAll)
	p.post(work(1, OpRead, all(r, 1<<20)))
	p.closeOrderly()
	p.output()
	to := 0
	if got := keeps(p, func(int) {
		for range 4 {
			p.send(response(r.STag(), uint64(to), numbered(4100)).more())
			to += 4100
		}
	}); got != limit {
		t.Errorf("a Read: waited for %v: %v", got, p.Machine.Cause())
	}

	p = initiator(t, func(s *setup) { s.CloseLimit, s.SendDepth = limit, 100 })
	p.window = 0
	for id := range uint64(100) {
		p.post(work(id, OpSend))
	}
	p.closeOrderly()
	if got := keeps(p, func(int) { p.window = 24 }); got != limit { // an FPDU without payload
		t.Errorf("Sends: waited for %v: %v", got, p.Machine.Cause())
	}
}

// Two ends that post and close, at any moment: what one completed with success the
// other has received, and both end in order.
//
// Proves D30, D33: nothing that was sent before an orderly close is lost by it.
func TestDrainLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		p := newPair(t, both(func(s *setup) { s.SendDepth, s.RecvDepth, s.SendFirst = 64, 64, true }))
		p.ab.piece, p.ba.piece = func(n int) int { return r.IntN(n) }, func(n int) int { return r.IntN(n) }
		buf := numbered(1 << 14)
		for _, h := range []*host{p.a, p.b} {
			mem := h.region(make([]byte, 1<<14), memory.LocalWrite)
			for id := range uint64(64) {
				h.receive(id, all(mem, 1<<14))
			}
		}
		for range r.IntN(100) {
			h := []*host{p.a, p.b}[r.IntN(2)]
			if sends, _ := h.Machine.Outstanding(); sends < 64 && len(h.done) < 50 {
				h.post(SendWork{Op: OpSend, SGL: listOf(SGE{Region: h.region(buf, 0), Length: r.IntN(1 << 14)})})
			}
			for range r.IntN(2) {
				p.step()
			}
		}
		closers := []*host{p.a, p.b}
		if r.IntN(2) == 0 {
			closers = []*host{p.b, p.a}
		}
		for _, h := range closers {
			h.closeOrderly()
			for range r.IntN(60) {
				p.step()
			}
		}
		p.run()
		for _, h := range []*host{p.a, p.b} {
			h.wantState(Idle)
			if err := h.Machine.Cause(); err != ErrClosedHere && err != ErrPeerClosed {
				t.Fatal(err)
			}
		}
		if a, b := successes(p.a), successes(p.b); a[OpSend] != b[OpReceive] || b[OpSend] != a[OpReceive] {
			t.Fatalf("sent and received: %v, %v", a, b)
		}
	})
}

func successes(h *host) map[Op]int {
	n := map[Op]int{}
	for _, c := range h.done {
		if c.Status == StatusSuccess {
			n[c.Op]++
		}
	}
	return n
}
