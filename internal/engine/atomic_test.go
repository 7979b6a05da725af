package engine

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// words returns n words as bytes, and as what they are.
func words(n int) ([]byte, []uint64) {
	w := make([]uint64, n)
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*n), w
}

// atomicRequest is an Atomic Request.
func atomicRequest(msn uint32, r rdmap.AtomicRequest) fpdu {
	f := message(rdmap.OpAtomicRequest, r.Append(nil))
	f.H.MSN = msn
	return f
}

// atomicResponse is an Atomic Response.
func atomicResponse(msn, id uint32, value uint64) fpdu {
	r := rdmap.AtomicResponse{ID: id, Value: value}
	f := message(rdmap.OpAtomicResponse, r.Append(nil))
	f.H.MSN = msn
	return f
}

// add is a FetchAdd on a peer's word, with its result for the elements.
func add(id uint64, n uint64, sgl ...SGE) SendWork {
	w := work(id, OpFetchAdd, sgl...)
	w.RemoteSTag, w.RemoteTO, w.Atomic.Data = 77, 1000, n
	return w
}

// added is the request for it.
func added(msn, id uint32, n uint64) fpdu {
	r := rdmap.FetchAdd(n, 0)
	r.ID, r.STag, r.TO = id, 77, 1000
	return atomicRequest(msn, r)
}

// fetched is its completion.
func fetched(id uint64, op Op, original uint64) Completion {
	c := success(id, op, 8)
	c.Original = original
	return c
}

// Proves A04, A13, A18, A21, A25: Atomic Requests go through queue 1 among the Read Requests, with its MSNs, and
// their responses through queue 3 with MSNs of their own. The result is in the completion and,
// in the machine's byte order, where it is wanted.
func TestAtomicRequester(t *testing.T) {
	rd := newReader(t)
	out, w := words(2)
	r := rd.region(out, memory.LocalWrite)
	rd.post(add(1, 5))
	rd.post(rd.read(2, 0, 4))
	swap := work(3, OpCompareSwap, SGE{Region: r, Offset: 8, Length: 8})
	swap.RemoteSTag, swap.RemoteTO, swap.Atomic = 78, 16,
		Atomic{Data: 9, Mask: 0xff, Compare: 7, CompareMask: math.MaxUint64}
	rd.post(swap)
	rd.want(added(1, 1, 5), rd.asked(2, 0, 4),
		atomicRequest(3, rdmap.AtomicRequest{Op: rdmap.AtomicCmpSwap, ID: 2, STag: 78, TO: 16, Data: 9, Mask: 0xff,
			Compare: 7, CompareMask: math.MaxUint64}))
	rd.noCompletion()
	rd.send(atomicResponse(1, 1, 37))
	rd.completion(fetched(1, OpFetchAdd, 37))
	rd.send(rd.answer(0, "abcd"), atomicResponse(2, 2, 0x0102030405060708))
	rd.completion(success(2, OpRead, 4), fetched(3, OpCompareSwap, 0x0102030405060708))
	if w[0] != 0 || w[1] != 0x0102030405060708 {
		t.Errorf("results %#x", w)
	}
	rd.wantState(RTS)
}

// Proves A19, A21: Atomic Operations take their place of the ORD, and what was posted after one that
// has none waits, so that the order is kept. A fence waits for them.
func TestAtomicORD(t *testing.T) {
	rd := newReader(t, ord(1))
	rd.post(add(1, 1))
	rd.post(add(2, 2))
	rd.post(work(3, OpSend))
	rd.want(added(1, 1, 1))
	rd.wantNothing()
	rd.send(atomicResponse(1, 1, 0))
	rd.want(added(2, 2, 2), send(1, nil))
	fenced := work(4, OpSend)
	fenced.Fence = true
	rd.post(fenced)
	rd.wantNothing()
	rd.send(atomicResponse(2, 2, 1))
	rd.want(send(2, nil))
	rd.completion(fetched(1, OpFetchAdd, 0), fetched(2, OpFetchAdd, 1), success(3, OpSend, 0), success(4, OpSend, 0))
}

