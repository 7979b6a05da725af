package engine

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// reader is a QP with Reads to post, into memory of its own.
type reader struct {
	*peer
	buf []byte
	r   *memory.Region
}

func newReader(t *testing.T, change ...func(*setup)) *reader {
	rd := &reader{peer: initiator(t, change...), buf: make([]byte, 64)}
	rd.r = rd.region(rd.buf, memory.LocalWrite)
	return rd
}

// read is a Read of n bytes to an offset of the reader's memory.
func (rd *reader) read(id uint64, off, n int) SendWork {
	w := work(id, OpRead, SGE{Region: rd.r, Offset: off, Length: n})
	w.RemoteSTag, w.RemoteTO = 77, 1000+uint64(off)
	return w
}

// asked is the Read Request for it.
func (rd *reader) asked(msn uint32, off, n int) fpdu {
	return request(msn, rdmap.ReadRequest{SinkSTag: rd.r.STag(), SinkTO: uint64(off), Size: uint32(n), SrcSTag: 77,
		SrcTO: 1000 + uint64(off)})
}

func (rd *reader) answer(off int, b string) fpdu {
	return response(rd.r.STag(), uint64(off), []byte(b))
}

// ord sets the limit of outstanding Reads.
func ord(n int) func(*setup) { return func(s *setup) { s.ORD = n } }

// Proves P45, P46, P20: with ORD Reads outstanding the next waits, and what was
// posted after it does, so that the order is kept.
func TestORD(t *testing.T) {
	rd := newReader(t, ord(2))
	if rd.Machine.Negotiated().ORD != 2 {
		t.Error(rd.Machine.Negotiated().ORD)
	}
	for id := range 4 {
		rd.post(rd.read(uint64(id), 8*id, 8))
	}
	rd.post(work(4, OpSend))
	rd.want(rd.asked(1, 0, 8), rd.asked(2, 8, 8))
	rd.wantNothing()
	rd.send(rd.answer(0, "abcdefgh"))
	rd.want(rd.asked(3, 16, 8))
	rd.wantNothing()
	rd.send(rd.answer(8, "ijkl").more())
	rd.wantNothing()
	rd.send(rd.answer(12, "mnop"))
	rd.want(rd.asked(4, 24, 8), send(1, nil))
	rd.wantNothing()
	rd.completion(success(0, OpRead, 8), success(1, OpRead, 8))
	rd.noCompletion()
}

// Proves P41, P42: a Send after a Read completes after it, although it is sent.
// Proves P28: a Read completes with the last segment of its response, and not before.
func TestCompletionOrder(t *testing.T) {
	rd := newReader(t)
	rd.post(work(1, OpSend))
	rd.post(rd.read(2, 0, 8))
	rd.post(work(3, OpSend))
	silent := work(4, OpWrite)
	silent.Unsignaled = true
	rd.post(silent)
	rd.post(rd.read(5, 8, 4))
	rd.post(SendWork{ID: 6, Op: OpLocalInvalidate, Target: rd.region(nil, 0)})
	rd.want(send(1, nil), rd.asked(1, 0, 8), send(2, nil), write(0, 0, nil), rd.asked(2, 8, 4))
	rd.completion(success(1, OpSend, 0))
	rd.noCompletion()
	rd.send(rd.answer(0, "abc").more(), rd.answer(3, "defg").more())
	rd.noCompletion()
	rd.send(rd.answer(7, "h"))
	rd.completion(success(2, OpRead, 8), success(3, OpSend, 0))
	rd.noCompletion()
	rd.send(rd.answer(8, "ijkl"))
	rd.completion(success(5, OpRead, 4), success(6, OpLocalInvalidate, 0))
	if string(rd.buf[:12]) != "abcdefghijkl" {
		t.Errorf("%q", rd.buf)
	}
}

