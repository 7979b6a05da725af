package engine

import (
	"bytes"
	"math"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// regions are those that a QP's peer may reach, or not, in each way: none of the memory
// around them may change or be sent.
type regions struct {
	*peer
	buf   []byte // 64 bytes of which a region has the middle 32
	r     *memory.Region
	other *memory.Region // of another Protection Domain
	bound *memory.Region // to another stream
	ours  *memory.Region // to this stream
	read  *memory.Region // no remote write
	write *memory.Region // no remote read
	local *memory.Region // no remote rights
	gone  *memory.Region // revoked
	void  *memory.Region // invalidated, otherwise as offered

	offered *memory.Region // for invalidation
}

const (
	regionBase = 0x10000 // tagged offset of the regions' first byte
	regionLen  = 32
)

func newRegions(p *peer) *regions {
	c := &regions{peer: p, buf: numbered(64)}
	reg := func(pd, stream uint32, a memory.Access) *memory.Region {
		return p.regionOf(c.buf[16:48], memory.Options{Access: a, PD: pd, Stream: stream, Base: regionBase})
	}
	c.r = reg(testPD, 0, remoteAll)
	c.other, c.bound, c.ours = reg(testPD+1, 0, remoteAll), reg(testPD, testStream+1, remoteAll),
		reg(testPD, testStream, remoteAll)
	c.read, c.write = reg(testPD, 0, memory.RemoteRead), reg(testPD, 0, memory.RemoteWrite)
	c.local = reg(testPD, 0, memory.LocalWrite)
	c.offered, c.void = reg(testPD, 0, remoteAll|memory.RemoteInvalidate),
		reg(testPD, 0, remoteAll|memory.RemoteInvalidate)
	c.gone = reg(testPD, 0, remoteAll)
	p.table.Revoke(c.gone)
	p.Machine.cfg.Memory.LocalInvalidate(c.void)
	return c
}

// untouched expects that no byte has changed.
func (c *regions) untouched() {
	c.Helper()
	if !bytes.Equal(c.buf, numbered(64)) {
		c.Fatal("memory has changed")
	}
}

// An access is one by a peer, and what is to come of it.
type access struct {
	name  string
	stag  func(c *regions) uint32
	to    uint64 // offset in the region, from regionBase
	n     int    // bytes
	write rdmap.Code
	read  rdmap.Code // 0: allowed
}

func tag(f func(c *regions) *memory.Region) func(c *regions) uint32 {
	return func(c *regions) uint32 { return f(c).STag() }
}

func theRegion(c *regions) uint32 { return c.r.STag() }

var accesses = []access{
	{"all of it", theRegion, 0, 32, 0, 0},
	{"first byte", theRegion, 0, 1, 0, 0},
	{"last byte", theRegion, 31, 1, 0, 0},
	{"one byte before", theRegion, math.MaxUint64, 1, 0x1101, 0x0101},
	{"from one byte before", theRegion, math.MaxUint64, 32, 0x1101, 0x0101},
	{"one byte after", theRegion, 32, 1, 0x1101, 0x0101},
	{"one byte too long", theRegion, 0, 33, 0x1101, 0x0101},
	{"from the last byte, one too long", theRegion, 31, 2, 0x1101, 0x0101},
	{"far after", theRegion, 1 << 40, 1, 0x1101, 0x0101},
	{"up to the last tagged offset", theRegion, math.MaxUint64 - regionBase - 8, 8, 0x1101, 0x0101},
	{"sum of 2^64", theRegion, math.MaxUint64 - regionBase - 7, 8, 0x1103, 0x0104},
	{"sum beyond 2^64", theRegion, math.MaxUint64 - regionBase - 7, 9, 0x1103, 0x0104},
	{"unknown STag", func(c *regions) uint32 { return c.r.STag() ^ 1<<31 }, 0, 1, 0x1100, 0x0100},
	{"STag 0", func(*regions) uint32 { return 0 }, 0, 1, 0x1100, 0x0100},
	{"STag 1", func(*regions) uint32 { return 1 }, 0, 1, 0x1100, 0x0100},
	{"revoked", tag(func(c *regions) *memory.Region { return c.gone }), 0, 1, 0x1100, 0x0100},
	{"invalidated", tag(func(c *regions) *memory.Region { return c.void }), 0, 1, 0x1100, 0x0100},
	{"another Protection Domain", tag(func(c *regions) *memory.Region { return c.other }), 0, 1, 0x1102, 0x0103},
	{"another stream", tag(func(c *regions) *memory.Region { return c.bound }), 0, 1, 0x1102, 0x0103},
	{"this stream alone", tag(func(c *regions) *memory.Region { return c.ours }), 0, 32, 0, 0},
	{"no remote write", tag(func(c *regions) *memory.Region { return c.read }), 0, 1, 0x1102, 0},
	{"no remote read", tag(func(c *regions) *memory.Region { return c.write }), 0, 1, 0, 0x0102},
	{"no remote rights", tag(func(c *regions) *memory.Region { return c.local }), 0, 1, 0x1102, 0x0102},
}

// Proves D39, D40, D41, D44, D45, P53: what a Write may reach and with which code
// the rest is refused; the Terminate has the segment's header and length.
// Proves Z05, Z06, Z08, Z10, Z12, Z15, Z16, Z18, Z19, Z20: not a byte of memory changes.
func TestWriteAccess(t *testing.T) {
	for _, a := range accesses {
		t.Run(a.name, func(t *testing.T) {
			c := newRegions(responder(t))
			f := write(a.stag(c), regionBase+a.to, bytes.Repeat([]byte{0xff}, a.n))
			c.send(f)
			if a.write != 0 {
				c.wantTerminate(terminateFor(a.write, f))
				c.wantCause(a.write, false)
				c.untouched()
				return
			}
			c.wantNothing()
			c.wantState(RTS)
			want := numbered(64)
			copy(want[16+a.to:], f.Payload)
			if !bytes.Equal(c.buf, want) {
				t.Error("placed elsewhere")
			}
		})
	}
}

// Proves D24, D18, D19: segments are placed by their own offset, also one over the other.
// Proves D41, Z10: of a segment that leaves the region nothing is placed, and what
// was placed before stays.
func TestWriteSegments(t *testing.T) {
	c := newRegions(responder(t))
	c.send(write(c.r.STag(), regionBase+4, []byte("efgh")).more(),
		write(c.r.STag(), regionBase, []byte("abcdE")).more())
	bad := write(c.r.STag(), regionBase+30, []byte("xyz"))
	c.send(bad)
	c.wantTerminate(terminateFor(0x1101, bad))
	want := numbered(64)
	copy(want[16:], "abcdEfgh")
	if !bytes.Equal(c.buf, want) {
		t.Errorf("%q", c.buf[16:48])
	}
}

// Proves D23, P19, P26, Z17: of a message without bytes neither STag nor TO is looked at.
func TestZeroLengthAccess(t *testing.T) {
	for _, a := range accesses {
		c := newRegions(responder(t))
		stag, to := a.stag(c), regionBase+a.to
		c.send(write(stag, to, nil), request(1, rdmap.ReadRequest{SinkSTag: 3, SinkTO: 4, SrcSTag: stag, SrcTO: to}))
		c.want(response(3, 4, nil))
		c.wantNothing()
		c.wantState(RTS)
		c.untouched()
		c.noCompletion()
	}
}

// Proves P24, P25, P54, D41, D45: a Read Request is judged as a whole before an
// byte is read; the Terminate has all its headers.
// Proves Z05, Z06, Z08, Z11, Z12, Z16-Z19: not a byte of other memory is sent.
func TestReadAccess(t *testing.T) {
	for _, a := range accesses {
		t.Run(a.name, func(t *testing.T) {
			c := newRegions(responder(t))
			f := request(1, rdmap.ReadRequest{SinkSTag: 9, SinkTO: 8, Size: uint32(a.n), SrcSTag: a.stag(c),
				SrcTO: regionBase + a.to})
			c.send(f)
			if a.read != 0 {
				c.wantTerminate(terminateFor(a.read, f))
				c.wantCause(a.read, false)
				return
			}
			c.want(response(9, 8, numbered(64)[16+a.to:][:a.n]))
			c.wantNothing()
			c.wantState(RTS)
		})
	}
}

// A Read of as many bytes as there can be is out of bounds, and its sum does not
// overflow.
func TestReadAccessLongest(t *testing.T) {
	c := newRegions(responder(t))
	f := request(1, rdmap.ReadRequest{Size: math.MaxUint32, SrcSTag: c.r.STag(), SrcTO: regionBase})
	c.send(f)
	c.wantTerminate(terminateFor(0x0101, f))
}

// Proves Z13, D45: no segment of a Write changes memory that was revoked, or
// invalidated, when it had begun already.
func TestRevokeDuringWrite(t *testing.T) {
	for name, revoke := range map[string]func(*regions){
		"revoked":     func(c *regions) { c.table.Revoke(c.r) },
		"invalidated": func(c *regions) { c.Machine.cfg.Memory.LocalInvalidate(c.r) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newRegions(responder(t))
			c.send(write(c.r.STag(), regionBase, numbered(64)[16:20]).more())
			revoke(c)
			bad := write(c.r.STag(), regionBase+4, []byte("xyz"))
			c.send(bad)
			c.wantTerminate(terminateFor(0x1100, bad))
			c.untouched()
		})
	}
}

