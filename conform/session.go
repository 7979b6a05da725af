package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A Session is the dialogue of one case with the peer under test. Its methods are
// steps: they send, or wait for what the peer must do next, and record both. A step
// that the peer fails ends the case.
type Session struct {
	ctx   context.Context
	opts  *Options
	c     *Case
	begun time.Time
	log   []Entry
	link  *link // current connection; nil before the first step
}

// link is one connection with the peer.
type link struct {
	conn  net.Conn
	in    []byte // received and not yet taken
	end   ending
	op    *operation       // Full Operation
	asked mpa.StartupFrame // our Request, with which we are the Initiator
	reply mpa.StartupFrame // the peer's answer
	fpdus int              // that we have sent
	heard bool             // an FPDU of the peer's
}

// ending is how the peer's half of a connection has ended.
type ending uint8

const (
	endNone ending = iota
	endFIN
	endReset
)

func (e ending) String() string {
	return [...]string{"open", "closed by FIN", "reset"}[e]
}

// outcome is the panic by which a case is left before its end.
type outcome struct {
	verdict            Verdict
	why, expected, got string
}

// Role returns the peer's role.
func (s *Session) Role() mpa.Role { return s.opts.Role }

// Dialect returns the dialect that connections are started in.
func (s *Session) Dialect() mpa.Dialect { return s.opts.Dialect }

// App returns the peer's application.
func (s *Session) App() App { return s.opts.App }

// note records a step.
func (s *Session) note(k Kind, text string, octets []byte) {
	s.log = append(s.log, Entry{At: time.Since(s.begun), Kind: k, Text: text, Octets: bytes.Clone(octets)})
}

// Notef records something worth knowing.
func (s *Session) Notef(format string, args ...any) { s.note(Did, fmt.Sprintf(format, args...), nil) }

// Failf ends the case: the peer broke the rule. expected is what it had to do.
func (s *Session) Failf(expected, format string, args ...any) {
	panic(outcome{Fail, "", expected, fmt.Sprintf(format, args...)})
}

// NotApplicable ends the case: it does not fit the peer.
func (s *Session) NotApplicable(format string, args ...any) {
	panic(outcome{verdict: NotApplicable, why: fmt.Sprintf(format, args...)})
}

// Inconclusive ends the case: it has not come to the rule.
func (s *Session) Inconclusive(format string, args ...any) {
	panic(outcome{verdict: Inconclusive, why: fmt.Sprintf(format, args...)})
}

// Want fails the case if ok is false. expected is what the peer had to do, and got
// what it did.
func (s *Session) Want(ok bool, expected string, got any) {
	if !ok {
		s.Failf(expected, "%v", got)
	}
	s.note(Checked, expected, nil)
}

// Reconnect leaves the connection, if there is one, and opens another. Steps open
// the first one by themselves.
func (s *Session) Reconnect() {
	s.hangUp()
	s.use()
}

// use returns the connection, and opens it if there is none.
func (s *Session) use() *link {
	if s.link != nil {
		return s.link
	}
	conn, err := s.opts.Peer.Connect(s.ctx)
	if err != nil {
		panic(outcome{verdict: Inconclusive, why: noConnection + err.Error()})
	}
	return s.over(conn)
}

func (s *Session) over(conn net.Conn) *link {
	s.link = &link{conn: conn}
	s.note(Did, "connection of "+conn.LocalAddr().String()+" and "+conn.RemoteAddr().String(), nil)
	return s.link
}

// ComesAgain leaves the connection and reports whether the peer, an Initiator, opens
// another by itself, which is the Session's then.
func (s *Session) ComesAgain() bool {
	s.hangUp()
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	conn, err := s.opts.Peer.Again(ctx)
	if err != nil {
		s.note(Saw, "no other connection: "+err.Error(), nil)
		return false
	}
	s.over(conn)
	return true
}

// noConnection begins the reason of a case that found nobody there.
const noConnection = "no connection with the peer: "

// hangUp closes the connection, in a way that any peer should survive.
func (s *Session) hangUp() {
	if s.link == nil {
		return
	}
	if s.c.Unsafe == "" && s.link.reply != nil {
		s.part(s.link)
	}
	_ = s.link.conn.Close()
	s.link = nil
}

