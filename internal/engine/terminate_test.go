package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// Proves P36, P37, P38, P39, P49, D07, D35: a Terminate of each kind is taken, with a
// receive posted or none, surfaced with what it says, and not answered; all work is
// flushed and our half closed.
func TestTerminateReceived(t *testing.T) {
	bad := write(5, 6, numbered(3))
	segment := bad.segment()
	read := request(1, rdmap.ReadRequest{Size: 9})
	readSegment := read.segment()
	for _, code := range []rdmap.Code{
		0x0000, 0x00ff, 0x0100, 0x0101, 0x0102, 0x0103, 0x0104, 0x0109, 0x01ff, 0x0205, 0x0206,
		0x0207, 0x0208, 0x0209, 0x02ff,
		0x1000, 0x1100, 0x1101, 0x1102, 0x1103, 0x1104, 0x1201, 0x1202, 0x1203, 0x1204, 0x1205, 0x1206, 0x1300,
		0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0xffff,
	} {
		for i, seg := range []*ddp.Segment{nil, &segment, &readSegment} {
			term := rdmap.TerminateFor(code, seg)
			p := initiator(t)
			p.post(work(1, OpSend))
			p.post(work(2, OpRead))
			p.output()
			p.done, p.sent = nil, nil
			want := []Completion{}
			if i == 1 { // with the others there is no receive that it could use
				p.receive(3)
				want = append(want, flushed(3, OpReceive))
			}
			p.send(message(rdmap.OpTerminate, term.Append(nil)), send(1, nil))
			p.wantState(Terminate)
			p.wantNotices(NoticeTerminateReceived)
			f := p.wantCause(code, true)
			if (f.HasOp) != (term.DDPHeader != nil) || f.Err != nil {
				t.Errorf("%v: %+v", code, f)
			}
			if len(p.done) == 0 || p.done[0].Status == StatusSuccess || !slices.Equal(p.done[1:], want) {
				t.Errorf("%v: %+v", code, p.done)
			}
			p.wantEndSilently()
		}
	}
}

// wantEndSilently expects a FIN, no byte in front of it, and the end.
func (p *peer) wantEndSilently() {
	p.Helper()
	if b := p.output(); len(b) > 0 {
		p.Fatalf("%d bytes", len(b))
	}
	p.wantLLP(Finish)
	p.fin()
	p.wantLLP(Drop)
	p.wantState(Error)
}

// Proves P36: a Terminate that cannot be read, or is out of order, surfaces as an
// error all the same, and is not answered with another.
func TestInvalidTerminate(t *testing.T) {
	bad := request(1, rdmap.ReadRequest{Size: 9})
	s := bad.segment()
	term := rdmap.TerminateFor(0x0102, &s)
	whole := term.Append(nil) // control, length, DDP header, Read Request header
	for name, f := range map[string]fpdu{
		"nothing":                message(rdmap.OpTerminate, nil),
		"3 bytes":                message(rdmap.OpTerminate, whole[:3]),
		"no length":              message(rdmap.OpTerminate, whole[:4]),
		"half a length":          message(rdmap.OpTerminate, whole[:5]),
		"no DDP header":          message(rdmap.OpTerminate, whole[:6]),
		"part of the DDP header": message(rdmap.OpTerminate, whole[:23]),
		"part of the request":    message(rdmap.OpTerminate, whole[:51]),
		"no L bit":               message(rdmap.OpTerminate, whole[:51]).more(),
		"MSN 2":                  message(rdmap.OpTerminate, whole).with(msn(2)),
		"MO 4":                   message(rdmap.OpTerminate, whole).at(4),
	} {
		t.Run(name, func(t *testing.T) {
			p := initiator(t)
			p.receive(1)
			p.send(f)
			p.wantState(Terminate)
			p.wantNotices(NoticeTerminateReceived)
			var failure *Failure
			if !errors.As(p.Machine.Cause(), &failure) || !failure.Peer || failure.Err == nil || failure.Reason == "" {
				t.Fatalf("%+v", p.Machine.Cause())
			}
			if len(f.Payload) >= 4 && failure.Code != 0x0102 {
				t.Errorf("code %v", failure.Code)
			}
			p.wantEndSilently()
			p.completion(flushed(1, OpReceive))
		})
	}
}

