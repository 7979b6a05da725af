package sctpudp

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// linked brings up an association over a link in memory, whose time is virtual.
func linked(t *testing.T, l testrig.Link, c Config) (active, passive *Conn) {
	t.Helper()
	a, b := l.Sockets()
	server, client := New(b, true, c), New(a, false, c)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	active, err := client.Dial(t.Context(), server.at())
	testrig.Must(t, err)
	passive, err = server.Accept(t.Context())
	testrig.Must(t, err)
	return active, passive
}

// A consumer takes messages when and how fast it wants to.
type consumer struct {
	begins   chan struct{} // closed when it takes the first
	each     time.Duration
	taken    int
	last     time.Time
	standing time.Duration // the longest that it had to wait for one
	all      chan struct{} // closed when it has all
}

// takes is what Run is given.
func (c *consumer) takes(sctp.Message) {
	if c.taken == 0 {
		<-c.begins
		c.last = time.Now()
	}
	c.standing = max(c.standing, time.Since(c.last))
	time.Sleep(c.each)
	c.last = time.Now()
	if c.taken++; c.taken == transferred {
		close(c.all)
	}
}

// transferred is how many messages of 1444 bytes, eleven windows, a transfer has.
const transferred = 2000

// transfer has a consumer take everything, from when nothing has moved for a while, and returns how long that took.
func transfer(t *testing.T, l testrig.Link, c *consumer, idle time.Duration) time.Duration {
	t.Helper()
	from, to := linked(t, l, Config{})
	c.begins, c.all = make(chan struct{}), make(chan struct{})
	run(from)
	go to.Run(c.takes, func(uint16, uint64) {}, func(error) {})
	go func() {
		for range transferred {
			testrig.Must(t, from.Send(sctp.Message{PPID: 16, Data: make([]byte, 1444)}))
		}
	}()
	time.Sleep(idle)
	close(c.begins)
	began := time.Now()
	<-c.all
	return time.Since(began)
}

// TestWindowReopens: when a consumer that had stopped takes what has come, the peer hears of the room and goes on at
// once, with no timer in between: nobody stands still for more than two round trips, one for the room and one for the
// probe.
//
// RFC 9260, section 6.2: "When the window opens up, an SCTP receiver SHOULD send additional SACK chunks".
func TestWindowReopens(t *testing.T) {
	for _, delay := range []time.Duration{0, 50 * time.Microsecond, 10 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := consumer{}
			took := transfer(t, testrig.Link{Delay: delay}, &c, 700*time.Millisecond)
			t.Logf("delay %v: %v, standing still for %v", delay, took, c.standing)
			if c.standing > 4*delay || took > 2*transferred/100*2*delay {
				t.Errorf("delay %v: %v, standing still for %v", delay, took, c.standing)
			}
		})
	}
}

// TestSlowConsumer: one that is slower than its peer never waits for it: there is always something to take.
func TestSlowConsumer(t *testing.T) {
	for _, delay := range []time.Duration{0, 10 * time.Millisecond} {
		for _, each := range []time.Duration{time.Millisecond, 20 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				c := consumer{each: each}
				took := transfer(t, testrig.Link{Delay: delay}, &c, 0)
				t.Logf("delay %v: %v, standing still for %v", delay, took, c.standing)
				if most := transferred*each + 20*delay; took > most {
					t.Errorf("delay %v, %v each: %v, more than %v", delay, each, took, most)
				}
			})
		}
	}
}

// TestWindowUpdateLost: one that does not arrive costs a retransmission timeout, and no more: the probe that is held
// back is sent then.
//
// RFC 9260, section 6.1: "Senders MUST support zero window probing."
func TestWindowUpdateLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, lost := time.Now(), 0
		lose := func() bool {
			if now := time.Since(began); now >= 700*time.Millisecond && now < 800*time.Millisecond {
				lost++
				return true
			}
			return false
		}
		c := consumer{}
		took := transfer(t, testrig.Link{Delay: time.Millisecond, Lose: lose}, &c, 700*time.Millisecond)
		t.Logf("%v, standing still for %v, after %d lost packets", took, c.standing, lost)
		if lost == 0 || c.standing > 1200*time.Millisecond {
			t.Errorf("%v, standing still for %v, after %d lost packets", took, c.standing, lost)
		}
	})
}

// fills opens an association whose consumer takes nothing yet, and sends messages of 1000 bytes as long as there is
// room. It returns the room that is left.
func (s *stranger) fills(e *Endpoint) (theirs chunk.Setup, c *Conn, room uint32) {
	s.Helper()
	theirs = s.asks()
	s.echo(&theirs)
	s.hears(chunk.TypeCookieAck)
	c, err := e.Accept(s.Context())
	testrig.Must(s.T, err)
	for room = theirs.Window; room >= 1000; {
		s.thousand(&theirs)
		if room = s.wantSack(s.ours.TSN); room >= 1000 {
			s.ours.TSN++
		}
	}
	return theirs, c, room
}

