package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// confirming has a QP complete Sends and Writes when the peer has carried them out.
func confirming(s *setup) { s.Confirm = true }

// question is the empty Read that asks for a confirmation, and answer its response.
func question(msn uint32) fpdu {
	return request(msn, rdmap.ReadRequest{SinkSTag: rtrSTag, SrcSTag: rtrSTag})
}

var answer = response(rtrSTag, 0, nil)

// writing is a Write of n bytes to STag 5, offset 100.
func writing(id uint64, n int) SendWork {
	return SendWork{ID: id, Op: OpWrite, Inline: numbered(n), RemoteSTag: 5, RemoteTO: 100}
}

// One empty Read after what was sent together stands for all of it; what is sent meanwhile is asked for when its
// response has come.
//
// Proves P40: an RDMA Read is processed after all that was sent before it, so that its response tells that this was carried out.
func TestConfirm(t *testing.T) {
	p := initiator(t, confirming)
	p.window = 0 // both are posted before anything is sent
	p.post(work(1, OpSend))
	p.window = -1
	p.post(writing(2, 3))
	p.want(send(1, nil), write(5, 100, numbered(3)), question(1))
	p.noCompletion()
	p.post(work(3, OpSend))
	p.want(send(2, nil))
	p.wantNothing()
	p.send(answer)
	p.completion(success(1, OpSend, 0), success(2, OpWrite, 3))
	p.want(question(2))
	p.wantNothing()
	p.noCompletion()
	p.send(answer)
	p.completion(success(3, OpSend, 0))
	p.wantNothing()
	if p.Machine.Pending() {
		t.Error("something is to be sent")
	}
}

// A Read and an Atomic Operation of the consumer's confirm what was sent before them, with Immediate Data as with
// Sends; while they are outstanding nothing is asked for that they will tell.
func TestConfirmedByRead(t *testing.T) {
	p := initiator(t, confirming)
	sink := p.region(make([]byte, 3), memory.LocalWrite)
	p.window = 0
	p.post(SendWork{ID: 1, Op: OpImmediate, Immediate: 7})
	p.window = -1
	p.post(work(2, OpRead, all(sink, 3)))
	reading := rdmap.ReadRequest{SinkSTag: sink.STag(), SinkTO: sink.Base(), Size: 3}
	p.want(immediate(1, 7), request(1, reading))
	p.wantNothing()
	p.post(work(3, OpSend))
	p.want(send(2, nil), question(2))
	p.noCompletion()
	p.send(response(sink.STag(), sink.Base(), numbered(3)))
	p.completion(success(1, OpImmediate, 0), success(2, OpRead, 3))
	p.post(add(4, 1))
	p.want(added(3, 1, 1))
	p.post(work(5, OpSend))
	p.want(send(3, nil))
	p.wantNothing() // one question at a time
	p.send(answer)
	p.completion(success(3, OpSend, 0))
	p.want(question(4))
	p.send(atomicResponse(1, 1, 0))
	p.completion(fetched(4, OpFetchAdd, 0))
	p.send(answer)
	p.completion(success(5, OpSend, 0))
}

// An Atomic Operation alone tells of what was sent before it.
func TestConfirmedByAtomic(t *testing.T) {
	p := initiator(t, confirming)
	p.window = 0
	p.post(work(1, OpSend))
	p.window = -1
	p.post(add(2, 1))
	p.want(send(1, nil), added(1, 1, 1))
	p.wantNothing()
	p.send(atomicResponse(1, 1, 0))
	p.completion(success(1, OpSend, 0), fetched(2, OpFetchAdd, 0))
}

// What is sent without end is asked for in the middle, before a message that is longer than the bound is.
func TestConfirmBytes(t *testing.T) {
	p := initiator(t, confirming)
	r := p.region(numbered(confirmBytes), memory.LocalWrite)
	p.window = 0
	for id := range uint64(3) {
		p.post(work(id, OpSend, all(r, confirmBytes)))
	}
	p.window = -1
	var order []rdmap.Opcode
	for f, ok := p.next(); ok; f, ok = p.next() {
		if f.H.Last {
			order = append(order, rdmap.OpcodeOf(&f.H))
		}
	}
	if want := []rdmap.Opcode{rdmap.OpSend, rdmap.OpReadRequest, rdmap.OpSend,
		rdmap.OpSend}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}

// A Send Queue that is never empty is asked for all the same.
func TestConfirmMany(t *testing.T) {
	p := initiator(t, confirming, func(s *setup) { s.SendDepth = 200 })
	p.window = 0
	for id := range uint64(150) {
		p.post(work(id, OpSend))
	}
	p.window = -1
	p.collectOutputs()
	asked := p.untilQuestion()
	if p.send(answer); len(p.done) != asked {
		t.Errorf("%d completions of %d", len(p.done), asked)
	}
	for p.Machine.Pending() || len(p.done) < 150 {
		asked += p.untilQuestion()
		if p.send(answer); len(p.done) != asked {
			t.Fatalf("%d completions of %d", len(p.done), asked)
		}
	}
	for i, c := range p.done {
		if c != success(uint64(i), OpSend, 0) {
			t.Errorf("%d: %+v", i, c)
		}
	}
}