// Proves A01, A04, A05, A24, A26, A40, A41: an Atomic Response that nobody has asked for, or that is not the one whose turn
// it is, ends the connection, and completes nothing.
func TestAtomicResponseRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		bad  fpdu
		code rdmap.Code
	}{
		{"another's Request Identifier", atomicResponse(1, 2, 5), 0x0207},
		{"MSN of the request", atomicResponse(7, 1, 5), 0x1203},
		{"MSN 0", atomicResponse(0, 1, 5), 0x1203},
		{"MO", atomicResponse(1, 1, 5).at(1), 0x1205},
		{"not the last segment", atomicResponse(1, 1, 5).more(), 0x0207},
		{"one byte short", message(rdmap.OpAtomicResponse, numbered(11)), 0x0207},
		{"32 bytes, as section 4 has it", message(rdmap.OpAtomicResponse, numbered(32)), 0x0207},
		{"on queue 1", atomicResponse(1, 1, 5).with(qn(1)), 0x0206},
		{"tagged", atomicResponse(1, 1, 5).with(tagged(true)), 0x0206},
		{"a Read Response in its place", response(77, 1000, numbered(8)), 0x0206},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := initiator(t)
			p.post(add(1, 5))
			p.want(added(1, 1, 5))
			p.send(tt.bad)
			p.wantTerminate(terminateFor(tt.code, tt.bad))
			p.wantCause(tt.code, false)
			p.completion(flushed(1, OpFetchAdd))
		})
	}
	p := initiator(t)
	p.send(atomicResponse(1, 1, 5))
	p.wantTerminate(terminateFor(0x0206, atomicResponse(1, 1, 5)))
	p = initiator(t)
	p.post(work(1, OpRead))
	p.want(request(1, rdmap.ReadRequest{SinkSTag: rtrSTag}))
	p.send(atomicResponse(1, 1, 5))
	p.wantTerminate(terminateFor(0x0206, atomicResponse(1, 1, 5)))
}

// Proves A13, A19: work of RFC 7306 that cannot be is refused when it is posted.
func TestExtensionsPosted(t *testing.T) {
	for _, sgl := range [][]SGE{{{Length: 7}}, {{Length: 16}}, {{Length: 4}, {Length: 4}}} {
		if err := judged(add(1, 5, sgl...)); err == nil {
			t.Errorf("%d elements: no error", len(sgl))
		}
	}
	if err := judged(add(1, 5, SGE{Length: 8})); err != nil {
		t.Error(err)
	}
	w := add(1, 5)
	none := initiator(t, ord(0))
	if err := none.Machine.PostSend(&w); !errors.Is(err, ErrNoReads) ||
		!strings.Contains(err.Error(), "an Atomic Operation") {
		t.Error(err)
	}
}

// Proves A02: on version 0 there is nothing of RFC 7306, in either direction.
func TestExtensionsOfVersion0(t *testing.T) {
	for _, op := range []Op{OpFetchAdd, OpCompareSwap, OpWriteImm, OpImmediate} {
		p := initiator(t, version0)
		w := work(1, op)
		if err := p.Machine.PostSend(&w); err != ErrNoExtensions {
			t.Errorf("%d: %v", op, err)
		}
	}
	for _, f := range []fpdu{atomicRequest(1, rdmap.FetchAdd(1, 0)), immediate(1, 5),
		message(rdmap.OpImmediateDataSE, numbered(8))} {
		f = f.ofVersion(0, 0)
		p := responder(t, version0)
		p.receive(1)
		p.send(f)
		p.wantTerminate(terminateFor(0x0206, f).ofVersion(0, 0))
		p.completion(flushed(1, OpReceive))
	}
	f := atomicResponse(1, 1, 0).ofVersion(0, 0)
	p := responder(t, version0)
	p.send(f)
	p.wantTerminate(terminateFor(0x1201, f).ofVersion(0, 0))
}

// Work that was posted before the connection was there, and that it does not carry.
//
// Proves A39: it ends in error, and says why.
func TestExtensionsPostedEarly(t *testing.T) {
	for _, tt := range []struct {
		op     Op
		change func(*setup)
		want   Status
	}{
		{OpWriteImm, version0, StatusUnsupported}, {OpImmediate, version0, StatusUnsupported},
		{OpFetchAdd, version0, StatusUnsupported}, {OpFetchAdd, ord(0), StatusNoReadResources},
	} {
		s := newSetup(mpa.RoleInitiator)
		tt.change(s)
		p := &peer{clock: epoch}
		p.host = newHost(t, &p.clock, s)
		p.post(work(0, OpSend))
		p.post(work(1, tt.op))
		p.start(s)
		p.want(send(1, nil).ofVersion(s.DDPVersion, s.RDMAPVersion),
			terminate(0).ofVersion(s.DDPVersion, s.RDMAPVersion))
		p.wantEnd(Terminate, Finish)
		p.completion(success(0, OpSend, 0), failed(1, tt.op, tt.want))
		if err := p.Machine.Cause(); tt.want == StatusNoReadResources &&
			!strings.Contains(err.Error(), "an Atomic Operation was posted") {
			t.Error(err)
		}
	}
}

