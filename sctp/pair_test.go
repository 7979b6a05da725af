package sctp_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A pair is two Associations and what is under way between them, in whatever order it arrives. Nothing is lost, as
// SCTP loses nothing.
type pair struct {
	*rapid.T
	ends  [2]*end
	now   time.Time
	reset bool // see TestAnyOrder
}

// An end is one side, with its consumer.
type end struct {
	a        *sctp.Association
	underway []sctp.Message    // to the other side
	acks     map[uint16]uint64 // of messages that have arrived at the other side
	order    map[uint16][]bool // by stream, which messages have arrived
	index    []int             // of each that is under way, on its stream
	sent     map[uint16]int    // segments of the session
	got      map[uint16][]uint64
	ended    map[uint16]uint64 // number of the peer's Terminate
	requests []uint16
	open     map[uint16]bool
	closed   map[uint16]bool
	said     map[uint16]bool // our Terminate
	canceled bool            // a request of ours
}

func newPair(t *rapid.T) *pair {
	p := &pair{T: t, now: epoch}
	for i := range p.ends {
		p.ends[i] = &end{
			a:    sctp.New(epoch, sctp.Config{Active: i == 0, Listening: true, Streams: 6, MaxMessage: 1444}),
			acks: map[uint16]uint64{}, order: map[uint16][]bool{}, sent: map[uint16]int{},
			got: map[uint16][]uint64{}, ended: map[uint16]uint64{}, open: map[uint16]bool{}, closed: map[uint16]bool{},
			said: map[uint16]bool{},
		}
	}
	return p
}

// collect puts what an end has to say under way, and has its consumer hear what happened.
func (p *pair) collect(e *end) {
	for m, ok := e.a.Output(); ok; m, ok = e.a.Output() {
		e.underway = append(e.underway, m)
		if c, err := sctp.ParseControl(m.Data); m.PPID == sctp.PPIDControl && err == nil &&
			c.Function == sctp.FunctionTerminate {
			e.said[m.Stream] = true
		}
		e.index = append(e.index, len(e.order[m.Stream]))
		e.order[m.Stream] = append(e.order[m.Stream], false)
	}
	for v, ok := e.a.Event(); ok; v, ok = e.a.Event() {
		p.hear(e, v)
	}
	switch how := e.a.End(); {
	case how.How == sctp.NotYet:
	case how.Cause == sctp.ErrReset && e.canceled:
		p.reset = true
	default:
		p.Fatalf("the association ended: %v", how.Cause)
	}
}

func (p *pair) hear(e *end, v sctp.Event) {
	id := v.Stream
	switch v.Kind {
	case sctp.EventRequest:
		e.requests = append(e.requests, id)
	case sctp.EventEstablished:
		p.opened(e, id)
	case sctp.EventSegment:
		if !e.open[id] || v.Number != uint64(binary.BigEndian.Uint32(v.Segment)) {
			p.Fatalf("stream %d: segment %x with number %d, open %t", id, v.Segment, v.Number, e.open[id])
		}
		e.got[id] = append(e.got[id], v.Number)
	case sctp.EventTerminate:
		e.ended[id] = v.Number
	case sctp.EventWithdrawn:
		e.requests = slices.DeleteFunc(e.requests, func(r uint16) bool { return r == id })
	case sctp.EventEnded:
		if v.Err != sctp.ErrReset { // see collect
			p.complete(e, id, v.Err)
		}
	case sctp.EventFailed:
		p.Fatalf("stream %d: %v", id, v.Err)
	case sctp.EventRefused:
	}
}

func (p *pair) opened(e *end, id uint16) {
	e.open[id], e.closed[id], e.said[id], e.sent[id], e.got[id] = true, false, false, 0, nil
	delete(e.ended, id)
}

// complete holds that each segment before the peer's Terminate has come once.
func (p *pair) complete(e *end, id uint16, err error) {
	slices.Sort(e.got[id])
	last, ok := e.ended[id]
	if err != nil || !ok || len(e.got[id]) != int(last)-1 {
		p.Fatalf("stream %d ended at %d (%t) with %d segments: %v", id, last, ok, len(e.got[id]), err)
	}
	for i, n := range e.got[id] {
		if n != uint64(i+1) {
			p.Fatalf("stream %d: segments %v", id, e.got[id])
		}
	}
	e.open[id] = false
}

// deliver has any of the messages under way arrive.
func (p *pair) deliver(from, to *end, which int) {
	m, index := from.underway[which], from.index[which]
	from.underway, from.index = slices.Delete(from.underway, which, which+1), slices.Delete(from.index, which, which+1)
	from.order[m.Stream][index] = true
	to.a.Receive(p.now, m)
	p.collect(to)
	clear(m.Data) // what was handed out is not looked at again
}

// acknowledge tells an end of what has arrived of all that it sent on a stream.
func (p *pair) acknowledge(e *end) {
	for id, arrived := range e.order {
		n := slices.Index(arrived, false)
		if n < 0 {
			n = len(arrived)
		}
		e.a.Acked(p.now, id, uint64(n))
		p.collect(e)
	}
}

