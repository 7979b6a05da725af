package engine

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// A full queue refuses, and takes again when something has completed.
func TestQueueFull(t *testing.T) {
	p := initiator(t, func(s *setup) { s.SendDepth, s.RecvDepth = 2, 2 })
	for i := range uint32(5) {
		p.post(work(1, OpSend))
		p.post(work(2, OpSend))
		if err := p.Machine.PostSend(&SendWork{}); !errors.Is(err, ErrQueueFull) {
			t.Fatal(err)
		}
		p.receive(3)
		p.receive(4)
		if err := p.Machine.PostReceive(&RecvWork{}); !errors.Is(err, ErrQueueFull) {
			t.Fatal(err)
		}
		p.want(send(2*i+1, nil), send(2*i+2, nil))
		p.send(send(2*i+1, nil), send(2*i+2, nil))
		p.completion(success(1, OpSend, 0), success(2, OpSend, 0), success(3, OpReceive, 0), success(4, OpReceive, 0))
	}
}

// judged returns what the only judge of requests says of one.
func judged(w SendWork) error {
	s := Shape{Op: w.Op, SGEs: w.SGL.Len(), Length: w.SGL.length(), Inline: len(w.Inline)}
	return s.Check(2048)
}

// Proves P12, D21: a message of 2^32-1 bytes can be posted, a longer one cannot.
func TestLongestMessage(t *testing.T) {
	const half = math.MaxInt32
	for _, op := range []Op{OpSend, OpWrite} {
		for _, tt := range []struct {
			sgl []SGE
			ok  bool
		}{
			{[]SGE{{Length: half}, {Length: half}, {Length: 1}}, true},
			{[]SGE{{Length: half}, {Length: half}, {Length: 2}}, false},
			{[]SGE{{Length: half}, {Length: half}, {Length: half}, {Length: half}}, false},
			{[]SGE{{Length: -1}}, false},
		} {
			if err := judged(work(1, op, tt.sgl...)); err != nil && err != ErrTooLong || (err == nil) != tt.ok {
				t.Errorf("%v of %v: %v", op, tt.sgl, err)
			}
		}
	}
}

