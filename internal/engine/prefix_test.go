package engine

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// prefix has the Sends of both begin with a prefix, or not.
func (p *pair) prefix(on bool) {
	p.a.Machine.SetPrefix(on)
	p.b.Machine.SetPrefix(on)
}

// prefixed are bytes after a prefix, as they are on the wire.
func prefixed(payload string) []byte { return append([]byte{1, 2, 3, 4, 5, 6, 7, 8}, payload...) }

const prefixValue = 0x0102030405060708

// A prefix goes in front of what a Send has, inline or not or nothing, and is counted nowhere. Other messages have
// none.
func TestPrefixSent(t *testing.T) {
	p := initiator(t)
	p.Machine.SetPrefix(true)
	buf := numbered(2000)
	r := p.region(buf, 0)
	for _, w := range []SendWork{work(0, OpSend), work(1, OpSend, all(r, 2000)), {ID: 2, Inline: []byte("in")},
		{ID: 3, HasInvalidate: true, Invalidate: 9, Solicited: true}} {
		w.Prefix = prefixValue
		p.post(w)
	}
	p.post(writing(4, 3))
	p.post(SendWork{ID: 5, Op: OpImmediate, Immediate: 7})
	p.post(SendWork{ID: 6, Inline: []byte("none")})
	first := testMULPDU - 18 - prefixLen
	p.want(send(1, prefixed("")), send(2, prefixed(string(buf[:first]))).more(),
		send(2, buf[first:]).at(prefixLen+first), send(3, prefixed("in")),
		sendAs(rdmap.OpSendSEInvalidate, 4, 9, prefixed("")), write(5, 100, numbered(3)), immediate(5, 7),
		send(6, append(make([]byte, prefixLen), "none"...)))
	p.completion(success(0, OpSend, 0), success(1, OpSend, 2000), success(2, OpSend, 2), success(3, OpSend, 0),
		success(4, OpWrite, 3), success(5, OpImmediate, 0), success(6, OpSend, 4))
}

// What comes after the prefix fills the receive, and the completion has the prefix, however it was cut. A message of 8
// bytes more than the receive fits, and no longer one.
func TestPrefixReceived(t *testing.T) {
	p := responder(t)
	p.Machine.SetPrefix(true)
	buf := make([]byte, 40)
	r := p.region(buf, memory.LocalWrite)
	for id := range uint64(6) {
		p.receive(id, SGE{Region: r, Offset: 5 * int(id), Length: 2}, SGE{Region: r, Offset: 5*int(id) + 2, Length: 2})
	}
	of := func(id uint64, n int) Completion {
		c := success(id, OpReceive, n)
		c.Prefix = prefixValue
		return c
	}
	p.send(send(1, prefixed("four")), send(2, prefixed("")[:3]).more(),
		send(2, prefixed("a")[3:]).at(3), send(3, prefixed("")),
		send(4, prefixed("")).more(), send(4, []byte("bc")).at(8).more(), send(4, []byte("d")).at(10))
	p.completion(of(0, 4), of(1, 1), of(2, 0), of(3, 3))
	if got := string(buf[:24]); got != "four\x00a\x00\x00\x00\x00\x00\x00\x00\x00\x00bcd\x00\x00\x00\x00\x00\x00" {
		t.Errorf("%q", got)
	}
	short := success(4, OpReceive, 0) // of a peer that does not keep to it
	short.Prefix = 0x01 << 56
	p.send(send(5, []byte{1}))
	p.completion(short)
	p.send(send(6, prefixed("long.")))
	p.completion(failed(5, OpReceive, StatusLocalLength))
	p.wantTerminate(terminateFor(rdmap.CodeDDPMessageTooLong, send(6, prefixed("long."))))
}