// act has a consumer do something.
func (p *pair) act(e *end) {
	id := uint16(rapid.IntRange(0, 5).Draw(p.T, "stream"))
	switch rapid.IntRange(0, 9).Draw(p.T, "act") {
	case 0:
		_, _ = e.a.Connect(p.now, mpa.Offer{ClientServer: rapid.Bool().Draw(p.T, "client-server")})
	case 1, 2:
		p.answer(e)
	case 3:
		if e.open[id] && !e.closed[id] {
			e.closed[id] = true
			e.a.Close(p.now, id)
		}
	case 4:
		if e.a.State(id) == sctp.InitiateSent && rapid.IntRange(0, 3).Draw(p.T, "cancel") == 0 {
			e.canceled = true
			e.a.Close(p.now, id)
		}
	default:
		if e.open[id] && e.a.Room(id) > 0 {
			e.sent[id]++
			if err := e.a.Send(id, binary.BigEndian.AppendUint32(nil, uint32(e.sent[id]))); err != nil {
				p.Fatal(err)
			}
		}
	}
	p.collect(e)
}

func (p *pair) answer(e *end) {
	if len(e.requests) == 0 {
		return
	}
	id := e.requests[0]
	e.requests = e.requests[1:]
	if rapid.IntRange(0, 3).Draw(p.T, "reject") == 0 {
		_ = e.a.Reject(p.now, id, nil, 0, 0)
		return
	}
	if _, err := e.a.Accept(p.now, id, mpa.Answer{}); err != nil {
		p.Fatal(err)
	}
	p.opened(e, id)
}

// finish closes whatever is open and lets all that is under way arrive.
func (p *pair) finish() {
	for range 100 {
		for i, e := range p.ends {
			for len(e.requests) > 0 {
				p.answer(e)
			}
			for id := range uint16(6) {
				e.canceled = e.canceled || e.a.State(id) == sctp.InitiateSent
				e.a.Close(p.now, id)
			}
			p.collect(e)
			for len(e.underway) > 0 {
				p.deliver(e, p.ends[1-i], len(e.underway)-1)
			}
			p.acknowledge(e)
		}
	}
}

// step has a consumer act, a message arrive, or an acknowledgement.
func (p *pair) step(t *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(t, "side")
	switch e := p.ends[i]; {
	case rapid.Bool().Draw(t, "consumer"):
		p.act(e)
	case len(e.underway) > 0:
		p.deliver(e, p.ends[1-i], rapid.IntRange(0, len(e.underway)-1).Draw(t, "which"))
	default:
		p.acknowledge(e)
	}
}

// TestAnyOrder plays two consumers over a carrier that delivers in any order, acknowledges when it likes, and loses
// nothing. Each segment comes exactly once, in a session that is open; every session ends in order, and all streams
// are idle in the end. Where a request is taken back, and a segment comes for it all the same, which nobody takes, the
// association may end for that.
//
// Proves C04, C06.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			p.step(t)
		}
		if p.finish(); p.reset {
			return
		}
		for i, e := range p.ends {
			for id := range uint16(6) {
				if s := e.a.State(id); s != sctp.Idle {
					t.Fatalf("side %d: stream %d is in state %v", i, id, s)
				}
			}
		}
	})
}

// TestRepeated delivers one message of a session twice, which SCTP never does: the session ends over it, and not a
// segment is handed out twice.
func TestRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := sctp.New(epoch, sctp.Config{Listening: true, Streams: 1})
		a.Receive(epoch, sctp.Message{PPID: 17, Data: []byte{0, 0, 0, 1}})
		_, _ = a.Event()
		if _, err := a.Accept(epoch, 0, mpa.Answer{}); err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, 50).Draw(t, "segments")
		order := rapid.Permutation(numbers(n)).Draw(t, "order")
		again := rapid.SampledFrom(order).Draw(t, "again")
		order = slices.Insert(order, rapid.IntRange(slices.Index(order, again)+1, n).Draw(t, "where"), again)
		seen := map[uint64]bool{}
		failed := false
		for _, ssn := range order {
			a.Receive(epoch, sctp.Message{PPID: 16, Data: []byte{0, ssn, 'x'}})
			for e, ok := a.Event(); ok; e, ok = a.Event() {
				if e.Kind == sctp.EventSegment && (seen[e.Number] || failed) {
					t.Fatalf("segment %d again, or after the failure", e.Number)
				}
				seen[e.Number] = true
				failed = failed || e.Kind == sctp.EventFailed
			}
		}
		if !failed {
			t.Fatal("nobody noticed")
		}
	})
}

func numbers(n int) (all []byte) {
	for i := range n {
		all = append(all, byte(i+1))
	}
	return all
}

// FuzzControl: what can be parsed is written in the same bytes, and what cannot names its rule.
func FuzzControl(f *testing.F) {
	for _, text := range []string{"\x00\x00\x00\x01hi", "\x00\x01\x00\x04", "\x00\x00\x00\x05\x80\x05\xc0\x09hi",
		"\x00\x00\x00\x06\x00", "\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := sctp.ParseControl(b)
		if err != nil {
			if v, ok := err.(*sctp.Violation); !ok || v.Rule.Section() == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		if out := sctp.AppendControl(nil, &c); string(out) != string(b) {
			t.Fatalf("% x became % x", b, out)
		}
		if len(b) > 516 || fmt.Sprint(c.Function) == "" {
			t.Fatalf("%d bytes of %v", len(b), c.Function)
		}
	})
}

// FuzzSegment: what can be parsed is written in the same bytes.
func FuzzSegment(f *testing.F) {
	f.Add([]byte{0, 1, 0x41, 0x43})
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, b []byte) {
		ssn, ok := sctp.SSN(b)
		if !ok {
			return
		}
		if out := sctp.AppendSegment(nil, ssn, b[sctp.SSNLen:]); string(out) != string(b) {
			t.Fatalf("% x became % x", b, out)
		}
	})
}