// Proves P41: nothing completes before the LLP has taken its last byte.
func TestCompletionNeedsLLP(t *testing.T) {
	p := initiator(t)
	p.window = 0
	p.post(work(1, OpSend))
	p.post(work(2, OpSend))
	for range 23 { // of the 24 bytes
		p.window = 1
		p.output()
		p.noCompletion()
	}
	p.window = 1
	p.output()
	p.completion(success(1, OpSend, 0))
	p.noCompletion()
	p.window = -1
	p.output()
	p.completion(success(2, OpSend, 0))
}

// A fence holds back its request, and all after it, until the Reads before it are complete.
func TestFence(t *testing.T) {
	for _, op := range []Op{OpSend, OpWrite, OpRead, OpLocalInvalidate} {
		rd := newReader(t)
		w := work(2, op)
		w.Fence = true
		if op == OpLocalInvalidate {
			w.Target = rd.region(nil, 0)
		}
		rd.post(rd.read(0, 0, 8))
		rd.post(rd.read(1, 8, 8))
		rd.post(w)
		rd.post(work(3, OpSend))
		rd.want(rd.asked(1, 0, 8), rd.asked(2, 8, 8))
		rd.wantNothing()
		rd.send(rd.answer(0, "abcdefgh"))
		rd.wantNothing()
		rd.completion(success(0, OpRead, 8))
		rd.send(rd.answer(8, "ijklmnop"))
		for n := 0; ; n++ {
			if f, ok := rd.next(); !ok {
				t.Fatalf("%v: stands still", op)
			} else if rdmap.OpcodeOf(&f.H) == rdmap.OpSend && (op != OpSend || n == 1) {
				break
			}
		}
	}
	p := initiator(t)
	w := work(1, OpSend)
	w.Fence = true
	p.post(w)
	p.want(send(1, nil)) // no Read outstanding
}

// A fence does not hold up what the peer asks for.
//
// Proves P22: a Read Request is answered although our own queue stands still.
func TestFenceAndPeersReads(t *testing.T) {
	rd := newReader(t)
	rd.post(rd.read(0, 0, 8))
	w := work(1, OpSend)
	w.Fence = true
	rd.post(w)
	rd.want(rd.asked(1, 0, 8))
	rd.send(request(1, rdmap.ReadRequest{SinkSTag: 5}))
	rd.want(response(5, 0, nil))
	rd.wantNothing()
}

// A Read with an ORD of zero is refused; one that was posted before it was known ends in error.
func TestZeroORD(t *testing.T) {
	rd := newReader(t, ord(0))
	if w := rd.read(2, 0, 8); rd.Machine.PostSend(&w) != ErrNoReads {
		t.Error("it is taken")
	}
	rd.Machine.ORD = 1
	rd.post(work(1, OpSend))
	rd.post(rd.read(2, 0, 8))
	rd.Machine.ORD = 0
	rd.post(work(3, OpSend))
	rd.want(send(1, nil))
	rd.wantTerminate(terminate(0x0000))
	rd.completion(success(1, OpSend, 0), failed(2, OpRead, StatusNoReadResources), flushed(3, OpSend))
}

// A Read that invalidates its sink has one, and any other several.
func TestReadSinks(t *testing.T) {
	for _, tt := range []struct {
		n   int
		has Parts
		ok  bool
	}{{0, 0, true}, {1, PartTarget, true}, {2, 0, true}, {2, PartTarget, false}, {MaxSGE, 0, true}, {MaxSGE + 1, 0, false}} {
		s := Shape{Op: OpRead, Has: PartRemote | tt.has, SGEs: tt.n, Length: uint64(tt.n)}
		if err := s.Check(0); (err == nil) != tt.ok {
			t.Errorf("%d elements, %v: %v", tt.n, tt.has, err)
		}
	}
}