// Proves Z14, P17: a Read of memory that is revoked in the middle of the response
// ends there; the Terminate tells how far it came.
func TestRevokeDuringRead(t *testing.T) {
	for name, marked := range map[string]bool{"plain": false, "markers": true} {
		t.Run(name, func(t *testing.T) {
			p := responder(t, func(s *setup) { s.MarkersSend = marked })
			b := numbered(1 << 20) // more than the LLP is offered at once
			r := p.region(b, memory.RemoteRead)
			read := rdmap.ReadRequest{SinkSTag: 9, SinkTO: 1000, Size: 1 << 20, SrcSTag: r.STag()}
			p.window = 2 * testMULPDU
			p.send(request(1, read))
			p.sent = append(p.sent, p.output()...)
			p.table.Revoke(r)
			p.window = -1
			done := 0
			for f, ok := p.next(); ok; f, ok = p.next() {
				if rdmap.OpcodeOf(&f.H) == rdmap.OpTerminate {
					checkMidway(p, f, read, done)
					p.wantEnd(Terminate, Finish)
					return
				}
				if f.H.TO != 1000+uint64(done) || !bytes.Equal(f.Payload, b[done:done+len(f.Payload)]) {
					t.Fatalf("%v", f.H)
				}
				done += len(f.Payload)
			}
			t.Fatal("no Terminate")
		})
	}
}

