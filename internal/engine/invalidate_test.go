package engine

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// Proves P03, P02, P33, P34, D14: the four Sends arrive as they were sent: solicited or
// not, with the STag to be invalidated or none; the STag is revoked before the
// completion is there.
func TestFourSends(t *testing.T) {
	for _, tt := range []struct {
		op                    rdmap.Opcode
		solicited, invalidate bool
	}{
		{rdmap.OpSend, false, false},
		{rdmap.OpSendSE, true, false},
		{rdmap.OpSendInvalidate, false, true},
		{rdmap.OpSendSEInvalidate, true, true},
	} {
		for _, n := range []int{0, 1, 3000} {
			p := newPair(t)
			rd := p.b.region(make([]byte, n), memory.LocalWrite)
			target := p.b.region(make([]byte, 8), remoteAll|memory.RemoteInvalidate)
			p.b.receive(1, all(rd, n))
			w := work(2, OpSend, all(p.a.region(numbered(n), 0), n))
			w.Solicited, w.HasInvalidate, w.Invalidate = tt.solicited, tt.invalidate, target.STag()
			p.a.post(w)
			p.run()
			p.a.completion(success(2, OpSend, n))
			want := success(1, OpReceive, n)
			want.Solicited = tt.solicited
			if want.HasInvalid = tt.invalidate; tt.invalidate {
				want.Invalidated = target.STag()
			}
			p.b.completion(want)
			if target.Valid() == tt.invalidate {
				t.Errorf("%v: valid: %t", tt.op, target.Valid())
			}
			if p.b.Machine.Stats().Received[tt.op].Messages != 1 {
				t.Errorf("%v: arrived as %v", tt.op, p.b.Machine.Stats().Received)
			}
		}
	}
}

// Proves P08, D14: on the wire, the Invalidate STag is in every segment of the Sends that
// have one, and zero in all others.
func TestInvalidateOnTheWire(t *testing.T) {
	p := initiator(t)
	w := work(1, OpSend, all(p.region(numbered(1500), 0), 1500))
	w.Invalidate = 0xabcdef01 // not asked for
	p.post(w)
	w.HasInvalidate = true
	p.post(w)
	b := numbered(1500)
	p.want(send(1, b[:1426]).more(), send(1, b[1426:]).at(1426),
		sendAs(rdmap.OpSendInvalidate, 2, 0xabcdef01, b[:1426]).more(),
		sendAs(rdmap.OpSendInvalidate, 2, 0xabcdef01, b[1426:]).at(1426))
}

// The STag goes with the delivery of the whole message, not with its first segment.
//
// Proves P34, Z13: and once the completion is there no Write reaches the memory any more.
func TestInvalidateOnDelivery(t *testing.T) {
	p := responder(t)
	buf := make([]byte, 8)
	target := p.region(buf, remoteAll|memory.RemoteInvalidate)
	p.receive(1, all(p.region(make([]byte, 8), memory.LocalWrite), 8))
	first := sendAs(rdmap.OpSendInvalidate, 1, target.STag(), []byte("ab"))
	p.send(first.more(), write(target.STag(), 0, []byte("x")))
	if !target.Valid() {
		t.Fatal("invalidated with the first segment")
	}
	p.send(first.at(2))
	p.completion(Completion{ID: 1, Op: OpReceive, Length: 4, HasInvalid: true, Invalidated: target.STag()})
	bad := write(target.STag(), 1, []byte("y"))
	p.send(bad)
	p.wantTerminate(terminateFor(0x1100, bad))
	if string(buf[:2]) != "x\x00" {
		t.Errorf("%q", buf)
	}
}

