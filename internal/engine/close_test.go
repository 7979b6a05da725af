package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Proves D30: an orderly close carries out what was posted before, and refuses
// what comes after it.
// Proves P44: nothing but FPDUs is sent until the FIN.
func TestCloseDrains(t *testing.T) {
	p := initiator(t, func(s *setup) { s.ORD = 1 })
	r := p.region(make([]byte, 8), memory.LocalWrite)
	for id := range uint64(2) {
		w := work(id, OpRead, all(r, 8))
		p.post(w)
	}
	p.post(work(2, OpSend))
	p.closeOrderly()
	w := work(9, OpSend)
	if err := p.Machine.PostSend(&w); !errors.Is(err, ErrBadState) {
		t.Fatal(err)
	}
	read := rdmap.ReadRequest{SinkSTag: r.STag(), Size: 8}
	p.want(request(1, read))
	p.wantNothing() // ORD 1: the rest waits
	p.wantState(RTS)
	p.send(response(r.STag(), 0, numbered(8)))
	p.want(request(2, read), send(1, nil))
	p.wantNothing()
	p.wantState(RTS) // the second Read is outstanding
	p.wantLLP()
	p.send(response(r.STag(), 0, numbered(8)))
	p.completion(success(0, OpRead, 8), success(1, OpRead, 8), success(2, OpSend, 0))
	p.wantState(RTS)
	p.wantLLP(Finish)
	p.wantNothing()
	p.fin()
	p.wantState(Idle)
	p.wantLLP(Drop)
	p.wantNotices(NoticeHalfClosed, NoticeCloseComplete)
	if p.Machine.Cause() != ErrClosedHere {
		t.Error(p.Machine.Cause())
	}
}

// Proves D30: the peer's Reads are answered before the close.
func TestCloseAnswersReads(t *testing.T) {
	p := responder(t)
	r := p.region(numbered(4000), remoteAll)
	p.send(request(1, rdmap.ReadRequest{SinkSTag: 5, Size: 2000, SrcSTag: r.STag()}))
	p.closeOrderly()
	p.wantState(RTS)
	b := numbered(4000)
	p.want(response(5, 0, b[:1430]).more(), response(5, 1430, b[1430:2000]))
	p.wantEnd(RTS, Finish)
	p.wantState(Idle)
}

// Bytes that the LLP has not taken hold up the FIN.
func TestCloseWaitsForLLP(t *testing.T) {
	p := initiator(t)
	p.window = 10
	p.post(work(1, OpSend))
	p.closeOrderly()
	p.output()
	p.wantState(RTS)
	p.wantLLP()
	p.window = -1
	p.output()
	p.completion(success(1, OpSend, 0))
	p.wantLLP(Finish)
}

// RDMA verbs, section 6.2: any segment that arrives in Closing, to which Modify leads,
// is a bad close.
func TestBytesInClosing(t *testing.T) {
	p := initiator(t)
	p.modify(Closing)
	p.wantState(Closing)
	p.wantLLP(Finish)
	p.input(nil) // nothing is nothing
	p.wantState(Closing)
	p.send(send(1, nil))
	p.wantState(Error)
	p.wantLLP(Reset)
	p.wantNotices(NoticeBadClose, NoticeConnectionLost)
	if !errors.Is(p.Machine.Cause(), ErrLost) {
		t.Error(p.Machine.Cause())
	}
}

// Half an FPDU that came before Closing and was never finished is a bad close too.
func TestPartOfFPDUInClosing(t *testing.T) {
	p := initiator(t)
	p.input([]byte{0, 30, 1})
	p.modify(Closing)
	p.wantState(Closing)
	p.wantLLP(Finish)
	p.fin()
	p.wantState(Error)
	p.wantLLP(Reset)
}

// Proves D31: bytes after the peer's FIN end the connection abortively.
func TestBytesAfterFIN(t *testing.T) {
	p := initiator(t, func(s *setup) { s.HalfClose = true })
	p.fin()
	p.wantState(RTS)
	p.send(send(1, nil))
	p.wantState(Error)
	p.wantLLP(Reset)
	p.wantNotices(NoticeHalfClosed, NoticeConnectionLost)
}

