package engine

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// p2p makes a connection peer-to-peer, with an RTR indication or a set of them.
func p2p(kinds mpa.RTR) func(*setup) {
	return func(s *setup) { s.PeerToPeer, s.Negotiated.RTR = true, kinds }
}

func depths(ird, ord int) func(*setup) { return func(s *setup) { s.IRD, s.ORD = ird, ord } }

// indications are the RTR messages as an Initiator sends them.
var indications = map[mpa.RTR]fpdu{
	mpa.RTRWrite: write(rtrSTag, 0, nil),
	mpa.RTRSend:  send(1, nil),
	mpa.RTRRead:  request(1, rdmap.ReadRequest{SinkSTag: rtrSTag, SrcSTag: rtrSTag}),
}

// Proves E09: the Initiator's RTR indication goes before all that was posted, also in
// Idle, and completes nothing; it works with depths of zero. Later Sends and
// Reads count on from it.
func TestInitiatorSendsRTR(t *testing.T) {
	for kind, first := range indications {
		for depth := range 3 {
			s := newSetup(mpa.RoleInitiator)
			p2p(kind)(s)
			depths(depth, depth)(s)
			p := &peer{clock: epoch}
			p.host = newHost(t, &p.clock, s)
			p.post(work(1, OpSend))
			p.start(s)
			p.want(first)
			n := uint32(1)
			if kind == mpa.RTRSend {
				n = 2
			}
			p.want(send(n, nil))
			p.wantNothing()
			if kind == mpa.RTRRead {
				p.send(response(rtrSTag, 0, nil))
			}
			p.completion(success(1, OpSend, 0))
			p.noCompletion()
			p.wantState(RTS)
		}
	}
}

// Without peer-to-peer the Initiator's first message serves as indication.
//
// Proves E12: whether there is an explicit RTR is a choice.
func TestNoRTR(t *testing.T) {
	p := initiator(t, func(s *setup) { s.Negotiated.RTR = mpa.RTRWrite })
	p.wantNothing()
	p.post(work(1, OpSend))
	p.want(send(1, nil))
	r := responder(t, func(s *setup) { s.Negotiated.RTR = mpa.RTRWrite })
	r.receive(1)
	r.send(send(1, nil))
	r.completion(success(1, OpReceive, 0))
	if r.Machine.Stats().Odd.NotRTR != 0 {
		t.Error("counted")
	}
}

// Proves E09: a Responder's consumer sees nothing of the indication: no receive is
// used, nothing completes; it lets the Responder send, with any depths.
func TestResponderTakesRTR(t *testing.T) {
	for kind, first := range indications {
		for depth := range 2 {
			p := responder(t, p2p(mpa.RTRWrite|mpa.RTRRead|mpa.RTRSend), depths(depth, depth))
			p.post(work(1, OpSend))
			p.receive(2)
			p.wantNothing()
			p.send(first)
			if kind == mpa.RTRRead {
				got, _ := p.next()
				other, _ := p.next()
				if rdmap.OpcodeOf(&got.H)+rdmap.OpcodeOf(&other.H) != rdmap.OpSend+rdmap.OpReadResponse {
					t.Errorf("%v, %v", got.H, other.H)
				}
			} else {
				p.want(send(1, nil))
			}
			p.wantNothing()
			p.completion(success(1, OpSend, 0))
			p.noCompletion()
			n := uint32(1)
			if kind == mpa.RTRSend {
				n = 2
			}
			p.send(send(n, nil))
			p.completion(success(2, OpReceive, 0))
			if p.Machine.Stats().Odd != (Oddities{Empty: p.Machine.Stats().Odd.Empty}) {
				t.Errorf("%+v", p.Machine.Stats().Odd)
			}
		}
	}
}

