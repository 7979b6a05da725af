package engine

import (
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
)

// How many requests are not complete is told, one that a message is filling included.
func TestOutstanding(t *testing.T) {
	p := initiator(t)
	r := p.region(make([]byte, 8), memory.LocalWrite)
	want := func(sends, receives int) {
		t.Helper()
		if s, r := p.Machine.Outstanding(); s != sends || r != receives {
			t.Errorf("%d and %d, want %d and %d", s, r, sends, receives)
		}
	}
	p.post(work(1, OpRead, all(r, 8)))
	p.post(work(2, OpSend))
	p.receive(3, all(r, 8))
	p.receive(4)
	want(2, 2)
	p.output()
	p.send(send(1, []byte("ab")).more())
	want(2, 2)
	p.send(send(1, nil).at(2), response(r.STag(), 0, numbered(8)))
	want(0, 1)
}

// A request counts until its completion is handed over: who posts the next one in between would get more completions
// than there is room for.
func TestOutstandingUntilDrained(t *testing.T) {
	p := newPair(t)
	p.run()
	want := func(h *host, sends, receives int) {
		t.Helper()
		if s, r := h.Machine.Outstanding(); s != sends || r != receives {
			t.Errorf("%d and %d, want %d and %d", s, r, sends, receives)
		}
	}
	p.b.receive(2)
	if err := p.a.Machine.PostSend(&SendWork{ID: 1}); err != nil {
		t.Fatal(err)
	}
	data := slices.Concat(p.a.Machine.Output(p.clock, p.a.g)...)
	p.a.Machine.Sent(p.clock, p.a.g, len(data))
	want(p.a, 1, 0)
	p.a.Machine.Completions(nil)
	want(p.a, 0, 0)
	p.b.Machine.Input(p.clock, data)
	want(p.b, 0, 1)
	p.b.Machine.Completions(nil)
	want(p.b, 0, 0)
}

// Of requests that are taken back a Responder that may not send as yet has held none, and who may send holds none at
// all.
func TestTakeBackHeld(t *testing.T) {
	for name, c := range map[string]struct {
		p    *peer
		held uint64
	}{"Responder": {responder(t), 1}, "Initiator": {initiator(t), 0}} {
		c.p.post(work(1, OpSend))
		from := c.p.Machine.Posted()
		c.p.post(work(2, OpSend))
		c.p.post(work(3, OpSend))
		c.p.Machine.TakeBackSends(from)
		if sends, _ := c.p.Machine.Outstanding(); sends != 1 || c.p.Machine.Stats().Held != c.held {
			t.Errorf("%s: %d requests, %d held; want 1, %d", name, sends, c.p.Machine.Stats().Held, c.held)
		}
	}
}
