package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// stag names nothing; some RNICs refuse 0 even where it is not looked at.
const stag = 1

// askFPDU brings a connection up to its first FPDUs: it reads zero octets, which
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
		if _, err := p.converse("a zero-length Read, with markers", func(l *line, q *Question) {
			r.FirstFPDUs.Markers = l.readNothing(q, f)
		}, p.request(f, e)); err != nil {
			return err
		}
	}
	f.M = false
	plain, err := p.converse("a zero-length Read", func(l *line, q *Question) {
		r.FirstFPDUs.Plain = l.readNothing(q, f)
	}, p.request(f, e))
	if err != nil || !plain.replied() || plain.reply.M() || plain.reply.Rev() == 0 {
		return err // whose FPDU would have to look different, which only the Reply tells
	}
	return p.askGlued(p.request(f, e))
}

// askGlued sends an FPDU together with the Request, before there is a Reply.
func (p *prober) askGlued(frame []byte) (err error) {
	frame = append(frame, firstFPDU(mpa.NewWriter(false, true), 1)...)
	p.report.Glued, err = p.converse("an FPDU glued to the Request", func(l *line, q *Question) {
		q.Then, l.spoke = "answered", true
		if len(l.buf) > 0 {
			return
		}
		if fate := l.fate(l.timeout); fate != sentFirst {
			q.Then = fate
		}
	}, frame)
	return err
}

// ready returns an RTR indication of one of the kinds, and an empty Write. A peer that
// names none gets the Write.
func ready(q *Question, kinds mpa.RTR) []byte {
	w := mpa.NewWriter(q.reply.M(), q.asked.C() || q.reply.C())
	write := rdmap.OpWrite.Header(1)
	write.Last, write.STag = true, stag
	var b []byte
	switch {
	case kinds&mpa.RTRWrite != 0 || kinds == 0:
		b = w.Append(b, write.Append(nil))
	case kinds&mpa.RTRRead != 0:
		b = append(b, readRequest(&w, 1)...)
	default:
		h := rdmap.OpSend.Header(1)
		h.Last, h.MSN = true, ddp.FirstMSN
		b = w.Append(b, h.Append(nil))
	}
	return w.Append(b, write.Append(nil))
}

// firstFPDU returns a Read Request of zero octets.
func firstFPDU(w mpa.Writer, version uint8) []byte { return readRequest(&w, version) }

func readRequest(w *mpa.Writer, version uint8) []byte {
	h := rdmap.OpReadRequest.Header(version)
	h.Last, h.MSN = true, ddp.FirstMSN
	req := rdmap.ReadRequest{SinkSTag: stag, SrcSTag: stag}
	return w.Append(nil, h.Append(nil), req.Append(nil))
}

// An FPDUAnswer is what came back for a zero-length Read.
type FPDUAnswer struct {
	Outcome string `json:"outcome"` // "response", "terminate", "closed", "reset", "silent", or what is wrong
	Answer  string `json:"answer,omitempty"`
	Markers bool   `json:"markers"`         // a marker stood in front
	CRC     string `json:"crc"`             // "right", "zero" or "wrong"
	Version uint8  `json:"ddp_version"`     // of DDP
	First   bool   `json:"peer_sent_first"` // before it got our FPDU
}

// readNothing sends the Read Request and looks at the first FPDU that comes back.
func (l *line) readNothing(q *Question, ours mpa.StartupFields) *FPDUAnswer {
	a := &FPDUAnswer{}
	l.spoke = true
	a.First = len(l.buf) > 0 || l.fate(settle) == sentFirst
	version := uint8(1)
	if q.reply.Rev() == 0 {
		version = 0
	}
	crc := ours.C || q.reply.C()
	_ = l.conn.SetDeadline(time.Now().Add(l.timeout))
	if _, err := l.conn.Write(firstFPDU(mpa.NewWriter(q.reply.M(), crc), version)); err != nil {
		a.Outcome = string(outcomeOf(err))
	} else {
		l.readFPDU(a, ours.M)
	}
	q.Then = a.Outcome
	return a
}

// readFPDU reads one FPDU, whose CRC is looked at and not demanded.
func (l *line) readFPDU(a *FPDUAnswer, markers bool) {
	rd := mpa.NewReader(markers, false)
	for {
		whole := append([]byte(nil), l.buf...)
		f, n, err := rd.Next(whole)
		switch {
		case err != nil:
			a.fail(err)
			return
		case n > 0:
			a.judge(f, l.buf[:n], markers)
			return
		}
		if err := l.more(); err != nil {
			a.Outcome = string(outcomeOf(err))
			return
		}
	}
}

func (a *FPDUAnswer) fail(err error) {
	a.Outcome = "broken FPDU"
	var e *mpa.Error
	if errors.As(err, &e) && e.Code == mpa.CodeMarker {
		a.Outcome = "no marker where one was asked for"
	}
	a.Answer = err.Error()
}

// judge says what an FPDU of n octets on the wire is.
func (a *FPDUAnswer) judge(f mpa.FPDU, wire []byte, markers bool) {
	a.Markers = markers
	a.CRC = crcState(wire)
	s, err := ddp.Parse(f.ULPDU)
	if err != nil {
		a.Outcome, a.Answer = "broken DDP segment", err.Error()
		return
	}
	a.Version, a.Answer = s.Version, fmt.Sprintf("%v %v", rdmap.OpcodeOf(&s.Header), s.Header)
	switch rdmap.OpcodeOf(&s.Header) {
	case rdmap.OpReadResponse:
		a.Outcome = "response"
	case rdmap.OpTerminate:
		a.Outcome = "terminate"
	default:
		a.Outcome = "another message"
	}
}

// crcState compares the CRC field, the last four octets.
func crcState(wire []byte) string {
	n := len(wire) - 4
	field := wire[n:]
	switch {
	case string(mpa.AppendCRC(nil, mpa.CRC32C(0, wire[:n]))) == string(field):
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
	patient.cfg.Timeout = max(SlowTimeout, p.cfg.Timeout)
	q, err := patient.converse("no Request", nil)
	if err == nil {
		p.report.NoRequest = q
	}
	return err
}