// Proves P12: a Read, too, where an int can say so.
func TestLongestRead(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("an int has 32 bits")
	}
	longest := uint64(math.MaxUint32)
	for n, want := range map[uint64]error{longest: nil, longest + 1: ErrTooLong} {
		if err := judged(work(1, OpRead, SGE{Length: int(n)})); err != want {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// Inline data are copied when they are posted, into the slot's own memory, which is
// not used again before all of them are copied to the arena.
func TestInline(t *testing.T) {
	p := initiator(t, func(s *setup) { s.SendDepth = 3 })
	scratch := make([]byte, 2048)
	fill := func(i, n int) []byte { return bytes.Repeat([]byte{byte(i)}, n) }
	for i := range 100 {
		n := []int{0, 1, 1024, 1025, 1400}[i%5]
		for j := range 3 {
			copy(scratch, fill(i+j, n))
			p.post(SendWork{ID: uint64(j), Op: Op(j % 2), Inline: scratch[:n]})
			clear(scratch)
		}
		p.want(send(uint32(2*i)+1, fill(i, n)), write(0, 0, fill(i+1, n)), send(uint32(2*i)+2, fill(i+2, n)))
	}
	for n, ok := range map[int]bool{2048: true, 2049: false} {
		if err := judged(SendWork{Op: OpSend, Inline: make([]byte, n)}); (err == nil) != ok {
			t.Errorf("%d bytes of inline data: %v", n, err)
		}
	}
}

// The same slots, with an LLP that takes a few bytes at a time.
func TestInlineSlowly(t *testing.T) {
	p := newPair(t, both(func(s *setup) { s.SendDepth = 2; s.MULPDU = 300 }))
	p.a.chunk, p.ab.piece = func(int) int { return 7 }, func(int) int { return 11 }
	buf := make([]byte, 2000)
	r := p.b.region(buf, memory.LocalWrite)
	for i := range byte(20) {
		want := bytes.Repeat([]byte{i + 1}, 2000)
		for j := range uint64(2) {
			p.b.receive(j, all(r, 2000))
			p.a.post(SendWork{ID: j, Op: OpSend, Inline: want})
		}
		p.run()
		if !bytes.Equal(buf, want) {
			t.Fatal("inline data have changed on the way")
		}
	}
}

// As many elements as there can be, here and there, of which some are empty.
//
// Proves D20: RDMA verbs 8 ask for 4.
func TestManyElements(t *testing.T) {
	p := newPair(t)
	const n = MaxSGE * (MaxSGE - 1) / 2 * 37
	source, sink := numbered(n), make([]byte, n)
	rs, rd := p.a.region(source, 0), p.b.region(sink, remoteAll)
	var from, to [MaxSGE]SGE
	for i, at, back := 0, 0, n; i < MaxSGE; i++ {
		back -= 37 * i
		from[i], to[MaxSGE-1-i] = SGE{Region: rs, Offset: at, Length: 37 * i},
			SGE{Region: rd, Offset: back, Length: 37 * i}
		at += 37 * i
	}
	p.b.receive(1, to[:]...)
	p.a.post(work(2, OpSend, from[:]...))
	clear(from[:]) // they were copied
	clear(to[:])
	p.run()
	p.b.completion(success(1, OpReceive, n))
	p.a.completion(success(2, OpSend, n))
	if !bytes.Equal(sink, source) {
		t.Error("changed on the way")
	}
}

// Messages out of several elements, cut anywhere, into several.
//
// Proves D20, D24: all of it arrives.
func TestScatterGather(t *testing.T) {
	for _, marked := range []bool{false, true} {
		for _, cuts := range [][fewSGE]int{{0, 0, 0, 3000}, {1, 0, 2000, 999}, {1425, 1, 1, 1573}, {1426, 1430, 0, 144},
			{3000, 0, 0, 0}, {0, 0, 0, 0}, {100, 200, 300, 400}} {
			p := newPair(t, markers(marked, marked))
			n := cuts[0] + cuts[1] + cuts[2] + cuts[3]
			source, sink := numbered(n), make([]byte, n)
			var from, to [fewSGE]SGE
			for i, at := 0, 0; i < fewSGE; i++ {
				from[i] = SGE{Region: p.a.region(source[at:at+cuts[i]], 0), Offset: 0, Length: cuts[i]}
				back := cuts[fewSGE-1-i]
				to[i] = SGE{Length: back}
				at += cuts[i]
			}
			rd := p.b.region(sink, remoteAll)
			for i, at := 0, 0; i < fewSGE; i++ {
				to[i].Region, to[i].Offset = rd, at
				at += to[i].Length
			}
			p.b.receive(1, to[:]...)
			p.a.post(work(2, OpSend, from[:]...))
			p.run()
			p.b.completion(success(1, OpReceive, n))
			if !bytes.Equal(sink, source) {
				t.Errorf("%v: changed on the way", cuts)
			}
			clear(sink)
			w := work(3, OpWrite, from[:]...)
			w.RemoteSTag = rd.STag()
			p.a.post(w)
			p.run()
			if !bytes.Equal(sink, source) {
				t.Errorf("Write, %v: changed on the way", cuts)
			}
		}
	}
}

// Proves S07, D01, D02, D20: segments are as large as the MULPDU allows and no larger, and
// follow its changes in the middle of a message; what is built is not cut again.
func TestMULPDUChanges(t *testing.T) {
	p := initiator(t)
	b := numbered(2000)
	r := p.region(b, remoteAll)
	p.post(work(1, OpSend, all(r, 2000)))
	p.Machine.SetMULPDU(518, 0, 0)
	p.window = 1 // builds all FPDUs of the first message
	p.sent = append(p.sent, p.output()...)
	p.Machine.SetMULPDU(218, 0, 0)
	p.post(work(2, OpSend, all(r, 300)))
	p.window = -1
	for at := 0; at < 2000; at += 500 {
		f := send(1, b[at:at+500]).at(at)
		f.H.Last = at == 1500
		p.want(f)
	}
	p.want(send(2, b[:200]).more(), send(2, b[200:300]).at(200))
	p.send(request(1, rdmap.ReadRequest{SinkSTag: 5, Size: 300, SrcSTag: r.STag()}))
	p.want(response(5, 0, b[:204]).more(), response(5, 204, b[204:300]))
}

// Proves D01: in the middle of a message, too.
func TestMULPDUChangesInTheMiddle(t *testing.T) {
	p := initiator(t)
	n := 1 << 20
	b := numbered(n)
	r := p.region(b, remoteAll)
	p.post(work(1, OpSend, all(r, n)))
	p.send(request(1, rdmap.ReadRequest{SinkSTag: 5, Size: uint32(n), SrcSTag: r.STag()}))
	at, sizes := 0, map[int]bool{}
	for _, mulpdu := range []int{1018, layout.MaxMULPDU, layout.MinMULPDU, 1444} {
		p.window = 100 << 10
		p.Machine.SetMULPDU(mulpdu, 0, 0)
		p.sent = append(p.sent, p.output()...)
	}
	p.window = -1
	for ; at < n; at = at % n {
		f, ok := p.next()
		if !ok || int(f.H.MO) != at || !bytes.Equal(f.Payload, b[at:at+len(f.Payload)]) {
			t.Fatalf("%v at %d", f.H, at)
		}
		at += len(f.Payload)
		sizes[len(f.Payload)] = true
		if f.H.Last {
			break
		}
	}
	if at != n || !sizes[1000] || !sizes[layout.MaxMULPDU-18] && !sizes[layout.MinMULPDU-18] {
		t.Errorf("%d bytes in segments of %v", at, sizes)
	}
}

// Proves D17: the sender's MSN goes from 2^32-1 to 0.
func TestMSNWraps(t *testing.T) {
	p := initiator(t)
	p.Machine.sendMSN, p.Machine.readMSN = math.MaxUint32, math.MaxUint32
	for range 2 {
		p.post(work(1, OpSend, all(p.region(numbered(2000), 0), 2000)))
		p.post(work(2, OpRead))
	}
	b := numbered(2000)
	for _, n := range []uint32{math.MaxUint32, 0} {
		p.want(send(n, b[:1426]).more(), send(n, b[1426:]).at(1426), request(n, rdmap.ReadRequest{SinkSTag: rtrSTag}))
	}
}

// A message for which there is no room left in what is being built loses nothing,
// its MSN neither, by waiting, although Read Responses that are shorter go first.
func TestNoRoom(t *testing.T) {
	for _, marked := range []bool{false, true} {
		p := initiator(t, func(s *setup) { s.MarkersSend, s.MULPDU, s.IRD = marked, layout.MaxMULPDU, 8 })
		const n = layout.MaxMULPDU - 18
		b := numbered(n)
		r := p.region(b, remoteAll)
		// With markers all is copied. Three large messages and one of 4000 bytes leave
		// less of the arena than a fourth needs. A response is always copied.
		lengths := []int{n, n, n, 4000, n, 7, n, 900, 901}
		for i, length := range lengths {
			p.post(work(uint64(i), OpSend, all(r, length)))
		}
		reads := []int{10, 10, 10, 10, 10, n, n, 20}
		for i, size := range reads {
			p.send(request(uint32(i)+1, readOf(r.STag(), uint32(size))))
		}
		sent, answered := 0, 0
		for f, ok := p.next(); ok; f, ok = p.next() {
			want := 0
			if rdmap.OpcodeOf(&f.H) == rdmap.OpSend {
				want = lengths[sent]
				if sent++; int(f.H.MSN) != sent {
					t.Fatalf("Send %d has MSN %d", sent, f.H.MSN)
				}
			} else {
				want = reads[answered]
				answered++
			}
			if !f.H.Last || !bytes.Equal(f.Payload, b[:want]) {
				t.Fatalf("%v: %d bytes, want %d", f.H, len(f.Payload), want)
			}
		}
		if sent != len(lengths) || answered != len(reads) || p.Machine.State() != RTS {
			t.Errorf("%d Sends, %d responses; %v", sent, answered, p.Machine.Cause())
		}
	}
}

// Proves P20, D25: what was posted leaves in that order.
func TestPostingOrder(t *testing.T) {
	p := initiator(t)
	for i := range uint64(12) {
		w := work(i, Op(i%3))
		w.RemoteTO = i
		p.post(w)
	}
	for i := range uint32(12) {
		switch Op(i % 3) {
		case OpSend:
			p.want(send(i/3+1, nil))
		case OpWrite:
			p.want(write(0, uint64(i), nil))
		case OpRead:
			p.want(request(i/3+1, rdmap.ReadRequest{SinkSTag: rtrSTag, SrcTO: uint64(i)}))
		}
	}
}

// Unsignaled work that succeeds completes in silence; its slot is free again.
func TestUnsignaled(t *testing.T) {
	p := initiator(t, func(s *setup) { s.SendDepth = 1 })
	for range 5 {
		w := work(1, OpSend)
		w.Unsignaled = true
		p.post(w)
		p.output()
	}
	p.noCompletion()
	p.post(work(2, OpSend))
	p.output()
	p.completion(success(2, OpSend, 0))
}

// A cookie comes back with its completion.
func TestCookie(t *testing.T) {
	p := initiator(t)
	w := work(1, OpSend)
	w.Cookie = "a"
	p.post(w)
	if err := p.Machine.PostReceive(&RecvWork{ID: 2, Cookie: "b"}); err != nil {
		t.Fatal(err)
	}
	p.output()
	p.send(send(1, nil))
	p.completion(Completion{ID: 1, Op: OpSend, Cookie: "a"}, Completion{ID: 2, Op: OpReceive, Cookie: "b"})
}

// Every FPDU of both directions is traced, with its place in the stream, and counted.
func TestTrace(t *testing.T) {
	var got []Trace
	p := initiator(t, func(s *setup) { s.Trace = func(x Trace) { got = append(got, x) } })
	r := p.region(numbered(2000), remoteAll)
	p.post(work(1, OpSend, all(r, 1500)))
	p.send(request(1, rdmap.ReadRequest{SinkSTag: 5, Size: 4, SrcSTag: r.STag()}))
	p.want(send(1, numbered(1426)).more(), send(1, numbered(1500)[1426:]).at(1426), response(5, 0, numbered(4)))
	want := []struct {
		sent    bool
		offset  uint64
		size    int
		op      rdmap.Opcode
		payload int
	}{
		{false, 0, 52, rdmap.OpReadRequest, 28},
		{true, 0, 1452, rdmap.OpSend, 1426},
		{true, 1452, 100, rdmap.OpSend, 74},
		{true, 1552, 24, rdmap.OpReadResponse, 4},
	}
	for i, w := range want {
		if g := got[i]; g.Sent != w.sent || g.Offset != w.offset || g.Size != w.size || g.Op != w.op ||
			g.Payload != w.payload || g.Header == (ddp.Header{}) {
			t.Errorf("%d: %+v, want %+v", i, g, w)
		}
	}
	s := p.Machine.Stats()
	if len(got) != 4 || s.SentFPDUs != 3 || s.SentStream != 1576 || p.Machine.StreamSent() != 1576 ||
		s.Sent[rdmap.OpSend].Messages != 1 || s.Sent[rdmap.OpSend].Bytes != 1500 {
		t.Errorf("%+v", s)
	}
}