// thousand sends a message of 1000 bytes, which asks for a SACK at once.
func (s *stranger) thousand(theirs *chunk.Setup) {
	s.Helper()
	s.says(theirs.Tag, chunk.TypeData, plain|flagImmediate, data(s.ours.TSN, 1, 16, string(make([]byte, 1000))))
}

// wantSack waits for a SACK, which acknowledges everything up to a TSN and nothing beyond, and returns its a_rwnd.
func (s *stranger) wantSack(tsn uint32) uint32 {
	s.Helper()
	_, c := s.hears(chunk.TypeSack)
	if got := binary.BigEndian.Uint32(c.Value); got != tsn || len(c.Value) != 12 ||
		binary.BigEndian.Uint32(c.Value[8:]) != 0 {
		s.Errorf("SACK of %d and % x, want %d", got, c.Value[4:], tsn)
	}
	return binary.BigEndian.Uint32(c.Value[4:])
}

// TestNoRoom: what does not fit into the window that was announced is dropped, and the peer is told at once how much is
// there, and how much room. When the consumer has taken it, the peer hears of the room, in four steps at most.
//
// RFC 9260, section 6.2: "if such a DATA chunk is dropped, the receiver MUST immediately send back a SACK chunk with
// the current receive window showing only DATA chunks received and accepted so far."
func TestNoRoom(t *testing.T) {
	const window = 64 << 10
	e := endpoint(t, true, Config{Window: window})
	s := meet(t, e)
	theirs, c, room := s.fills(e)
	last := s.ours.TSN
	if room != window%1000 {
		t.Errorf("room for %d bytes", room)
	}
	for range 3 {
		s.ours.TSN++
		s.thousand(&theirs)
		if got := s.wantSack(last); got != room {
			t.Errorf("room for %d bytes, before %d", got, room)
		}
	}
	run(c)
	for steps := 1; room < window*3/4; steps++ {
		before := room
		if room = s.wantSack(last); room < before+window/4 || steps > 4 {
			t.Errorf("step %d: room for %d bytes, before %d", steps, room, before)
		}
	}
	s.ours.TSN = last + 1
	s.thousand(&theirs)
	s.wantSack(last + 1)
}

// TestWindowUpdates: the peer hears of room by the quarter, and not while nothing new is taken.
func TestWindowUpdates(t *testing.T) {
	a := newArrivals(1, 1000)
	wantUpdate := func(want bool) {
		t.Helper()
		if got := len(a.reopen) > 0; got != want {
			t.Fatalf("%t with %+v", got, a)
		}
	}
	says := func(tsn, window uint32) {
		sack := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, tsn), window+lag)
		a.announce(chunk.Header{}.Packet(chunk.Chunk{Type: chunk.TypeSack, Value: append(sack, 0, 0, 0, 0)}))
	}
	for tsn := range uint32(10) {
		a.admits(tsn+1, 100)
	}
	says(10, 0)
	a.read(249)
	wantUpdate(false)
	a.read(1)
	wantUpdate(true)
	a.read(300)
	<-a.reopen
	a.read(100)
	wantUpdate(false) // it was asked for
	says(10, 650)
	a.read(249)
	wantUpdate(false)
	a.setHold(true)
	a.admits(12, 0) // ahead of 11
	a.read(101)
	wantUpdate(false)
	says(10, 1000) // which is made 0
	a.setHold(false)
	wantUpdate(true)
	if c := a.known(); c.Flags&flagImmediate == 0 || binary.BigEndian.Uint32(c.Value) != 10 {
		t.Errorf("asks by % x", c.Value)
	}
}

// TestProbes: of what pion sends, only a new DATA chunk is held back for which there is no room, with nothing else
// under way; and when that is sent, it asks for a SACK at once.
func TestProbes(t *testing.T) {
	p := newProbes(5, 2000)
	send := func(want bool, tsns ...uint32) []byte {
		t.Helper()
		var all []chunk.Chunk
		for _, tsn := range tsns {
			d := chunk.Data{TSN: tsn, PPID: 16, Bytes: make([]byte, 1000)}
			all = append(all, d.Chunk(plain))
		}
		b := chunk.Header{}.Packet(all...)
		if got := p.passes(b); got != want {
			t.Fatalf("TSNs %d: passes %t with %+v", tsns, got, p)
		}
		return b
	}
	sack := func(tsn, window uint32) []byte {
		v := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, tsn), window)
		return p.acknowledged(&chunk.Chunk{Type: chunk.TypeSack, Value: append(v, 0, 0, 0, 0)})
	}
	wantNone := func(b []byte) {
		t.Helper()
		if b != nil {
			t.Fatalf("a probe is sent: % x", b)
		}
	}
	immediate := func(b []byte) {
		t.Helper()
		if b == nil || b[chunk.HeaderLen+1] != plain|flagImmediate {
			t.Fatalf("%d bytes, % x", len(b), b[:min(len(b), 20)])
		}
	}
	if !p.passes(chunk.Header{}.Packet(chunk.Chunk{Type: chunk.TypeSack, Value: make([]byte, 12)})) {
		t.Fatal("a SACK is held back")
	}
	wantNone(sack(3, 1000)) // it is old
	wantNone(sack(5, 0))    // nothing was sent
	send(true, 5, 6)
	wantNone(sack(5, 0))
	send(true, 6) // sent before
	wantNone(sack(6, 999))
	send(false, 7)
	wantNone(sack(6, 998))
	immediate(sack(6, 1000))
	wantNone(sack(6, 1000)) // once
	wantNone(sack(6, 0))
	immediate(send(true, 7)) // its time has come
	immediate(sack(6, 1500))
	wantNone(sack(6, 0))
	wantNone(sack(7, 0))
	wantNone(sack(7, 5000))
	send(true, 8)
	wantNone(p.acknowledged(&chunk.Chunk{Type: chunk.TypeSack, Value: make([]byte, 7)}))
	wantNone(sack(8, 0))
	send(false, 9)
	wantNone(sack(9, 1000))
	send(true, 10)
}

