package mpa_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// decision is what the responder's consumer does with a Request.
type decision uint8

const (
	accepts decision = iota
	rejects
	ignores // it never decides
)

// What the ends of a virtual connection send after the startup.
const (
	fpduOfInitiator = "FPDU of the Initiator"
	fpduOfResponder = "FPDU of the Responder"
	terminate       = "Terminate"
)

// end is one end of a virtual connection: what has been sent to the other end and
// not arrived, what has arrived and not been taken, and what became of it.
type end struct {
	m       machine
	first   string // the FPDU that it sends first
	sent    []byte
	fin     bool // sends no more
	finSeen bool // has got the other end's
	inbox   []byte
	open    bool // in Full Operation
	opened  bool // has sent its FPDU
	over    bool // closed, or MPA was left
	err     error
}

// virtual is a connection between two machines in virtual time. Every step is
// something that can happen now.
type virtual struct {
	i, r     *end
	now      time.Time
	answer   mpa.Answer
	decision decision
	decided  bool
	answered time.Time // when it has decided
	rejected bool      // by the responder's consumer
	reply    []byte    // as sent
	// insist, if not zero, is the ORD that the Reply says, whatever the responder
	// wants: other peers may do so.
	insist mpa.Depth
	wrong  error // something that machines must not do
}

func newVirtual(i *mpa.Initiator, r *mpa.Responder, answer mpa.Answer, d decision) *virtual {
	v := &virtual{
		i: &end{m: i, first: fpduOfInitiator}, r: &end{m: r, first: fpduOfResponder},
		now: epoch, answer: answer, decision: d,
	}
	r.Start(v.now)
	v.i.sent = i.Start(v.now)
	return v
}

// responder returns the Responder, or nil if there are two Initiators.
func (v *virtual) responder() *mpa.Responder {
	r, _ := v.r.m.(*mpa.Responder)
	return r
}

func (v *virtual) blame(format string, args ...any) {
	if v.wrong == nil {
		v.wrong = fmt.Errorf(format, args...)
	}
}

// steps returns what can happen now, but for the passing of time.
func (v *virtual) steps() (can []string) {
	for _, s := range []struct {
		name string
		ok   bool
	}{
		{"to initiator", len(v.r.sent) > 0}, {"to responder", len(v.i.sent) > 0},
		{"FIN to initiator", len(v.r.sent) == 0 && v.r.fin && !v.i.finSeen},
		{"FIN to responder", len(v.i.sent) == 0 && v.i.fin && !v.r.finSeen},
		{"decision", v.responder() != nil && v.responder().Request() != nil && !v.decided &&
			v.decision != ignores && !v.r.over},
	} {
		if s.ok {
			can = append(can, s.name)
		}
	}
	return can
}

// do does a step; n is the number of bytes to deliver, within bounds.
func (v *virtual) do(step string, n int) {
	switch step {
	case "to initiator":
		v.deliver(v.r, v.i, n)
	case "to responder":
		v.deliver(v.i, v.r, n)
	case "FIN to initiator":
		v.close(v.i)
	case "FIN to responder":
		v.close(v.r)
	case "decision":
		v.decide()
	}
}

func (v *virtual) deliver(from, to *end, n int) {
	n = min(max(n, 1), len(from.sent))
	to.inbox = append(to.inbox, from.sent[:n]...)
	from.sent = from.sent[n:]
	v.pump(to)
}

// pump gives an end what has arrived, and has it send what it wants to.
func (v *virtual) pump(e *end) {
	for !e.over && !e.m.Done() && len(e.inbox) > 0 && e.m.Want() > 0 {
		before := bytes.Clone(e.inbox)
		n, err := e.m.Input(v.now, e.inbox)
		if n == 0 && err == nil || !bytes.Equal(before, e.inbox) {
			v.blame("wants bytes and took %d, or changed them", n)
			return
		}
		e.inbox = e.inbox[n:]
		e.sent = append(e.sent, e.m.Output()...)
		if err != nil {
			e.fail(err)
		}
	}
	if !e.over && len(e.inbox) > 0 {
		if n, err := e.m.Input(v.now, e.inbox); n > 0 || err != nil {
			v.blame("wants nothing and took %d bytes, %v", n, err)
		}
	}
	v.operate(e)
}

func (e *end) fail(err error) { e.err, e.over, e.fin = err, true, true }