// The memory for a result goes away before the response comes, or before the request is sent.
//
// Proves A39: the operation ends in error, and the connection with it.
func TestAtomicResultLost(t *testing.T) {
	p := initiator(t)
	r := p.region(make([]byte, 8), memory.LocalWrite)
	p.post(add(1, 5, SGE{Region: r, Offset: 0, Length: 8}))
	p.want(added(1, 1, 5))
	p.table.Revoke(r)
	p.send(atomicResponse(1, 1, 37))
	p.wantTerminate(terminate(0))
	p.completion(failed(1, OpFetchAdd, StatusLocalProtection))

	p = initiator(t)
	r = p.region(make([]byte, 8), 0)
	p.window = 0
	p.post(work(0, OpSend)) // which is sent all the same
	p.post(add(1, 5, SGE{Region: r, Offset: 0, Length: 8}))
	p.window = -1
	p.want(send(1, nil))
	p.wantTerminate(terminate(0))
	p.completion(success(0, OpSend, 0), failed(1, OpFetchAdd, StatusLocalAccess))
}

// Proves A25, A28, A35: segments that come ahead of others are not carried out before their turn, and
// come to the same as in order: requests, responses and Immediate Data.
func TestExtensionsAhead(t *testing.T) {
	s := &sender{newPeer(t, mpa.RoleResponder, messages)}
	buf, w := words(1)
	r := s.region(buf, memory.RemoteAtomic)
	s.receive(1)
	req := rdmap.FetchAdd(5, 0)
	req.STag = r.STag()
	s.post(add(2, 1))
	s.sends(added(1, 1, 1))
	s.arrives(1, atomicRequest(1, req))
	s.arrives(3, immediate(1, 99))
	s.arrives(2, atomicResponse(1, 1, 7))
	s.sends()
	s.noCompletion()
	if w[0] != 0 {
		t.Error("carried out before its turn")
	}
	s.arrives(0, write(0, 0, nil))
	s.sends(atomicResponse(1, 0, 0))
	s.completion(fetched(2, OpFetchAdd, 7), Completion{ID: 1, Op: OpReceive, HasImmediate: true, Immediate: 99})
	if w[0] != 5 {
		t.Errorf("%d", w[0])
	}
}

// Proves A42: the Atomic Operation that a peer's Terminate names ends with what the peer says.
func TestAtomicBlamed(t *testing.T) {
	for code, want := range map[rdmap.Code]Status{0x0102: StatusRemoteAccess, 0x0207: StatusRemoteOperation,
		0x0206: StatusRemoteOperation} {
		p := initiator(t)
		p.post(add(1, 5))
		p.post(add(2, 6))
		p.want(added(1, 1, 5), added(2, 2, 6))
		p.send(terminateFor(code, added(2, 2, 6)))
		p.wantEnd(Terminate, Finish)
		p.completion(flushed(1, OpFetchAdd), failed(2, OpFetchAdd, want))
	}
}

// Proves A42: a peer that does not know RFC 7306 is told of as such, and what a Terminate for an
// Atomic Operation may be about.
func TestExtensionHints(t *testing.T) {
	for _, tt := range []struct {
		answer fpdu
		words  string
	}{
		{terminate(0x0206), "does not seem to know"},
		{terminate(0x2006), "does not seem to know"}, // as siw sends it
		{terminateFor(0x0206, added(1, 1, 5)), "does not seem to know"},
		{terminateFor(0x0101, added(1, 1, 5)), "the word of the Atomic Operation is not in"},
		{terminateFor(0x0102, added(1, 1, 5)), "RemoteAtomic"},
		{terminateFor(0x0104, added(1, 1, 5)), "exceed 64 bits"},
		{terminateFor(0x0207, added(1, 1, 5)), "no multiple of 8"},
	} {
		p := initiator(t)
		p.post(add(1, 5))
		p.want(added(1, 1, 5))
		p.send(tt.answer)
		if f := p.wantCause(codeOf(tt.answer), true); !strings.Contains(f.Reason, tt.words) {
			t.Errorf("%q", f.Reason)
		}
	}
	for _, sent := range [][]SendWork{
		{work(1, OpImmediate)}, {solicited(work(1, OpImmediate))},
		{work(1, OpImmediate), solicited(work(2, OpImmediate))}, {add(1, 5), work(2, OpImmediate)},
	} {
		p := initiator(t)
		for _, w := range sent {
			p.post(w)
		}
		p.output()
		p.send(terminate(0x0206))
		if f := p.wantCause(0x0206, true); !strings.Contains(f.Reason, "does not seem to know") {
			t.Errorf("%d messages: %q", len(sent), f.Reason)
		}
	}
	p := initiator(t)
	p.send(terminate(0x0206))
	if f := p.wantCause(0x0206, true); strings.Contains(f.Reason, "7306") {
		t.Errorf("nothing of RFC 7306 was sent: %q", f.Reason)
	}
}

func solicited(w SendWork) SendWork { w.Solicited = true; return w }

// codeOf is the code of a Terminate.
func codeOf(f fpdu) rdmap.Code { return rdmap.Code(binary.BigEndian.Uint16(f.Payload)) }
