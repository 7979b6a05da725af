package conform

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A session is the dialogue of one case with the peer under test. Its methods are
// steps: they send, or wait for what the peer must do next, and record both. A step
// that the peer fails ends the case.
type session struct {
	ctx   context.Context
	opts  *Options
	c     *Case
	begun time.Time
	log   []Entry
	heard int                 // what the log keeps of the peer's, in bytes
	path  time.Duration       // the longest round trip of the case, as far as it is known
	link  *link               // current connection; nil before the first step
	assoc *script.Association // of a case over SCTP

	silent *ddpSession // the session over SCTP that has not answered, and need not
}

// link is one connection with the peer.
type link struct {
	*script.Link
	ended    bool              // its end is recorded
	refused  bool              // not all could be sent
	asking   []byte            // what we have sent since our Request began
	asked    mpa.StartupFrame  // our Request, with which we are the Initiator
	answered mpa.StartupFrame  // the peer's Reply
	received map[uint32]uint32 // messages of the peer's, by queue
	last     script.FPDU       // the peer's last
}

// outcome is the panic by which a case is left before its end.
type outcome struct {
	verdict            Verdict
	why, expected, got string
	absent             error // why there is no connection with the peer
}

// role returns the peer's role.
func (s *session) role() mpa.Role { return s.opts.Role }

// dialect returns the dialect that connections are started in.
func (s *session) dialect() mpa.Dialect { return s.opts.Dialect }

// app returns the peer's application.
func (s *session) app() App { return s.opts.App }

// note records a step.
func (s *session) note(k Kind, text string, data []byte) {
	s.log = append(s.log, Entry{At: time.Since(s.begun), Kind: k, Text: text, Bytes: bytes.Clone(data)})
	if k != Received {
		return
	}
	if s.heard += len(data) + entryCost; s.heard > maxHeard {
		s.inconclusive("the peer sends without an end")
	}
}

// noteOurEnd is note for how we end the connection.
func (s *session) noteOurEnd(text string) {
	s.note(Did, text, nil)
	s.log[len(s.log)-1].ends = true
}

// maxHeard bounds what the dialogue of a case keeps of the peer's, in bytes, and entryCost
// is what each step counts beside the bytes received.
const (
	maxHeard  = 4 << 20
	entryCost = 256
)

// notef records something worth knowing.
func (s *session) notef(format string, args ...any) { s.note(Did, fmt.Sprintf(format, args...), nil) }

// failf ends the case: the peer broke the rule. expected is what it had to do.
func (s *session) failf(expected, format string, args ...any) {
	panic(outcome{verdict: Fail, expected: expected, got: fmt.Sprintf(format, args...)})
}

// notApplicable ends the case, which does not fit the peer.
func (s *session) notApplicable(format string, args ...any) {
	panic(outcome{verdict: NotApplicable, why: fmt.Sprintf(format, args...)})
}

// inconclusive ends the case, which has not come to its rule.
func (s *session) inconclusive(format string, args ...any) {
	panic(outcome{verdict: Inconclusive, why: fmt.Sprintf(format, args...)})
}

// want fails the case if ok is false. expected is what the peer had to do, and got
// what it did.
func (s *session) want(ok bool, expected string, got any) {
	if !ok {
		s.failf(expected, "%v", got)
	}
	s.note(Checked, expected, nil)
}

// shouldNot is for what a document says that the peer SHOULD NOT do: if it does so, for which it may have its reasons,
// the case does not judge it. rule is what it keeps to otherwise.
func (s *session) shouldNot(does bool, what, rule string) {
	if does {
		s.notApplicable("the peer %s, and %s says no more than that it SHOULD NOT", what, s.c.Section)
	}
	s.note(Checked, rule, nil)
}

// reconnect leaves the connection, if there is one, and opens another. Steps open
// the first one by themselves.
func (s *session) reconnect() {
	s.hangUp()
	s.use()
}

// use returns the connection, and opens it if there is none.
func (s *session) use() *link {
	if s.ctx.Err() != nil {
		s.inconclusive("interrupted")
	}
	if s.link != nil {
		return s.link
	}
	began := time.Now()
	conn, err := s.opts.Peer.Connect(s.ctx)
	if err != nil {
		panic(outcome{verdict: Inconclusive, why: "no connection with the peer: " + err.Error(), absent: err})
	}
	if s.role() == mpa.RoleInitiator { // who comes in its own time
		began = time.Now()
	}
	s.reached(conn, time.Since(began))
	return s.over(conn)
}