// untilQuestion counts the Sends before the next empty Read, and takes what was sent after it back to be looked at.
func (p *peer) untilQuestion() (sends int) {
	for {
		f, ok := p.next()
		if !ok {
			p.Fatal("nothing is asked")
		}
		if rdmap.OpcodeOf(&f.H) == rdmap.OpReadRequest {
			return sends
		}
		sends++
	}
}

// What was refused fails by itself: what the peer had carried out before has succeeded, and what came after is flushed.
func TestConfirmRefused(t *testing.T) {
	three := write(5, 100, numbered(3))
	far := write(5, 5000, numbered(1))
	for _, tt := range []struct {
		about  fpdu
		status []Status
	}{
		{terminateFor(rdmap.CodeDDPBaseOrBounds, three), []Status{StatusSuccess, StatusRemoteAccess, StatusFlushed}},
		{terminateFor(rdmap.CodeDDPInvalidMSNNoBuffer, send(1, nil)),
			[]Status{StatusRemoteOperation, StatusFlushed, StatusFlushed}},
		{terminateFor(rdmap.CodeDDPInvalidMSNNoBuffer, send(2, nil)),
			[]Status{StatusSuccess, StatusSuccess, StatusRemoteOperation}},
		{terminateFor(rdmap.CodeDDPInvalidSTag, write(5, 102, numbered(1))),
			[]Status{StatusSuccess, StatusRemoteAccess, StatusFlushed}},
		{terminateFor(rdmap.CodeDDPInvalidSTag, write(5, 103, numbered(1))),
			[]Status{StatusFlushed, StatusFlushed, StatusFlushed}},
		{terminateFor(rdmap.CodeDDPInvalidSTag, far), []Status{StatusFlushed, StatusFlushed, StatusFlushed}},
		{terminate(rdmap.CodeLocalCatastrophic), []Status{StatusRemoteOperation, StatusFlushed, StatusFlushed}},
	} {
		p := initiator(t, confirming)
		p.post(work(1, OpSend))
		p.post(writing(2, 3))
		p.post(work(3, OpSend))
		p.output()
		p.send(tt.about)
		for i, c := range p.done {
			if c.Status != tt.status[i] || c.ID != uint64(i+1) {
				t.Errorf("%v: %+v, want %v", tt.about.Payload, c, tt.status[i])
			}
		}
		if len(p.done) != 3 {
			t.Errorf("%d completions", len(p.done))
		}
	}
}

// So it is where the end of the peer's half is there before the LLP has taken what came after.
func TestConfirmRefusedEnded(t *testing.T) {
	p := initiator(t, confirming)
	p.post(work(1, OpSend))
	p.want(send(1, nil), question(1))
	p.post(work(2, OpSend))
	p.post(work(3, OpSend)) // for which nobody is asked yet
	var n int
	for _, data := range p.Machine.Output(p.clock, p.g) {
		n += len(data)
	}
	p.send(terminateFor(rdmap.CodeDDPInvalidMSNNoBuffer, send(2, nil)))
	p.fin()
	p.Machine.Sent(p.clock, p.g, n)
	p.collectOutputs()
	p.completion(success(1, OpSend, 0), failed(2, OpSend, StatusRemoteOperation), flushed(3, OpSend))
}

// Also of a Send that is not sent whole yet.
func TestConfirmRefusedLong(t *testing.T) {
	p := initiator(t, confirming)
	r := p.region(numbered(200_000), memory.LocalWrite)
	p.window = 3000
	p.post(work(1, OpSend, all(r, 200_000)))
	first, _ := p.next()
	p.send(terminateFor(rdmap.CodeDDPMessageTooLong, first))
	p.window = -1
	p.collectOutputs()
	p.output()
	p.completion(failed(1, OpSend, StatusRemoteOperation))
}

// A Read that is refused tells what was carried out before it.
func TestConfirmRefusedRead(t *testing.T) {
	p := initiator(t, confirming)
	sink := p.region(make([]byte, 3), memory.LocalWrite)
	p.window = 0
	p.post(work(1, OpSend))
	p.post(work(2, OpRead, all(sink, 3)))
	p.post(work(3, OpSend))
	p.window = -1
	p.want(send(1, nil))
	read, _ := p.next()
	p.output()
	p.send(terminateFor(rdmap.CodeAccessRights, read))
	p.completion(success(1, OpSend, 0), failed(2, OpRead, StatusRemoteAccess), flushed(3, OpSend))
}

// The right to invalidate that the peer has not given is the Send's own failure.
func TestConfirmInvalidate(t *testing.T) {
	p := initiator(t, confirming)
	p.post(SendWork{ID: 1, Op: OpSend, HasInvalidate: true, Invalidate: 9})
	p.output()
	p.send(terminateFor(rdmap.CodeInvalidSTag, sendAs(rdmap.OpSendInvalidate, 1, 9, nil)))
	p.completion(failed(1, OpSend, StatusRemoteAccess))
}