// Proves P35, P51, Z05, Z06, Z08: what a peer may not invalidate stays as it is, the receive
// completes in error and the stream ends with the cause as code.
func TestInvalidateRefused(t *testing.T) {
	for _, tt := range []struct {
		name    string
		target  func(c *regions) *memory.Region
		streams int // of the Protection Domain, beside this one
		code    rdmap.Code
	}{
		{"another Protection Domain", func(c *regions) *memory.Region { return c.other }, 0, 0x0109},
		{"another stream", func(c *regions) *memory.Region { return c.bound }, 0, 0x0109},
		{"not offered for it, and no other stream there yet",
			func(c *regions) *memory.Region { return c.r }, 0, 0x0109},
		{"shared with another stream", func(c *regions) *memory.Region { return c.offered }, 1, 0x0109},
		{"never offered", func(c *regions) *memory.Region { return c.local }, 0, 0x0102},
		{"revoked", func(c *regions) *memory.Region { return c.gone }, 0, 0x0100},
		{"already invalid", func(c *regions) *memory.Region { return c.void }, 0, 0x0100},
		{"offered for it, to the domain's only stream", func(c *regions) *memory.Region { return c.offered }, 0, 0},
		{"this stream alone, among others", func(c *regions) *memory.Region { return c.ours }, 3, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newRegions(responder(t))
			for range tt.streams {
				c.table.AddStream(testPD)
			}
			target := tt.target(c)
			before := target.Valid()
			c.receive(1)
			c.receive(2)
			f := sendAs(rdmap.OpSendSEInvalidate, 1, target.STag(), nil)
			c.send(f)
			if tt.code == 0 {
				c.wantNothing()
				c.completion(Completion{ID: 1, Op: OpReceive, Solicited: true, HasInvalid: true,
					Invalidated: target.STag()})
				if target.Valid() {
					t.Error("still valid")
				}
				return
			}
			c.wantTerminate(terminateFor(tt.code, f))
			c.completion(Completion{ID: 1, Op: OpReceive, Status: StatusRemoteInvalidate,
				Invalidated: target.STag()}, flushed(2, OpReceive))
			if target.Valid() != before {
				t.Error("has changed")
			}
		})
	}
}

// Proves P35: an STag that never was, 0 and 1 included.
func TestInvalidateUnknown(t *testing.T) {
	for _, stag := range []uint32{0, 1, 0xffffffff} {
		p := responder(t)
		p.receive(1)
		f := sendAs(rdmap.OpSendInvalidate, 1, stag, nil)
		p.send(f)
		p.wantTerminate(terminateFor(0x0100, f))
	}
}

// A local invalidation takes effect before any later request begins, and the peer
// cannot use the STag any more; a later use of our own is in error.
//
// Proves Z13, D45.
func TestLocalInvalidate(t *testing.T) {
	p := responder(t)
	buf := make([]byte, 8)
	r := p.region(buf, remoteAll)
	p.send(write(r.STag(), 0, []byte("ab")))
	p.post(SendWork{ID: 1, Op: OpLocalInvalidate, Target: r})
	p.post(SendWork{ID: 2, Op: OpLocalInvalidate, Target: r}) // once more does no harm
	p.wantNothing()
	p.completion(success(1, OpLocalInvalidate, 0), success(2, OpLocalInvalidate, 0))
	bad := write(r.STag(), 2, []byte("cd"))
	p.send(bad)
	p.wantTerminate(terminateFor(0x1100, bad))
	if string(buf[:4]) != "ab\x00\x00" {
		t.Errorf("%q", buf)
	}

	p = initiator(t)
	r = p.region(buf, 0)
	p.post(SendWork{ID: 1, Op: OpLocalInvalidate, Target: r})
	p.post(work(2, OpSend, all(r, 1)))
	p.wantTerminate(terminate(0x0000))
	p.completion(success(1, OpLocalInvalidate, 0), failed(2, OpSend, StatusLocalProtection))
}

// An idle QP with nothing to send but an invalidation closes when that is done.
func TestCloseAfterLocalInvalidate(t *testing.T) {
	p := initiator(t)
	p.post(SendWork{ID: 1, Op: OpLocalInvalidate, Target: p.region(nil, 0)})
	p.closeOrderly()
	p.wantNothing()
	p.completion(success(1, OpLocalInvalidate, 0))
	p.wantLLP(Finish)
}