// Linux's siw swaps Layer and EType and has HdrCt at the other end.
func TestTerminateOfSIW(t *testing.T) {
	p := initiator(t)
	header := request(1, rdmap.ReadRequest{}).with(msn(4711)).H // siw gives back another MSN, too
	body := append([]byte{0x10, 0x01, 0x07, 0x00, 0, 0}, header.Append(nil)...)
	body = append(body, make([]byte, 28)...)
	p.post(work(1, OpRead))
	p.output()
	p.send(message(rdmap.OpTerminate, body))
	f := p.wantCause(0x0101, true)
	if f.Layout != rdmap.LayoutSIW || !strings.Contains(f.Error(), "siw") {
		t.Errorf("%v", f)
	}
	p.completion(failed(1, OpRead, StatusRemoteAccess))
}

// A Read that the peer names in its Terminate tells its poster so; what was posted
// with it is flushed, in order.
//
// Proves P38, P42.
func TestTerminateBlamesRead(t *testing.T) {
	for code, status := range map[rdmap.Code]Status{
		0x0100: StatusRemoteAccess, 0x0104: StatusRemoteAccess,
		0x0207: StatusRemoteOperation, 0x1203: StatusRemoteOperation,
	} {
		p := initiator(t)
		p.post(work(1, OpRead))
		p.post(work(2, OpSend))
		p.post(work(3, OpRead))
		p.post(work(4, OpRead))
		p.output()
		bad := request(2, rdmap.ReadRequest{})
		p.send(terminateFor(code, bad))
		p.completion(flushed(1, OpRead), flushed(2, OpSend), failed(3, OpRead, status), flushed(4, OpRead))
	}
}

// A Terminate about something else blames no Read; nor can one that names a Read
// when none is outstanding.
func TestTerminateBlamesNobody(t *testing.T) {
	p := initiator(t)
	p.post(work(1, OpRead))
	p.output()
	p.send(terminateFor(0x1202, send(1, nil)))
	p.completion(flushed(1, OpRead))

	p = initiator(t)
	p.post(work(1, OpSend))
	p.output()
	p.send(terminateFor(0x0100, request(1, rdmap.ReadRequest{})))
	p.completion(success(1, OpSend, 0))
	p.wantEndSilently()
}

// Proves P39, P48, P53: an error found while a large message of ours is under way: the
// Terminate goes out after the segment that was begun, with the headers of the
// segment in error, and nothing of the message follows it.
func TestTerminateInTheMiddle(t *testing.T) {
	for _, op := range []Op{OpSend, OpWrite} {
		p := initiator(t)
		b := numbered(1 << 20)
		r := p.region(b, memory.RemoteRead)
		p.window = 5000
		p.post(work(1, op, all(r, len(b))))
		p.post(work(2, OpSend))
		p.sent = append(p.sent, p.output()...)
		bad := write(99, 3, []byte("abc"))
		p.send(bad)
		p.window = -1
		n := p.segmentsBefore(terminateFor(0x1100, bad))
		if n == 0 || n > 300 {
			t.Errorf("%d segments", n)
		}
		p.wantEnd(Terminate, Finish)
		p.completion(flushed(1, op), flushed(2, OpSend))
	}
}

// segmentsBefore reads up to a segment, and returns how many came before it.
func (p *peer) segmentsBefore(want fpdu) (n int) {
	p.Helper()
	for {
		f, ok := p.next()
		if !ok {
			p.Fatal("not sent")
		}
		if f.H.RsvdULP == want.H.RsvdULP {
			if string(f.Payload) != string(want.Payload) {
				p.Fatalf("% x, want % x", f.Payload, want.Payload)
			}
			return n
		}
		n++
	}
}

// Proves P39: a Terminate received while a large message of ours is under way
// stops it; what the LLP has begun is finished, as FPDUs.
func TestTerminateReceivedInTheMiddle(t *testing.T) {
	p := initiator(t)
	b := numbered(1 << 20)
	p.window = 5000
	p.post(work(1, OpSend, all(p.region(b, 0), len(b))))
	p.sent = append(p.sent, p.output()...)
	p.send(terminate(0x0207))
	p.noCompletion() // its bytes are in flight
	p.wantLLP()
	p.window = -1
	n := 0
	for _, ok := p.next(); ok; _, ok = p.next() {
		n++
	}
	if len(p.sent) > 0 || n == 0 || n > 300 {
		t.Errorf("%d segments and %d bytes", n, len(p.sent))
	}
	p.completion(flushed(1, OpSend))
	p.wantEnd(Terminate, Finish)
}