func (s *session) over(conn net.Conn) *link {
	s.link = &link{Link: script.NewLink(s.recorded(conn)), received: map[uint32]uint32{}}
	s.note(Did, "connection of "+conn.LocalAddr().String()+" and "+conn.RemoteAddr().String(), nil)
	if s.opts.Streaming != nil && !s.c.Delayed {
		s.setup(s.converse)
	}
	return s.link
}

// comesAgain leaves the connection and reports whether the peer, an Initiator, opens
// another by itself, which is the session's then.
func (s *session) comesAgain() bool {
	s.hangUp()
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	conn, err := s.opts.Peer.Again(ctx)
	if err != nil {
		s.note(Saw, "no other connection: "+err.Error(), nil)
		return false
	}
	s.reached(conn, 0)
	s.over(conn)
	return true
}

// hangUp closes the connection, in a way that any peer should survive.
func (s *session) hangUp() {
	s.dissociate()
	if s.link == nil {
		return
	}
	if s.c.Unsafe == "" && s.link.answered != nil {
		s.part(s.link)
	}
	_ = s.link.Close()
	s.link = nil
}

// part sends what a peer-to-peer connection cannot be left without.
func (s *session) part(l *link) {
	for _, fpdu := range l.Parting(l.asked, l.answered) {
		time.Sleep(settling)
		s.sendOn(l, "FPDU before an orderly close", fpdu, 0, fpdu) // also after an interrupt
	}
	time.Sleep(settling)
}

// settling is how long before our first FPDU, and between others that are not part of
// the case, a peer gets to put its Reply into effect.
const settling = 50 * time.Millisecond

// send sends the pieces in one write. That the peer has closed or reset the
// connection meanwhile is for the next step to find.
func (s *session) send(text string, pieces ...[]byte) {
	data := bytes.Join(pieces, nil)
	s.sendBytes(text, data, 0, data)
}

// sendSplit sends the pieces in a TCP segment each.
func (s *session) sendSplit(text string, pieces ...[]byte) {
	s.sendBytes(fmt.Sprintf("%s (in %d pieces)", text, len(pieces)), slices.Concat(pieces...), segmentGap, pieces...)
}

// sendEach sends byte after byte in a TCP segment each.
func (s *session) sendEach(text string, data []byte) {
	s.sendBytes(text+", one by one", data, segmentGap, script.Split(data, 1)...)
}

// segmentGap keeps two writes from reaching the peer as one.
const segmentGap = 10 * time.Millisecond

func (s *session) sendBytes(text string, data []byte, gap time.Duration, pieces ...[]byte) {
	s.sendOn(s.use(), text, data, gap, pieces...)
}

// sendOn is sendBytes on a connection that is there.
func (s *session) sendOn(l *link, text string, data []byte, gap time.Duration, pieces ...[]byte) {
	s.note(Sent, fmt.Sprintf("%s, %s%s", text, wording.Bytes(len(data)), script.DescribeStartup(data)), data)
	s.write(l, data, gap, pieces...)
}

// keep keeps our Request in mind, which may be sent in parts.
func (l *link) keep(data []byte) {
	switch {
	case bytes.HasPrefix(data, []byte(mpa.KeyRequest)):
		l.asking = bytes.Clone(data)
	case len(l.asking) > 0:
		l.asking = append(l.asking, data...)
	}
	if f, err := mpa.ParseStartup(l.asking); err == nil {
		l.asked, l.asking = bytes.Clone(f), nil
	}
}

// write sends bytes, and keeps them in mind if they are of our Request.
func (s *session) write(l *link, data []byte, gap time.Duration, pieces ...[]byte) {
	l.keep(data)
	_ = l.Conn().SetWriteDeadline(s.deadline().Add(time.Duration(len(pieces)) * gap))
	if err := l.SendSplit(gap, pieces...); err != nil {
		l.refused = true
		s.note(Saw, "not all could be sent: "+err.Error(), nil)
	}
}

// deadline is until when the peer must have done what it must do next.
func (s *session) deadline() time.Time { return time.Now().Add(s.opts.Timeout) }

// closeWrite ends our half of the connection by a FIN.
func (s *session) closeWrite() {
	l := s.use()
	s.noteOurEnd("FIN")
	_ = l.CloseWrite()
}

// reset resets the connection and leaves it.
func (s *session) reset() {
	l := s.use()
	s.noteOurEnd("RST")
	_ = l.Reset()
	s.link = nil
}

// pause lets time pass.
func (s *session) pause(d time.Duration) {
	s.note(Did, fmt.Sprintf("wait %v", d), nil)
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
	}
}