// Proves D32, Q15, R08: the peer's FIN is reported; what was posted, and what the
// peer has asked for, still goes out, and then our half is closed.
func TestPeerCloses(t *testing.T) {
	p := initiator(t)
	r := p.region(numbered(10), remoteAll)
	p.post(work(1, OpSend))
	p.send(request(1, rdmap.ReadRequest{SinkSTag: 5, Size: 10, SrcSTag: r.STag()}))
	p.receive(2)
	p.fin()
	p.wantState(RTS)
	p.wantNotices(NoticeHalfClosed)
	p.completion(flushed(2, OpReceive)) // which nothing can fill any more
	p.want(send(1, nil), response(5, 0, numbered(10)))
	p.wantNothing()
	p.completion(success(1, OpSend, 0))
	p.wantState(Idle)
	p.wantLLP(Drop)
	p.wantNotices(NoticeCloseComplete)
	if p.Machine.Cause() != ErrPeerClosed {
		t.Error(p.Machine.Cause())
	}
}

// Proves D32: with HalfClose our half stays open for as long as the consumer
// wants, and is closed gracefully when it says so.
func TestHalfCloseByPeer(t *testing.T) {
	p := initiator(t, func(s *setup) { s.HalfClose = true })
	p.fin()
	p.wantNotices(NoticeHalfClosed)
	for i := range uint32(3) {
		p.wantState(RTS)
		p.post(work(uint64(i), OpSend))
		p.want(send(i+1, nil))
		p.advance(time.Hour)
	}
	p.closeOrderly()
	p.wantNothing()
	p.wantLLP(Drop)
	p.wantState(Idle)
}

// A Read that cannot be answered any more must not wait for ever.
func TestReadAfterFIN(t *testing.T) {
	for _, half := range []bool{false, true} {
		p := initiator(t, func(s *setup) { s.HalfClose = half })
		p.post(work(1, OpRead)) // posted, and not begun when the FIN comes
		p.fin()
		p.want(terminate(rdmap.CodeCatastrophicStream))
		p.wantNothing()
		p.completion(flushed(1, OpRead))
		p.wantLLP(Drop)
		p.wantState(Error)
	}
}

// RDMA verbs, section 6.2: a close by the peer with work outstanding is 0x0207.
func TestPeerClosesOnReads(t *testing.T) {
	p := initiator(t)
	p.post(work(1, OpRead))
	p.post(work(2, OpSend))
	p.want(request(1, rdmap.ReadRequest{SinkSTag: rtrSTag}), send(1, nil))
	p.fin()
	p.want(terminate(rdmap.CodeCatastrophicStream))
	p.wantNothing()
	p.completion(flushed(1, OpRead), flushed(2, OpSend))
	p.wantState(Error)
	p.wantLLP(Drop)
	if f := p.wantCause(rdmap.CodeCatastrophicStream, false); !errors.Is(f, ErrLost) {
		t.Errorf("a peer that may have been killed: %v", f)
	}
}

