package engine

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// neighbors are two QPs of one RNIC with their peers.
func neighbors(t *testing.T, change ...func(*setup)) (one, two *peer) {
	one = responder(t, change...)
	change = append(change, func(s *setup) {
		s.Memory.Table, s.table = one.table, one.table
		s.Memory.PD, s.Memory.Stream = testPD+1, testStream+1
	})
	return one, responder(t, change...)
}

// Proves Z02, Z05, Z06, Z07, Z08: streams that share nothing have a Protection Domain each; the
// one's peer reaches nothing of the other, and trying ends its own stream only.
func TestNeighbors(t *testing.T) {
	for name, f := range map[string]func(stag uint32) fpdu{
		"Write":                func(stag uint32) fpdu { return write(stag, 0, []byte("abc")) },
		"Read":                 func(stag uint32) fpdu { return request(1, readOf(stag, 8)) },
		"Send with Invalidate": func(stag uint32) fpdu { return sendAs(rdmap.OpSendInvalidate, 1, stag, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			one, two := neighbors(t)
			buf := numbered(8)
			r := two.regionOf(buf, memory.Options{Access: remoteAll, PD: testPD + 1})
			one.receive(1)
			one.send(f(r.STag()))
			for {
				g, ok := one.next()
				if !ok {
					t.Fatal("no Terminate")
				}
				if rdmap.OpcodeOf(&g.H) == rdmap.OpTerminate {
					break
				}
			}
			one.wantEnd(Terminate, Finish)
			if !bytes.Equal(buf, numbered(8)) || !r.Valid() {
				t.Error("has changed")
			}
			two.wantState(RTS)
			two.send(request(1, readOf(r.STag(), 8)))
			two.want(response(5, 0, buf))

			one, two = neighbors(t)
			// of one's domain, for another stream
			r = one.regionOf(buf, memory.Options{Access: remoteAll, PD: testPD, Stream: testStream + 1})
			one.receive(1)
			one.send(f(r.STag()))
			if one.wantState(Terminate); !bytes.Equal(buf, numbered(8)) || !r.Valid() {
				t.Error("has changed")
			}
			two.wantState(RTS)
		})
	}
}

// Proves Z27, Z29: a peer that fills its stream's queue of Reads takes nothing from another's.
func TestFloodOfReads(t *testing.T) {
	one, two := neighbors(t, func(s *setup) { s.IRD = 2 })
	one.receive(1)
	one.send(send(1, nil))
	one.window = 0
	one.send(request(1, rdmap.ReadRequest{}), request(2, rdmap.ReadRequest{}))
	two.send(request(1, rdmap.ReadRequest{SinkSTag: 6}), request(2, rdmap.ReadRequest{SinkSTag: 7}))
	two.want(response(6, 0, nil), response(7, 0, nil))
	one.send(request(3, rdmap.ReadRequest{}))
	one.wantState(Terminate)
	two.wantState(RTS)
}

// Proves Z31, Z30: however much a peer sends of what costs it little, what is kept
// of it is bounded; it is counted.
func TestFloods(t *testing.T) {
	const many = 10000
	for name, f := range map[string]func(i uint32) fpdu{
		"empty Writes": func(uint32) fpdu { return write(1, 2, nil) },
		"empty Reads":  func(i uint32) fpdu { return request(i+1, rdmap.ReadRequest{}) },
		"empty segments in a Send": func(uint32) fpdu {
			return send(1, nil).more()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := responder(t)
			p.receive(1)
			for i := range uint32(many) {
				p.send(f(i))
				p.output()
			}
			p.wantState(RTS)
			q := p.Machine
			if len(p.notices) > 4 || len(p.done) > 0 || cap(q.notices.items) > 16 ||
				cap(q.done.items) > 64 || len(p.unread) > 0 {
				t.Errorf("%d notices, %d completions", cap(q.notices.items), cap(q.done.items))
			}
			s := p.Machine.Stats()
			if s.RecvFPDUs != many || s.Odd.Empty+s.Received[rdmap.OpReadRequest].Messages+uint64(q.excused) != many {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Proves Z09, P52: a peer gets one guess at an STag per connection.
func TestGuessing(t *testing.T) {
	s := newSetup(mpa.RoleResponder)
	buf := numbered(64)
	if _, err := s.table.Register(buf, memory.Options{Access: remoteAll, PD: testPD}); err != nil {
		t.Fatal(err)
	}
	for guess := range uint32(300) {
		p := &peer{clock: epoch}
		p.host = newHost(t, &p.clock, s)
		p.start(s)
		bad := write(guess<<8, 0, []byte("abc"))
		p.send(bad, write(guess<<8+1, 0, []byte("abc")))
		p.wantTerminate(terminateFor(0x1100, bad))
	}
	if !bytes.Equal(buf, numbered(64)) {
		t.Error("guessed")
	}
}

// RFC 5040, section 6.1: from the switch to RDMA mode on nothing but RDMA messages.
//
// Proves P44, D04: every byte that a QP sends belongs to a whole FPDU, errors included.
func TestOnlyFPDUs(t *testing.T) {
	p := responder(t, func(s *setup) { s.MarkersSend = true })
	r := p.region(numbered(5000), remoteAll)
	p.post(work(1, OpSend, all(r, 5000)))
	p.send(request(1, readOf(r.STag(), 3000)), write(99, 0, []byte("a")))
	n := 0
	for _, ok := p.next(); ok; _, ok = p.next() {
		n++
	}
	if len(p.sent) > 0 || n == 0 {
		t.Errorf("%d segments, %d bytes of no FPDU", n, len(p.sent))
	}
}