// part leaves a peer-to-peer connection, on which the peer has said nothing yet, as
// Linux's siw needs it, which crashes if such a connection ends otherwise: with the
// RTR indication that the Reply waits for, even a Reply that claims to be a
// rejection, and with an FPDU more, as siw may not look at the first before.
func (s *Session) part(l *link) {
	e, enhanced := l.reply.Enhanced()
	if !enhanced || !e.A || e.RTR() == 0 || l.heard || l.end != endNone {
		return
	}
	if l.op == nil {
		s.Operate(Terms{MarkersSend: l.reply.M(), CRC: l.asked.C() || l.reply.C(), Version: 1})
	}
	if l.fpdus == 0 {
		s.sendReady("RTR indication, to part in order", e.RTR())
	}
	time.Sleep(settling)
	s.SendTagged("empty Write, to part in order", rdmap.OpWrite, rtrSTag, 0, nil)
	time.Sleep(settling)
}

// settling is how long before our first FPDU, and between others that are not part of
// the case, a peer gets to put its Reply into effect.
const settling = 50 * time.Millisecond

// Send sends the pieces in one write. That the peer has closed or reset the
// connection meanwhile is for the next step to find.
func (s *Session) Send(text string, pieces ...[]byte) {
	l := s.use()
	octets := bytes.Join(pieces, nil)
	s.note(Sent, fmt.Sprintf("%s, %s%s", text, count(len(octets)), describe(octets)), octets)
	s.write(l, octets)
}

func (s *Session) write(l *link, octets []byte) {
	if f, err := mpa.ParseStartup(octets); err == nil && f.Key() == mpa.KeyRequest {
		l.asked = bytes.Clone(f)
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(s.opts.Timeout))
	if _, err := l.conn.Write(octets); err != nil {
		s.note(Saw, "not all could be sent: "+err.Error(), nil)
	}
}

// SendSplit sends the pieces in a TCP segment each.
func (s *Session) SendSplit(text string, pieces ...[]byte) {
	for i, p := range pieces {
		if i > 0 {
			time.Sleep(segmentGap)
		}
		s.Send(fmt.Sprintf("%s (piece %d of %d)", text, i+1, len(pieces)), p)
	}
}

// segmentGap keeps two writes from reaching the peer as one.
const segmentGap = 10 * time.Millisecond

// SendOctets sends octet after octet in a TCP segment each.
func (s *Session) SendOctets(text string, octets []byte) {
	l := s.use()
	s.note(Sent, fmt.Sprintf("%s, %s, one by one%s", text, count(len(octets)), describe(octets)), octets)
	for i := range octets {
		s.write(l, octets[i:i+1])
		time.Sleep(segmentGap)
	}
}

// CloseWrite ends our half of the connection by a FIN.
func (s *Session) CloseWrite() {
	l := s.use()
	s.note(Did, "FIN", nil)
	if c, ok := l.conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
	}
}

// Reset resets the connection and leaves it.
func (s *Session) Reset() {
	l := s.use()
	s.note(Did, "RST", nil)
	if c, ok := l.conn.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = l.conn.Close()
	s.link = nil
}

// Pause lets time pass.
func (s *Session) Pause(d time.Duration) {
	s.note(Did, fmt.Sprintf("wait %v", d), nil)
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
	}
}

// more waits for octets, or the end of the connection, and reports false when the
// time is over.
func (s *Session) more(l *link, until time.Time) bool {
	if l.end != endNone {
		return true
	}
	if s.ctx.Err() != nil {
		s.Inconclusive("interrupted")
	}
	_ = l.conn.SetReadDeadline(until)
	var buf [64 << 10]byte
	n, err := l.conn.Read(buf[:])
	l.in = append(l.in, buf[:n]...)
	var timeout net.Error
	switch {
	case n > 0:
		return true
	case errors.As(err, &timeout) && timeout.Timeout():
		return false
	}
	l.end = endingOf(err)
	s.note(Saw, "the connection is "+l.end.String(), nil)
	return true
}