// What comes ahead of order goes into its receive as what comes in its turn, and the prefix is in the completion.
func TestPrefixAhead(t *testing.T) {
	s := overMessages(t, mpa.RoleResponder)
	s.Machine.SetPrefix(true)
	buf := make([]byte, 8)
	r := s.region(buf, memory.LocalWrite)
	s.receive(0)
	s.receive(1, SGE{Region: r, Length: 8})
	s.arrives(0, send(1, prefixed(""))) // before which nothing is placed: it may be a Send without a receive
	s.arrives(3, send(2, []byte("gh")).at(14))
	s.arrives(2, send(2, prefixed("abcdef")[5:]).at(5).more())
	s.arrives(1, send(2, prefixed("")[:5]).more())
	first, second := success(0, OpReceive, 0), success(1, OpReceive, 8)
	first.Prefix, second.Prefix = prefixValue, prefixValue
	s.completion(first, second)
	if string(buf) != "abcdefgh" {
		t.Errorf("%q", buf)
	}
	if placed := s.Machine.Stats().Ahead.Placed; placed != 2 {
		t.Errorf("%d segments were placed ahead", placed)
	}
}

// In its turn, a segment that was placed ahead is judged by the memory that its bytes after the prefix went to, and by
// no other.
//
// Proves D26.
func TestPrefixScatteredAhead(t *testing.T) {
	const size, behind = 8, prefixLen
	for _, c := range []struct {
		mo, n int
		gone  []int // elements; it fails if one of them is invalidated
	}{
		{0, behind, nil}, {3, behind - 3, nil}, {0, behind + size, []int{0}}, {0, behind + size + 1, []int{0, 1}},
		{5, behind - 5 + 2, []int{0}}, {5, behind - 5 + size, []int{0}}, {5, behind - 5 + size + 1, []int{0, 1}},
		{behind, size, []int{0}}, {behind, size + 1, []int{0, 1}}, {behind + size - 1, 1, []int{0}},
		{behind + size, size, []int{1}},
	} {
		for gone := range 3 {
			s := overMessages(t, mpa.RoleInitiator)
			s.Machine.SetPrefix(true)
			if failed := s.scattered(size, gone, send(1,
				numbered(c.n)).at(c.mo).more()); failed != slices.Contains(c.gone, gone) {
				t.Errorf("%d bytes at %d, without element %d: %v", c.n, c.mo, gone, s.Machine.Cause())
			}
		}
	}
}

// A Send that waits for a receive keeps its prefix.
func TestPrefixRNR(t *testing.T) {
	p := responder(t, patient(1<<20, 100))
	p.Machine.SetPrefix(true)
	p.send(send(1, prefixed("late")))
	p.noCompletion()
	buf := make([]byte, 4)
	p.receiveLate(1, all(p.region(buf, memory.LocalWrite), 4))
	c := success(1, OpReceive, 4)
	c.Prefix = prefixValue
	p.completion(c)
	if string(buf) != "late" {
		t.Errorf("%q", buf)
	}
}

// A Send with a prefix needs a QP whose Sends have one: what was posted before that is known fails then, and so does
// the one that is too long with it.
func TestPrefixRefused(t *testing.T) {
	p := initiator(t)
	if err := p.Machine.PostSend(&SendWork{Prefix: 1}); !errors.Is(err, ErrNoPrefix) {
		t.Error(err)
	}
	longest := make([]SGE, 2)
	longest[0].Length, longest[1].Length = math.MaxInt32, math.MaxInt32+1-prefixLen
	p.Machine.SetPrefix(true)
	if err := p.Machine.PostSend(&SendWork{SGL: listOf(append(slices.Clone(longest),
		SGE{Length: 1})...)}); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
	for _, late := range []struct {
		work   SendWork
		on     bool
		status Status
	}{
		{SendWork{ID: 1, Prefix: 1}, false, StatusUnsupported},
		{SendWork{ID: 1, SGL: listOf(append(longest, SGE{Length: 1})...)}, true, StatusLocalLength},
	} {
		s := newSetup(mpa.RoleInitiator)
		early := newHost(t, &p.clock, s)
		early.post(late.work)
		early.Machine.SetPrefix(late.on)
		early.connect(s)
		early.output()
		early.completion(failed(1, OpSend, late.status))
	}
}
