package probe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// askFPDU brings a connection up to its first FPDUs: it reads zero bytes, which
// is an RTR indication in the peer-to-peer model and harmless in every other, and
// looks at the answer. Then it does so with the FPDU glued to the Request.
func (p *prober) askFPDU() error {
	f, e, ok := p.base()
	if !ok {
		return nil
	}
	if e != nil && e.A {
		e.B, e.C, e.D = false, false, true
	}
	r := p.report
	if f.M = r.Bits.Markers != nil && r.Bits.Markers.Outcome == Accepted; f.M {
		_, a, err := p.askNothing("a zero-length Read, with markers", p.request(f, e))
		if err != nil {
			return err
		}
		r.FirstFPDUs.Markers = a
	}
	f.M = false
	plain, a, err := p.askNothing("a zero-length Read", p.request(f, e))
	r.FirstFPDUs.Plain = a
	if err != nil || !plain.replied() || plain.reply.M() || plain.reply.Rev() == 0 {
		return err // whose FPDU would have to look different, which only the Reply tells
	}
	return p.askGlued(p.request(f, e))
}

// askNothing makes a connection with a Request, and reads zero bytes. The answer is nil if it does not come to that.
func (p *prober) askNothing(name string, frame []byte) (q *Question, a *FPDUAnswer, err error) {
	q, err = p.converse(name, func(l *line, q *Question) { a = l.readNothing(q) }, frame)
	if q == nil {
		return nil, nil, err
	}
	return q, a, nil
}

// askGlued sends an FPDU together with the Request, before there is a Reply.
func (p *prober) askGlued(frame []byte) (err error) {
	early := script.NewLink(nil)
	early.Operate(script.Terms{CRC: true, Version: 1})
	frame = append(frame, early.EmptyRead()...)
	p.report.Glued, err = p.converse("an FPDU glued to the Request", func(l *line, q *Question) {
		l.Operate(script.TermsOf(mpa.RoleInitiator, q.asked, q.reply))
		_ = l.EmptyRead() // whose place in the stream is taken
		if q.Then = l.fate(l.timeout); q.Then == SentFirst {
			q.Then = Answered
		}
	}, frame)
	return err
}

// An FPDUAnswer is what came back for a zero-length Read.
type FPDUAnswer struct {
	Outcome Outcome `json:"outcome"`
	Answer  string  `json:"answer,omitempty"`
	Markers bool    `json:"markers"`         // a marker stood in front
	CRC     string  `json:"crc,omitempty"`   // "right", "zero" or "wrong"
	Version uint8   `json:"ddp_version"`     // of DDP
	First   bool    `json:"peer_sent_first"` // before it got our FPDU
}

// readNothing sends the Read Request and looks at the first FPDU that comes back.
func (l *line) readNothing(q *Question) *FPDUAnswer {
	terms := script.TermsOf(mpa.RoleInitiator, q.asked, q.reply)
	l.Operate(terms)
	a := &FPDUAnswer{First: l.fate(settle) == SentFirst}
	until := time.Now().Add(l.timeout)
	_ = l.Conn().SetWriteDeadline(until)
	if err := l.Send(l.EmptyRead()); err != nil {
		a.Outcome = ending(script.EndOf(err), Silent)
	} else {
		l.readFPDU(a, terms.MarkersReceive, until)
	}
	q.Then = a.Outcome
	return a
}

// readFPDU reads one FPDU, whose CRC is looked at and not demanded.
func (l *line) readFPDU(a *FPDUAnswer, markers bool, until time.Time) {
	rd := mpa.NewReader(markers, false)
	for {
		in := l.Received()
		f, n, err := rd.Next(bytes.Clone(in))
		switch {
		case err != nil:
			a.fail(err)
			return
		case n > 0:
			a.judge(f, in[:n], markers)
			return
		}
		if l.Receive(until) != nil || len(l.Received()) == len(in) {
			a.Outcome = ending(l.End(), Silent)
			return
		}
	}
}

func (a *FPDUAnswer) fail(err error) {
	a.Outcome, a.Answer = BrokenFPDU, err.Error()
	var e *mpa.Error
	if errors.As(err, &e) && e.Code == mpa.CodeMarker {
		a.Outcome = NoMarker
	}
}

// judge says what an FPDU of some bytes on the wire is.
func (a *FPDUAnswer) judge(f mpa.FPDU, wire []byte, markers bool) {
	a.Markers = markers
	a.CRC = crcState(wire)
	s, err := ddp.Parse(f.ULPDU)
	if err != nil {
		a.Outcome, a.Answer = BrokenSegment, err.Error()
		return
	}
	a.Version, a.Answer = s.Version, fmt.Sprintf("%v %v", rdmap.OpcodeOf(&s.Header), s.Header)
	switch rdmap.OpcodeOf(&s.Header) {
	case rdmap.OpReadResponse:
		a.Outcome = Response
	case rdmap.OpTerminate:
		a.Outcome = Terminated
	default:
		a.Outcome = OtherMessage
	}
}

// crcState compares the CRC field, the last four bytes.
func crcState(wire []byte) string {
	n := len(wire) - 4
	field := wire[n:]
	switch {
	case string(layout.AppendCRC(nil, layout.CRC32C(0, wire[:n]))) == string(field):
		return "right"
	case binary.BigEndian.Uint32(field) == 0:
		return "zero"
	}
	return "wrong"
}

// askPatience finds out how long the peer waits for a Request, if that is wanted.
func (p *prober) askPatience() error {
	if !p.cfg.Slow {
		return nil
	}
	patient := *p
	patient.cfg.Timeout, patient.cfg.GiveUp = max(SlowTimeout, p.cfg.Timeout), -1
	q, err := patient.converse("no Request", nil)
	if err == nil {
		p.report.NoRequest = q
	}
	return err
}