// The RTR Read stands at the front of the outstanding Reads: the consumer's wait
// after it for their turn and their responses.
func TestHiddenReadInFront(t *testing.T) {
	p := initiator(t, p2p(mpa.RTRRead), depths(1, 1))
	buf := make([]byte, 8)
	r := p.region(buf, memory.LocalWrite)
	p.post(work(1, OpRead, all(r, 8)))
	p.want(indications[mpa.RTRRead])
	p.wantNothing() // ORD 1
	p.send(response(9, 9, nil))
	p.want(request(2, rdmap.ReadRequest{SinkSTag: r.STag(), Size: 8}))
	p.send(response(r.STag(), 0, []byte("abcdefgh")))
	p.completion(success(1, OpRead, 8))
	p.noCompletion()

	p = initiator(t, p2p(mpa.RTRRead), depths(1, 2))
	r = p.region(buf, memory.LocalWrite)
	p.post(work(1, OpRead, all(r, 8)))
	p.want(indications[mpa.RTRRead], request(2, rdmap.ReadRequest{SinkSTag: r.STag(), Size: 8}))
	bad := response(r.STag(), 0, []byte("abcdefgh")) // that of the RTR is missing
	p.send(bad)
	p.wantTerminate(terminateFor(0x1100, bad))
	p.completion(flushed(1, OpRead))
}

// A consumer's Read with ORD 0 is refused, the RTR Read is not.
func TestHiddenReadWithoutORD(t *testing.T) {
	p := initiator(t, p2p(mpa.RTRRead), depths(0, 0))
	if w := work(1, OpRead); p.Machine.PostSend(&w) != ErrNoReads {
		t.Error("a Read is taken")
	}
	p.want(indications[mpa.RTRRead])
	p.wantNothing()
}

// A close waits for the response to the RTR Read; and if the peer closes without it,
// that is an error.
func TestCloseWaitsForHiddenRead(t *testing.T) {
	for state, begin := range map[State]func(p *peer){
		RTS:     func(p *peer) { p.closeOrderly() },
		Closing: func(p *peer) { p.modify(Closing) },
	} {
		p := initiator(t, p2p(mpa.RTRRead))
		begin(p)
		p.want(indications[mpa.RTRRead])
		p.wantNothing()
		p.wantState(RTS)
		p.send(response(1, 0, nil))
		p.wantEnd(state, Finish)
		p.wantState(Idle)

		p = initiator(t, p2p(mpa.RTRRead))
		begin(p)
		p.want(indications[mpa.RTRRead])
		p.fin()
		p.want(terminate(rdmap.CodeCatastrophicStream))
	}
}

// A Responder that closes at once waits for the indication that the peer owes it.
func TestCloseWaitsForRTR(t *testing.T) {
	for kind, first := range indications {
		p := responder(t, p2p(kind))
		p.closeOrderly()
		p.wantNothing()
		p.wantState(RTS)
		p.send(first)
		if kind == mpa.RTRRead {
			p.want(response(rtrSTag, 0, nil))
		}
		p.wantEnd(RTS, Finish)
		p.wantState(Idle)
	}
	p := responder(t, p2p(mpa.RTRWrite))
	p.closeOrderly()
	p.fin() // it will not come
	p.wantState(Idle)
}

// A first message that is not the indication: tolerated, and counted, or refused.
//
// Proves Z30: what is tolerated is counted.
func TestNotTheRTR(t *testing.T) {
	for name, f := range map[string]fpdu{
		"Send with bytes":           send(1, []byte("a")),
		"empty Send, not agreed on": send(1, nil),
		"Read, not agreed on":       request(1, rdmap.ReadRequest{}),
		"Write with bytes":          write(1, 0, []byte("a")),
	} {
		t.Run(name, func(t *testing.T) {
			tolerant := responder(t, p2p(mpa.RTRWrite))
			r := tolerant.region(make([]byte, 8), memory.RemoteWrite)
			if name == "Write with bytes" {
				f.H.STag = r.STag()
			}
			tolerant.receive(1, all(r, 8))
			tolerant.send(f)
			tolerant.wantState(RTS)
			if tolerant.Machine.Stats().Odd.NotRTR != 1 {
				t.Error("not counted")
			}
			if rdmap.OpcodeOf(&f.H) == rdmap.OpSend {
				tolerant.completion(success(1, OpReceive, len(f.Payload)))
			}
			strict := responder(t, p2p(mpa.RTRWrite), func(s *setup) { s.StrictRTR = true })
			strict.receive(1)
			strict.send(f)
			strict.wantTerminate(terminate(rdmap.CodeMPANoMatchingRTR))
			strict.completion(flushed(1, OpReceive))
		})
	}
}