// TestFirstProbe: what is sent first is a probe if the INIT has announced no room for it.
func TestFirstProbe(t *testing.T) {
	for window, want := range map[uint32]bool{999: false, 1000: true} {
		d := chunk.Data{TSN: 5, PPID: 16, Bytes: make([]byte, 1000)}
		if got := newProbes(5, window).passes(chunk.Header{}.Packet(d.Chunk(plain))); got != want {
			t.Errorf("with room for %d bytes it passes %t", window, got)
		}
	}
}

// TestNoProbe: what follows something that is under way is none, however little room there is: SCTP sends it by its own
// rules.
func TestNoProbe(t *testing.T) {
	p := newProbes(5, 2000)
	for tsn := uint32(5); tsn < 8; tsn++ {
		d := chunk.Data{TSN: tsn, PPID: 16, Bytes: make([]byte, 1000)}
		if !p.passes(chunk.Header{}.Packet(d.Chunk(plain))) {
			t.Errorf("TSN %d is held back", tsn)
		}
		p.acknowledged(&chunk.Chunk{Type: chunk.TypeSack, Value: []byte{0, 0, 0, 4, 0, 0, 0, 100, 0, 0, 0, 0}})
	}
}

// TestProbeAcrossZero: TSNs go on from zero after the last, also those of probes.
func TestProbeAcrossZero(t *testing.T) {
	p := newProbes(1<<32-2, 1000)
	for i, want := range []bool{true, false} {
		d := chunk.Data{TSN: 1<<32 - 2 + uint32(i), PPID: 16, Bytes: make([]byte, 1000)}
		if got := p.passes(chunk.Header{}.Packet(d.Chunk(plain))); got != want {
			t.Errorf("TSN %d passes %t", d.TSN, got)
		}
		p.acknowledged(&chunk.Chunk{Type: chunk.TypeSack,
			Value: append(binary.BigEndian.AppendUint32(nil, 1<<32-2), make([]byte, 8)...)})
	}
}

// TestProbesKnow: what is old, or acknowledges what was not sent, changes nothing, and neither does a SACK of ours; and
// where only the window has become larger, or has no room for two, a SACK is asked for.
func TestProbesKnow(t *testing.T) {
	d := func(tsn uint32) []byte {
		d := chunk.Data{TSN: tsn, PPID: 16, Bytes: make([]byte, 1000)}
		return chunk.Header{}.Packet(d.Chunk(plain))
	}
	sack := func(tsn, window uint32) *chunk.Chunk {
		v := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, tsn), window)
		return &chunk.Chunk{Type: chunk.TypeSack, Value: append(v, 0, 0, 0, 0)}
	}
	for _, other := range []*chunk.Chunk{sack(3, 5000), sack(9, 5000)} {
		p := newProbes(5, 2000)
		p.passes(d(5))
		p.acknowledged(sack(5, 0))
		p.acknowledged(other)
		p.passes(chunk.Header{}.Packet(*sack(6, 5000))) // of ours
		if p.passes(d(6)) || p.reached() != 5 || p.reached() != 5 {
			t.Errorf("after % x: %+v", other.Value, p)
		}
	}
	for _, c := range []struct {
		sacks []*chunk.Chunk
		want  bool
	}{{[]*chunk.Chunk{sack(5, 3000)}, false}, {[]*chunk.Chunk{sack(5, 2000), sack(5, 2000)}, false},
		{[]*chunk.Chunk{sack(5, 0), sack(5, 2000)}, true}, {[]*chunk.Chunk{sack(5, 1999)}, true}} {
		p, next := newProbes(5, 2000), d(6)
		p.passes(d(5))
		for _, s := range c.sacks {
			p.acknowledged(s)
		}
		if !p.passes(next) || (next[chunk.HeaderLen+1]&flagImmediate != 0) != c.want {
			t.Errorf("after %d SACKs: flags %x", len(c.sacks), next[chunk.HeaderLen+1])
		}
	}
}
