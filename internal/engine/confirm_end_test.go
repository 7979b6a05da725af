package engine

import (
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Where both halves end at once, what was asked for is not confirmed, though the LLP goes on to take it.
func TestConfirmWholeClosed(t *testing.T) {
	p := newPeer(t, mpa.RoleInitiator, confirming, messages)
	p.post(work(1, OpSend))
	n := 0
	for _, b := range p.Machine.Output(p.clock, p.g) { // the Send and the question
		n += len(b)
	}
	p.Machine.WholeClosed(p.clock)
	p.Machine.Sent(p.clock, p.g, n)
	p.collectOutputs()
	p.completion(flushed(1, OpSend))
}

// A peer that closes its half with a Read of the consumer's unanswered has not closed in order, though a question is
// out too.
func TestConfirmClosesBehindRead(t *testing.T) {
	p := initiator(t, confirming)
	sink := p.region(make([]byte, 3), memory.LocalWrite)
	p.post(work(1, OpSend))
	p.want(send(1, nil), question(1))
	p.post(work(2, OpRead, all(sink, 3)))
	p.output()
	p.fin()
	p.wantCause(rdmap.CodeCatastrophicStream, false)
	p.output()
	p.completion(flushed(1, OpSend), flushed(2, OpRead))
}

// A Write with Immediate Data has no message of queue 0 before its Write is sent whole: a Terminate about one that was
// never sent is not about it.
func TestConfirmRefusedWriteImm(t *testing.T) {
	p := initiator(t, confirming)
	r := p.region(numbered(200_000), memory.LocalWrite)
	p.window = 3000
	w := work(1, OpWriteImm, all(r, 200_000))
	w.RemoteSTag = 5
	p.post(w)
	p.output()
	p.send(terminateFor(rdmap.CodeDDPMessageTooLong, send(0, nil)))
	p.window = -1
	p.collectOutputs()
	p.output()
	p.completion(flushed(1, OpWriteImm))
}

// The question is the connection's own bytes: that the LLP takes it is progress of a close, as of any other message.
func TestConfirmQuestionDrains(t *testing.T) {
	p := initiator(t, confirming, func(s *setup) { s.ORD = 1 })
	sink := p.region(make([]byte, 3), memory.LocalWrite)
	target := p.region(make([]byte, drainBytes), remoteAll)
	p.window = 0
	p.post(work(1, OpRead, all(sink, 3)))
	p.post(work(2, OpSend))
	p.window = -1
	p.want(request(1, rdmap.ReadRequest{SinkSTag: sink.STag(), SinkTO: sink.Base(), Size: 3}), send(1, nil))
	p.wantNothing() // no Read is free for the question
	p.closeOrderly()
	p.window = 0
	p.send(response(sink.STag(), sink.Base(), numbered(3)))
	for left := drainBytes - 10; left > 0; left -= 1000 { // just too few to count
		p.send(write(target.STag(), 0, numbered(min(left, 1000))))
	}
	p.advance(closeTime - time.Second)
	p.window = -1
	p.want(question(2))
	p.advance(closeTime - time.Second)
	p.wantState(RTS)
	p.advance(2 * time.Second)
	p.wantState(Error)
}