// Proves P50: errors in making a message: a Terminate with type and code only goes
// out in its place, also in the middle of it, and the request completes in error.
func TestErrorInOurOwnWork(t *testing.T) {
	for _, tt := range []struct {
		name string
		work func(c *regions) SendWork
		want Status
	}{
		{"Send from another Protection Domain", func(c *regions) SendWork { return work(2, OpSend, all(c.other, 4)) },
			StatusLocalProtection},
		{"Send from revoked memory", func(c *regions) SendWork { return work(2, OpSend, all(c.gone, 4)) },
			StatusLocalProtection},
		{"Send from nowhere", func(*regions) SendWork { return work(2, OpSend, SGE{Length: 4}) },
			StatusLocalProtection},
		{"Send out of bounds", func(c *regions) SendWork {
			return work(2, OpSend,
				SGE{Region: c.r, Offset: 30, Length: 3})
		}, StatusLocalProtection},
		{"Write from invalidated memory", func(c *regions) SendWork { return work(2, OpWrite, all(c.void, 4)) },
			StatusLocalProtection},
		{"Read into memory without local write", func(c *regions) SendWork { return work(2, OpRead, all(c.read, 4)) },
			StatusLocalAccess},
		{"Read out of bounds", func(c *regions) SendWork {
			return work(2, OpRead,
				SGE{Region: c.r, Offset: -1, Length: 4})
		}, StatusLocalProtection},
		{"invalidation in another Protection Domain",
			func(c *regions) SendWork { return SendWork{ID: 2, Op: OpLocalInvalidate, Target: c.other} },
			StatusInvalidateFailed},
		{"invalidation of nothing", func(*regions) SendWork { return SendWork{ID: 2, Op: OpLocalInvalidate} },
			StatusInvalidateFailed},
		{"invalidation of revoked memory", func(c *regions) SendWork {
			return SendWork{ID: 2, Op: OpLocalInvalidate,
				Target: c.gone}
		}, StatusInvalidateFailed},
	} {
		for _, unsignaled := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				c := newRegions(initiator(t))
				c.post(work(1, OpSend))
				w := tt.work(c)
				w.Unsignaled = unsignaled
				c.post(w)
				c.post(work(3, OpSend))
				c.want(send(1, nil))
				c.wantTerminate(terminate(0x0000))
				c.completion(success(1, OpSend, 0), failed(2, w.Op, tt.want), flushed(3, OpSend))
				c.untouched()
			})
		}
	}
}

// Proves P50, S05: memory that goes away in the middle of a message of ours: the
// Terminate at the next segment boundary.
func TestMemoryLostInTheMiddle(t *testing.T) {
	p := initiator(t)
	r := p.region(numbered(1<<20), 0)
	p.post(work(1, OpSend, all(r, 1<<20)))
	p.post(work(2, OpSend))
	p.window = 1000
	p.sent = append(p.sent, p.output()...)
	p.table.Revoke(r)
	p.window = -1
	if n := p.segmentsBefore(terminate(0x0000)); n == 0 || n > 300 {
		t.Errorf("%d segments", n)
	}
	p.wantEnd(Terminate, Finish)
	p.completion(failed(1, OpSend, StatusLocalProtection), flushed(2, OpSend))
	if err := p.Machine.Cause(); !strings.Contains(err.Error(), "keep it registered until that is complete") {
		t.Error(err)
	}
}

// An error in our own work while the peer's Reads wait: the Terminate is the next
// thing sent.
func TestErrorWithReadsWaiting(t *testing.T) {
	p := initiator(t)
	p.post(work(1, OpSend, SGE{Length: 1}))
	p.send(request(1, rdmap.ReadRequest{}))
	p.wantTerminate(terminate(0x0000))
}

// Proves P49: the texts of an error found here and of one that the peer reports.
func TestFailureText(t *testing.T) {
	inner := errors.New("inner")
	for _, tt := range []struct {
		f    Failure
		want string
	}{
		{Failure{Code: 0x1101, Op: rdmap.OpWrite, HasOp: true, Offset: 77, Reason: "why", Err: inner},
			"DDP/Tagged Buffer/base or bounds violation (0x1101), found here, in an RDMA Write at stream offset 77: why"},
		{Failure{Code: 0x0206, Peer: true, Err: inner},
			"RDMAP/Remote Operation/unexpected opcode (0x0206), reported by the peer"},
	} {
		if got := tt.f.Error(); got != tt.want || !errors.Is(&tt.f, inner) {
			t.Errorf("%s", got)
		}
	}
}