// A response is held against its request byte by byte.
//
// Proves P28, D39, D40, Z10, Z12: what does not fit is refused, and the bytes around the
// sink, as near as they are, do not change.
func TestResponseErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		good []fpdu
		bad  func(rd *reader) fpdu
		code rdmap.Code
	}{
		{"another STag", nil, func(rd *reader) fpdu { return response(rd.r.STag()+1, 8, numbered(8)) }, 0x1100},
		{"one byte early", nil, func(rd *reader) fpdu { return rd.answer(7, "12345678") }, 0x1101},
		{"begins late, and last", nil, func(rd *reader) fpdu { return rd.answer(9, "1234567") }, 0x0207},
		{"one byte beyond the end", nil, func(rd *reader) fpdu { return rd.answer(9, "12345678").more() }, 0x1101},
		{"one byte too long", nil, func(rd *reader) fpdu { return rd.answer(8, "123456789") }, 0x1101},
		{"one byte too long, not last", nil, func(rd *reader) fpdu { return rd.answer(8, "123456789").more() },
			0x1101},
		{"too short", nil, func(rd *reader) fpdu { return rd.answer(8, "1234567") }, 0x0207},
		{"empty", nil, func(rd *reader) fpdu { return rd.answer(8, "") }, 0x0207},
		{"wrap", nil, func(rd *reader) fpdu { return rd.answer(-1, "12") }, 0x1101},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rd := newReader(t)
			rd.post(rd.read(1, 8, 8))
			rd.post(rd.read(2, 24, 8))
			rd.want(rd.asked(1, 8, 8), rd.asked(2, 24, 8))
			bad := tt.bad(rd)
			rd.send(bad)
			rd.wantTerminate(terminateFor(tt.code, bad))
			rd.completion(flushed(1, OpRead), flushed(2, OpRead))
			if !bytes.Equal(rd.buf, make([]byte, 64)) {
				t.Errorf("%v", rd.buf)
			}
		})
	}
}

// Proves P23, P28: responses come in the order of the requests: the second Read's
// before the first's is refused; so is one more than was asked for.
func TestResponseOrder(t *testing.T) {
	rd := newReader(t)
	rd.post(rd.read(1, 8, 8))
	rd.post(rd.read(2, 24, 8))
	rd.want(rd.asked(1, 8, 8), rd.asked(2, 24, 8))
	bad := rd.answer(24, "12345678")
	rd.send(bad)
	rd.wantTerminate(terminateFor(0x1101, bad))

	rd = newReader(t)
	rd.post(rd.read(1, 8, 8))
	rd.want(rd.asked(1, 8, 8))
	rd.send(rd.answer(8, "12345678"), rd.answer(8, "12345678"))
	rd.wantTerminate(terminateFor(0x0206, rd.answer(8, "12345678")))
	rd.completion(success(1, OpRead, 8))
}

// Proves Z13: a sink that is revoked while the response comes is not written any more.
func TestRevokedSink(t *testing.T) {
	rd := newReader(t)
	rd.post(rd.read(1, 0, 8))
	rd.want(rd.asked(1, 0, 8))
	rd.send(rd.answer(0, "abcd").more())
	rd.table.Revoke(rd.r)
	bad := rd.answer(4, "efgh")
	rd.send(bad)
	rd.wantTerminate(terminateFor(0x1100, bad))
	rd.completion(failed(1, OpRead, StatusLocalProtection))
	if string(rd.buf[:8]) != "abcd\x00\x00\x00\x00" {
		t.Errorf("%q", rd.buf)
	}
}

// Proves Z16: the sink's STag, which the peer has to know, gives it no right of its own.
func TestSinkIsNotWritable(t *testing.T) {
	rd := newReader(t)
	rd.post(rd.read(1, 0, 8))
	rd.want(rd.asked(1, 0, 8))
	bad := write(rd.r.STag(), 0, []byte("abc"))
	rd.send(bad)
	rd.wantTerminate(terminateFor(0x1102, bad))
}