// A local operation with a fence waits for what the peer confirms, and is asked for.
func TestConfirmFence(t *testing.T) {
	p := initiator(t, confirming)
	r := p.region(numbered(3), memory.LocalWrite)
	p.post(work(1, OpSend))
	p.post(SendWork{ID: 2, Op: OpLocalInvalidate, Target: r, Fence: true})
	p.want(send(1, nil), question(1))
	p.noCompletion()
	p.send(answer)
	p.wantNothing()
	p.completion(success(1, OpSend, 0), success(2, OpLocalInvalidate, 0))
}

// Where no Reads may be sent, requests complete as without confirmations.
func TestConfirmORD(t *testing.T) {
	p := initiator(t, confirming, func(s *setup) { s.ORD = 0 })
	p.post(work(1, OpSend))
	p.want(send(1, nil))
	p.completion(success(1, OpSend, 0))
	p.wantNothing()
}

// A peer that closes without having answered has not confirmed, and the connection ends in order all the same; after
// its FIN nobody can.
func TestConfirmPeerCloses(t *testing.T) {
	p := initiator(t, confirming)
	p.post(work(1, OpSend))
	p.want(send(1, nil), question(1))
	p.window = 0
	p.post(work(2, OpSend)) // for which nobody is asked
	p.window = -1
	p.fin()
	p.want(send(2, nil))
	p.wantNothing()
	p.completion(flushed(1, OpSend), flushed(2, OpSend)) // though it was sent: nothing succeeds after what has failed
	p.wantLLP(Drop)
	p.wantState(Idle)

	p = initiator(t, confirming)
	sink := p.region(make([]byte, 3), memory.LocalWrite)
	p.post(work(1, OpSend))
	p.post(work(2, OpRead, all(sink, 3))) // of the consumer's, which a peer is not to leave unanswered
	p.output()
	p.fin()
	p.wantCause(rdmap.CodeCatastrophicStream, false)
	p.next()
	p.completion(flushed(1, OpSend), flushed(2, OpRead))

	p = initiator(t, confirming, func(s *setup) { s.HalfClose = true })
	p.fin()
	p.post(work(1, OpSend))
	p.want(send(1, nil))
	p.completion(success(1, OpSend, 0))
	p.wantNothing()
}

// A close waits for the confirmation of what was posted before.
func TestConfirmClose(t *testing.T) {
	p := initiator(t, confirming)
	p.post(work(1, OpSend))
	p.closeOrderly()
	p.want(send(1, nil), question(1))
	p.wantLLP()
	p.send(answer)
	p.completion(success(1, OpSend, 0))
	p.wantLLP(Finish)
}

// Whatever is posted, and however bytes travel, no request completes before the peer has carried it out, and all do.
func TestConfirmAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := func(n int) int { return rapid.IntRange(1, n).Draw(t, "piece") }
		p := newPair(t, markers(rapid.Bool().Draw(t, "ab"), rapid.Bool().Draw(t, "ba")),
			both(confirming), both(func(s *setup) {
				s.ORD = rapid.IntRange(1, 3).Draw(t, "ORD")
				s.IRD = 4
			}))
		p.ab.piece, p.ba.piece = piece, piece
		there := make([]byte, 4000)
		target := p.b.region(there, remoteAll)
		posted, carried, sends := 0, 0, 0
		check := func() {
			for ; carried < len(p.a.done); carried++ {
				c := p.a.done[carried]
				if c.Status != StatusSuccess || c.ID != uint64(carried) {
					t.Fatalf("completion %d: %+v", carried, c)
				}
				if c.Op == OpWrite && there[carried] != byte(carried+1) {
					t.Fatalf("Write %d is not in place", carried)
				}
				if c.Op == OpSend {
					if sends++; sends > len(p.b.done) {
						t.Fatalf("Send %d is not received", carried)
					}
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				if p.a.Machine.PostSend(&SendWork{ID: uint64(posted), Op: OpWrite, Inline: []byte{byte(posted + 1)},
					RemoteSTag: target.STag(), RemoteTO: uint64(posted)}) == nil {
					posted++
				}
			case 1:
				if w := (RecvWork{ID: uint64(posted)}); p.b.Machine.PostReceive(&w) == nil &&
					p.a.Machine.PostSend(&SendWork{ID: uint64(posted), Op: OpSend}) == nil {
					posted++
				}
			case 2:
				if p.a.Machine.PostSend(&SendWork{ID: uint64(posted), Op: OpRead, RemoteSTag: target.STag()}) == nil {
					posted++
				}
			default:
				p.step()
				check()
			}
		}
		for p.step() {
			check()
		}
		if check(); carried != posted {
			t.Fatalf("%d completions of %d", carried, posted)
		}
	})
}
