package probe

import (
	"bytes"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// Extensions says whether the peer knows the messages of RFC 7306, if Config.Extensions asks
// for it: the answers by the keys of the messages. That of unknown_opcode is to an opcode that does not exist: what the
// others are compared with.
type Extensions map[string]*ExtensionAnswer

// Knowledge is what an answer tells: whether the peer knows the message.
type Knowledge string

// What a peer may know.
const (
	Knows       Knowledge = "known"
	KnowsNot    Knowledge = "not known"
	KnowsUnsure Knowledge = "not clear"
)

// An ExtensionAnswer is what came back.
type ExtensionAnswer struct {
	Knows   Knowledge `json:"knows,omitempty"`
	Outcome Outcome   `json:"outcome"`
	Answer  string    `json:"answer,omitempty"` // the message that came back, in words

	op   rdmap.Opcode // of the message
	code rdmap.Code   // of a Terminate
}

// noOpcode is one that no document has: they give the lower ones first.
const noOpcode rdmap.Opcode = 0xf

// An extension is a message of RFC 7306 that is asked for.
type extension struct {
	label    string // of its line
	question string
	op       rdmap.Opcode
	payload  []byte
	key      string                                 // of the answer: nobody has to take the message
	known    func(a, unknown *ExtensionAnswer) bool // whether the answer is that of a peer that knows the message
}

// extensions are the messages, in the order in which they are asked for.
func extensions() []extension {
	add := rdmap.FetchAdd(0, 0)
	return []extension{
		{
			"Atomic Operations", "RFC 7306: FetchAdd of 0 at STag 0", rdmap.OpAtomicRequest, add.Append(nil),
			"atomics",
			func(a, _ *ExtensionAnswer) bool {
				return a.code.Layer() == rdmap.LayerRDMAP && a.code.EType() == rdmap.ETypeRemoteProtection ||
					a.op == rdmap.OpAtomicResponse
			},
		},
		{
			"Immediate Data", "RFC 7306: Immediate Data out of turn", rdmap.OpImmediateData,
			make([]byte, rdmap.ImmediateDataLen),
			"immediate_data",
			// Who looks at the MSN before the opcode says the same of both.
			func(a, unknown *ExtensionAnswer) bool {
				return (a.code == rdmap.CodeDDPInvalidMSNNoBuffer ||
					a.code == rdmap.CodeDDPInvalidMSNRange) && a.code != unknown.code
			},
		},
	}
}

// farMSN is how far an MSN is from its turn.
const farMSN = 1000

// askExtensions finds out by errors what the peer knows of RFC 7306, if that is wanted. Each
// question ends its connection.
//
// RFC 7306, section 1.1: "the new operations can be attempted, and reported errors can be used
// to determine a remote peer's capabilities. In the case of Atomics, a FetchAdd operation with
// "Add Data" set to 0 can safely be used [...]. A Remote Operation Error or Unexpected OpCode
// error will be reported by the remote peer if there is an Immediate Data or Atomic Operation
// that is not supported".
func (p *prober) askExtensions() (err error) {
	if !p.cfg.Extensions {
		return nil
	}
	unknown, err := p.askMessage("opcode 15, which does not exist", noOpcode,
		make([]byte, rdmap.ImmediateDataLen))
	if err != nil || unknown == nil {
		return err
	}
	p.report.Extensions = Extensions{"unknown_opcode": unknown}
	for _, e := range extensions() {
		var a *ExtensionAnswer
		if a, err = p.askMessage(e.question, e.op, e.payload); err != nil {
			return err
		}
		if a != nil {
			a.Knows = a.tells(e.known(a, unknown))
			p.report.Extensions[e.key] = a
		}
	}
	return nil
}

// askMessage makes a connection, reads zero bytes so that it is past its startup, and sends
// one message. The answer is nil if it does not come to that.
func (p *prober) askMessage(name string, op rdmap.Opcode, payload []byte) (a *ExtensionAnswer, err error) {
	f, e, ok := p.base()
	if !ok {
		return nil, nil
	}
	if e != nil && e.A {
		e.B, e.C, e.D = false, false, true
	}
	q, err := p.converse(name, func(l *line, q *Question) { a = l.tryMessage(q, op, payload) }, p.request(f, e))
	if q == nil {
		return nil, err
	}
	return a, nil
}

// tryMessage sends the message after the answer to a zero-length Read, and looks at what comes.
func (l *line) tryMessage(q *Question, op rdmap.Opcode, payload []byte) *ExtensionAnswer {
	terms := script.TermsOf(mpa.RoleInitiator, q.asked, q.reply)
	l.Operate(terms)
	_ = l.fate(settle)
	rd := mpa.NewReader(terms.MarkersReceive, false) // siw's Terminate has no CRC
	first := l.exchange(&rd, l.EmptyRead())
	if q.Then = first.Outcome; first.Outcome != Response {
		return nil
	}
	h := l.Header(op)
	if h.QN == rdmap.QNSend {
		h.MSN += farMSN
	}
	a := l.exchange(&rd, l.Segment(h, payload))
	if q.Then = a.Outcome; a.Outcome != Silent && !a.Outcome.Refused() {
		q.Then = Answered
	}
	return &a
}

// exchange sends an FPDU, and takes the next one that comes.
func (l *line) exchange(rd *mpa.Reader, fpdu []byte) (a ExtensionAnswer) {
	until := time.Now().Add(l.timeout)
	_ = l.Conn().SetWriteDeadline(until)
	if err := l.Send(fpdu); err != nil {
		return ExtensionAnswer{Outcome: ending(script.EndOf(err), Silent)}
	}
	for {
		in := l.Received()
		f, n, err := rd.Next(bytes.Clone(in))
		switch {
		case err != nil:
			return ExtensionAnswer{Outcome: BrokenFPDU, Answer: err.Error()}
		case n > 0:
			l.Take(n)
			return extensionAnswer(f.ULPDU)
		}
		if l.Receive(until) != nil || len(l.Received()) == len(in) {
			return ExtensionAnswer{Outcome: ending(l.End(), Silent)}
		}
	}
}

func extensionAnswer(ulpdu []byte) ExtensionAnswer {
	s, err := ddp.Parse(ulpdu)
	if err != nil {
		return ExtensionAnswer{Outcome: BrokenSegment, Answer: err.Error()}
	}
	switch op := rdmap.OpcodeOf(&s.Header); op {
	case rdmap.OpReadResponse:
		return ExtensionAnswer{Outcome: Response, Answer: op.String(), op: op}
	case rdmap.OpTerminate:
		t, err := rdmap.ParseTerminate(s.Payload)
		if err != nil && len(s.Payload) < rdmap.TerminateMinLen {
			return ExtensionAnswer{Outcome: BrokenSegment, Answer: err.Error()}
		}
		// After the startup only Initiators have a use for this code: it is 0x0206, by siw, which swaps Layer and
		// EType.
		if t.Code == rdmap.CodeMPAInsufficientIRD {
			t.Code = rdmap.CodeUnexpectedOpcode
		}
		return ExtensionAnswer{Outcome: Terminated, Answer: t.Code.String(), op: op, code: t.Code}
	default:
		return ExtensionAnswer{Outcome: OtherMessage, Answer: op.String(), op: op}
	}
}

// tells is what an answer tells, where known is that of a peer that knows the message.
func (a *ExtensionAnswer) tells(known bool) Knowledge {
	switch {
	case known:
		return Knows
	case a.Outcome == Terminated && (a.code == rdmap.CodeUnexpectedOpcode ||
		a.code == rdmap.CodeRemoteOperationUnspecified):
		return KnowsNot
	}
	return KnowsUnsure
}

// extensions has a line for each.
func (s *section) extensions(x Extensions) {
	for _, e := range extensions() {
		if a := x[e.key]; a != nil {
			s.line(e.label, "%s: %s", a.Knows, a.Outcome.with(a.Answer))
		}
	}
}