func checkMidway(p *peer, f fpdu, read rdmap.ReadRequest, done int) {
	p.Helper()
	term, err := rdmap.ParseTerminate(f.Payload)
	if err != nil || term.Code != 0x0100 {
		p.Fatalf("%v, %v", term, err)
	}
	read.Advance(uint32(done))
	if got, ok := term.ReadRequest(); !ok || got != read || done == 0 {
		p.Errorf("%v, want %v after %d bytes", got, read, done)
	}
	if h, ok := term.Header(); !ok || h != request(1, read).H {
		p.Errorf("DDP header %v", h)
	}
}

// Proves D42, D07, P55: after the first error all that arrives is dropped: not placed,
// not delivered, not reported.
func TestSilenceAfterError(t *testing.T) {
	c := newRegions(responder(t))
	sink := make([]byte, 8)
	c.receive(1, all(c.region(sink, memory.LocalWrite), 8))
	bad := write(99, 0, []byte("abc"))
	c.send(bad, write(c.r.STag(), regionBase, []byte("abc")), send(1, []byte("abc")), write(98, 0, []byte("abc")),
		request(1, rdmap.ReadRequest{}), terminate(0x0100))
	c.wantTerminate(terminateFor(0x1100, bad))
	c.completion(flushed(1, OpReceive))
	c.wantNotices(NoticeTerminateSent)
	c.wantCause(0x1100, false)
	c.untouched()
	if !bytes.Equal(sink, make([]byte, 8)) {
		t.Error("the receive has changed")
	}
}

// Proves D42: nor in bytes of the same delivery, and nor do they turn up on a
// later connection.
func TestSilenceInOneDelivery(t *testing.T) {
	c := newRegions(responder(t))
	var b []byte
	for _, f := range []fpdu{write(99, 0, []byte("abc")), write(c.r.STag(), regionBase, []byte("abc")), send(1, nil)} {
		b = c.w.Append(b, f.ulpdu())
	}
	c.input(b)
	c.untouched()
	if len(c.unread) > 0 {
		t.Errorf("%d bytes are kept", len(c.unread))
	}
}

// Proves D15, D19, D11: all segments of a tagged message of ours have its STag, and
// the TO that it began with plus their offset, which may wrap for all we know.
func TestTaggedOnTheWire(t *testing.T) {
	p := initiator(t)
	b := numbered(3000)
	const to = math.MaxUint64 - 1999
	w := work(1, OpWrite, all(p.region(b, 0), 3000))
	w.RemoteSTag, w.RemoteTO = 0x12345678, to
	p.post(w)
	second := uint64(to)
	p.want(write(0x12345678, to, b[:1430]).more(), write(0x12345678, second+1430, b[1430:2860]).more(),
		write(0x12345678, second+2860, b[2860:]))
	p.wantNothing()
}

// Proves D12, P04, P08: reserved bits and unused fields are not looked at.
func TestIgnoredFields(t *testing.T) {
	p := responder(t)
	p.receive(1)
	odd := func(h *ddp.Header) { h.Rsvd, h.RsvdULP = 15, h.RsvdULP|0x30 }
	p.send(write(77, 66, nil).with(odd), send(1, nil).with(odd).with(func(h *ddp.Header) { h.ULP = 0xdeadbeef }))
	p.wantNothing()
	p.completion(success(1, OpReceive, 0))
	p.wantState(RTS)
}