// An Initiator that cannot use the connection sends a Terminate in place of its RTR
// indication. That is surfaced, and not answered with another, however strict the
// Responder is.
//
// Proves E10, P36.
func TestTerminateForRTR(t *testing.T) {
	for _, code := range []rdmap.Code{rdmap.CodeMPANoMatchingRTR, 0x2006, 0x0000} {
		for _, strict := range []bool{false, true} {
			p := responder(t, p2p(mpa.RTRWrite), func(s *setup) { s.StrictRTR = strict })
			p.receive(1)
			p.send(terminate(code))
			p.wantState(Terminate)
			p.wantNotices(NoticeTerminateReceived)
			p.wantCause(code, true)
			p.completion(flushed(1, OpReceive))
			p.wantEndSilently()
			if p.Machine.Stats().Odd.NotRTR != 0 {
				t.Error("counted as another message than the RTR indication")
			}
		}
	}
}

// An RTR Send that is out of order is an error like any other.
func TestBadHiddenSend(t *testing.T) {
	p := responder(t, p2p(mpa.RTRSend))
	p.send(send(2, nil))
	p.wantTerminate(terminateFor(0x1203, send(2, nil)))
}

// Some RNICs open with a zero-length Read that nobody agreed on, in revision 1 too:
// it is answered even with an IRD of zero. The next is not.
func TestUnagreedHiddenRead(t *testing.T) {
	p := responder(t, depths(0, 0))
	p.send(indications[mpa.RTRRead])
	p.want(response(rtrSTag, 0, nil))
	bad := request(2, rdmap.ReadRequest{})
	p.send(bad)
	p.wantTerminate(terminateFor(0x1203, bad))

	p = responder(t, depths(0, 0))
	bad = request(1, rdmap.ReadRequest{Size: 1})
	p.send(bad)
	p.wantTerminate(terminateFor(0x1203, bad))
}

// A Responder that sends before it can have heard anything is tolerated, as siw
// does it, or refused.
func TestResponderTooEarly(t *testing.T) {
	p := initiator(t)
	p.receive(1)
	p.send(send(1, nil))
	p.completion(success(1, OpReceive, 0))
	if p.Machine.Stats().Odd.Early != 1 {
		t.Error("not counted")
	}
	strict := func(s *setup) { s.StrictRTR = true }
	p = initiator(t, strict)
	p.receive(1)
	p.send(send(1, nil))
	p.wantTerminate(terminateFor(0x0207, send(1, nil)))

	p = initiator(t, strict, p2p(mpa.RTRWrite))
	p.receive(1)
	p.want(indications[mpa.RTRWrite])
	p.send(send(1, nil))
	p.completion(success(1, OpReceive, 0))
}

// Proves E10, E11: when the startup frames do not allow the connection, or
// something fails here, the only thing sent is a Terminate of MPA with the code for it.
func TestFailedEstablishment(t *testing.T) {
	for _, code := range []mpa.Code{mpa.CodeLocalCatastrophic, mpa.CodeInsufficientIRD, mpa.CodeNoMatchingRTR} {
		s := newSetup(mpa.RoleInitiator)
		p2p(mpa.RTRWrite)(s)
		s.TerminateCode = code
		p := &peer{clock: epoch}
		p.host = newHost(t, &p.clock, s)
		p.post(work(1, OpSend))
		p.receive(2)
		p.start(s)
		p.wantState(Terminate)
		p.wantTerminate(terminate(rdmap.Code(0x2000 + uint16(code))))
		p.completion(flushed(1, OpSend), flushed(2, OpReceive))
		p.wantCause(rdmap.Code(0x2000+uint16(code)), false)
		p.wantState(Error)
	}
}