// Proves R08, Q16, D08: a close in the middle of an FPDU is a loss, told apart from
// a graceful end, and the peer is told on our half; a Responder that has heard nothing
// may not tell it. One in the middle of a message is an error.
func TestPeerClosesInTheMiddle(t *testing.T) {
	p := responder(t)
	p.sendBytes(p.w.Append(nil, send(1, nil).ulpdu())[:11])
	p.fin()
	p.wantState(Error)
	p.wantLLP(Reset)
	p.wantNotices(NoticeConnectionLost)
	if !errors.Is(p.Machine.Cause(), ErrLost) {
		t.Error(p.Machine.Cause())
	}

	p = responder(t)
	p.send(write(1, 0, nil))
	p.sendBytes(p.w.Append(nil, send(1, nil).ulpdu())[:11])
	p.fin()
	p.want(terminate(rdmap.CodeMPAConnectionLost))
	p.wantNothing()
	p.wantState(Error)
	p.wantLLP(Drop)
	p.wantNotices(NoticeTerminateSent)
	if f := p.wantCause(0x2001, false); f.Offset != 20 || !errors.Is(f, ErrLost) {
		t.Error(f, f.Offset)
	}

	p = responder(t)
	r := p.region(make([]byte, 10), remoteAll)
	p.receive(1, all(r, 10))
	p.send(send(1, []byte("abc")).more())
	p.fin()
	p.want(terminate(rdmap.CodeCatastrophicStream))
	p.completion(flushed(1, OpReceive))

	p = responder(t)
	r = p.region(make([]byte, 10), remoteAll)
	p.send(write(r.STag(), 0, []byte("abc")).more())
	p.fin()
	p.want(terminate(rdmap.CodeCatastrophicStream))
}

// A Responder that has heard nothing: the peer's close is in order if there was
// nothing to send, whatever HalfClose says, and a loss otherwise.
func TestPeerClosesBeforeItSpoke(t *testing.T) {
	for _, half := range []bool{false, true} {
		p := responder(t, func(s *setup) { s.HalfClose = half })
		p.fin()
		p.wantNothing()
		p.wantState(Idle)
		p.wantLLP(Drop)
	}
	p := responder(t)
	p.post(work(1, OpSend))
	p.fin()
	p.wantNothing()
	p.wantState(Error)
	p.completion(flushed(1, OpSend))
}

// Proves D33: when we close our half only, receiving goes on.
func TestHalfCloseByUs(t *testing.T) {
	p := initiator(t)
	r := p.region(make([]byte, 10), remoteAll)
	p.receive(1, all(r, 10))
	p.post(work(2, OpSend))
	p.Machine.BeginHalfClose(p.clock)
	w := work(9, OpSend)
	if err := p.Machine.PostSend(&w); !errors.Is(err, ErrBadState) {
		t.Fatal(err)
	}
	p.want(send(1, nil))
	p.wantNothing()
	p.wantLLP(Finish)
	p.wantState(RTS)
	p.send(write(r.STag(), 0, []byte("abcdef")), send(1, []byte("xyz")))
	p.completion(success(2, OpSend, 0), success(1, OpReceive, 3))
	p.wantState(RTS)
	if p.Machine.Cause() != ErrClosedHere {
		t.Error(p.Machine.Cause())
	}
	p.fin()
	p.wantLLP(Drop)
	p.wantState(Idle)
}

// An error that cannot be answered after our FIN resets the connection, and nothing is
// sent.
func TestErrorAfterOurFIN(t *testing.T) {
	p := initiator(t)
	p.Machine.BeginHalfClose(p.clock)
	p.collectOutputs()
	p.wantLLP(Finish)
	p.send(send(1, nil)) // for which there is no receive
	p.wantNothing()
	p.wantState(Error)
	p.wantLLP(Reset)
	p.wantCause(rdmap.Code(0x1202), false)
}

// After our FIN a silent peer is not nudged.
func TestNoNudgeAfterOurFIN(t *testing.T) {
	p := initiator(t, func(s *setup) { s.Nudge = time.Millisecond })
	p.post(work(1, OpSend))
	p.Machine.BeginHalfClose(p.clock)
	p.want(send(1, nil))
	p.wantNothing()
	p.advance(time.Hour)
	p.wantNothing()
	if got := p.Machine.Stats().Nudges; got > 0 {
		t.Errorf("%d nudges", got)
	}
}

// A close that is asked for without a connection does nothing to the next one.
func TestCloseInIdle(t *testing.T) {
	s := newSetup(mpa.RoleInitiator)
	p := &peer{clock: epoch}
	p.host = newHost(t, &p.clock, s)
	p.closeOrderly()
	p.Machine.BeginHalfClose(p.clock)
	p.fin()
	p.post(work(1, OpSend))
	p.start(s)
	p.want(send(1, nil))
	p.wantState(RTS)
}