// decide has the responder's consumer decide. An answer that does not fit becomes a
// rejection with the same data, and, where there is no room for data, without.
func (v *virtual) decide() {
	v.decided, v.answered = true, v.now
	r := v.responder()
	reply, err := []byte(nil), mpa.ErrOffer
	if v.decision == accepts {
		reply, err = r.Accept(v.now, v.answer)
	}
	if v.rejected = errors.Is(err, mpa.ErrOffer); v.rejected {
		if reply, err = r.Reject(v.answer.PrivateData, 0, 0); err != nil {
			reply, err = r.Reject(nil, 0, 0)
		}
	}
	if err != nil {
		v.blame("answer: %v", err)
	}
	v.reply = bytes.Clone(reply)
	v.r.sent = append(v.r.sent, v.overstate(reply)...)
	if v.rejected {
		v.r.over, v.r.fin = true, !r.KeepsTCP()
		return
	}
	v.pump(v.r)
}

// overstate changes the ORD in an enhanced Reply.
func (v *virtual) overstate(reply []byte) []byte {
	f, err := mpa.ParseStartup(reply)
	if err != nil || v.insist == 0 || f.R() {
		return reply
	}
	e, ok := f.Enhanced()
	if !ok {
		return reply
	}
	e.ORD = v.insist
	fields := f.Fields()
	fields.PrivateData = append(mpa.AppendEnhanced(nil, &e), f.ULPData()...)
	v.reply = frame(fields)
	return bytes.Clone(v.reply)
}

// operate goes on in Full Operation, with one FPDU each way.
func (v *virtual) operate(e *end) {
	if e.over || !e.m.Done() {
		return
	}
	if i, ok := e.m.(*mpa.Initiator); ok && i.Rejected() != nil {
		e.err, e.over = i.Rejected(), true
		return
	}
	e.open = true
	n := e.m.Negotiated()
	switch {
	case n.TerminateCode != 0 && !e.opened:
		e.sent, e.over, e.fin, e.opened = append(e.sent, terminate...), true, true, true
	case !e.opened && (n.SendFirst || len(e.inbox) > 0):
		e.opened = true
		e.sent = append(e.sent, e.first...)
	}
}

// close tells an end that the other has closed the connection.
func (v *virtual) close(e *end) {
	e.finSeen = true
	if e.over || e.open && len(e.inbox) > 0 {
		return
	}
	err := e.m.PeerClosed(io.EOF)
	if err == nil {
		v.blame("no error on a close")
	}
	if again := e.m.PeerClosed(io.EOF); again != err {
		v.blame("close: %v, and again: %v", err, again)
	}
	e.fail(err)
}

// elapse lets time pass.
func (v *virtual) elapse(by time.Duration) {
	v.now = v.now.Add(by)
	for _, e := range []*end{v.i, v.r} {
		if e.over {
			continue
		}
		due := e.m.Deadline()
		err := e.m.HandleTimeout(v.now)
		if late := !due.IsZero() && !v.now.Before(due); late != (err != nil) {
			v.blame("deadline %v, now %v: %v", due, v.now, err)
		}
		if err != nil {
			e.fail(err)
		}
	}
}

// next returns the time to the next deadline, and false if nobody has one.
func (v *virtual) next() (d time.Duration, ok bool) {
	var due []time.Time
	for _, e := range []*end{v.i, v.r} {
		if t := e.m.Deadline(); !e.over && !t.IsZero() {
			due = append(due, t)
		}
	}
	if len(due) == 0 {
		return 0, false
	}
	return slices.MinFunc(due, time.Time.Compare).Sub(v.now), true
}

// run does steps until nothing can happen any more. pick chooses one of those
// possible, how many bytes it delivers, and how much time passes before it.
func (v *virtual) run(pick func(can []string) (step string, size int, elapse time.Duration)) {
	for v.wrong == nil {
		can := v.steps()
		if len(can) == 0 {
			d, ok := v.next()
			if !ok {
				return
			}
			v.elapse(max(d, 0))
			continue
		}
		step, n, elapse := pick(can)
		if elapse > 0 {
			v.elapse(elapse)
			continue
		}
		v.do(step, n)
	}
}

// runWhole delivers everything whole and at once.
func (v *virtual) runWhole() {
	v.run(func(can []string) (string, int, time.Duration) { return can[0], 1 << 20, 0 })
}

// up reports whether an end is in Full Operation and has got the other's FPDU.
func (e *end) up(want string) bool { return e.open && !e.over && string(e.inbox) == want }