// A Read with InvalidateLocal revokes its sink before it completes. A Read that
// cannot is in error.
func TestReadInvalidates(t *testing.T) {
	for _, n := range []int{0, 8} {
		rd := newReader(t)
		w := rd.read(1, 0, n)
		w.InvalidateLocal = true
		rd.post(w)
		rd.output()
		if !rd.r.Valid() {
			t.Fatal("invalidated too early")
		}
		f := rd.answer(0, "abcdefgh"[:n])
		rd.send(f)
		rd.completion(success(1, OpRead, n))
		if rd.r.Valid() {
			t.Error("still valid")
		}
	}
	rd := newReader(t)
	w := work(1, OpRead)
	w.InvalidateLocal, w.Target = true, rd.r
	rd.post(w)
	rd.want(request(1, rdmap.ReadRequest{SinkSTag: rtrSTag}))
	rd.send(response(1, 0, nil))
	rd.completion(success(1, OpRead, 0))
	if rd.r.Valid() {
		t.Error("still valid")
	}
	rd = newReader(t)
	w.Target = rd.r
	rd.post(w)
	rd.want(request(1, rdmap.ReadRequest{SinkSTag: rtrSTag}))
	rd.table.Revoke(rd.r)
	rd.send(response(1, 0, nil))
	rd.wantTerminate(terminate(0x0000))
	rd.completion(failed(1, OpRead, StatusInvalidateFailed))
}

// Proves P27, P45, P47, Z28, Z29: as many Read Requests are taken as the IRD says,
// whatever our direction does; one more ends the stream with 0x1203.
func TestIRD(t *testing.T) {
	for ird := range 4 {
		p := responder(t, func(s *setup) { s.IRD = ird })
		if p.Machine.Negotiated().IRD != ird {
			t.Error(p.Machine.Negotiated().IRD)
		}
		p.receive(1)
		p.send(send(1, nil))
		p.window = 0 // nothing can be answered
		for i := range ird {
			p.send(request(uint32(i)+1, rdmap.ReadRequest{SinkSTag: uint32(i)}))
		}
		p.wantState(RTS)
		bad := request(uint32(ird)+1, rdmap.ReadRequest{})
		p.send(bad)
		p.window = -1
		p.wantTerminate(terminateFor(0x1203, bad))
	}
}

// Proves P47: a request that is answered makes room for another, for ever.
func TestIRDAgain(t *testing.T) {
	p := responder(t, func(s *setup) { s.IRD = 2 })
	for i := range uint32(50) {
		p.send(request(i+1, rdmap.ReadRequest{SinkSTag: i}))
		p.want(response(i, 0, nil))
	}
}

// Proves P23, P11: requests are answered in their order, each in one go, with the
// sink's STag and TO as they were asked for, whatever they are.
func TestResponses(t *testing.T) {
	p := responder(t)
	b := numbered(3000)
	r := p.region(b, memory.RemoteRead)
	p.receive(1)
	const wrapping = 1<<64 - 1000 // the sink's offsets are the peer's business
	p.send(
		request(1, rdmap.ReadRequest{SinkSTag: 5, SinkTO: wrapping, Size: 3000, SrcSTag: r.STag()}),
		request(2, rdmap.ReadRequest{SinkSTag: 0xffffffff, SinkTO: 7, Size: 10, SrcSTag: r.STag(), SrcTO: 5}),
		send(1, nil),
		request(3, rdmap.ReadRequest{SinkSTag: 0}))
	// Sends are delivered while responses are outstanding.
	p.completion(success(1, OpReceive, 0))
	var to uint64 = wrapping
	p.want(response(5, to, b[:1430]).more(), response(5, to+1430, b[1430:2860]).more(), response(5, to+2860, b[2860:]),
		response(0xffffffff, 7, b[5:15]), response(0, 0, nil))
	p.noCompletion()
}

// Proves P40, P32: a response holds the data of Writes and Sends that came before
// its request, in the same delivery of bytes too.
func TestResponseSeesEarlierWrites(t *testing.T) {
	p := responder(t)
	buf := make([]byte, 8)
	r := p.region(buf, remoteAll)
	p.receive(1, SGE{Region: r, Offset: 4, Length: 4})
	var b []byte
	for _, f := range []fpdu{
		write(r.STag(), 0, []byte("abcd")), send(1, []byte("efgh")),
		request(1, rdmap.ReadRequest{SinkSTag: 5, Size: 8, SrcSTag: r.STag()}),
	} {
		b = p.w.Append(b, f.ulpdu())
	}
	p.input(b)
	p.want(response(5, 0, []byte("abcdefgh")))
}
