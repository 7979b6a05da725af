package probe

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// Outcome is how a peer answers a question.
type Outcome string

// The outcomes.
const (
	Accepted Outcome = "accepted" // a Reply with R=0, or a Start Key
	Rejected Outcome = "rejected" // a Reply with R=1
	Closed   Outcome = "closed"   // FIN, without a word
	Reset    Outcome = "reset"    // RST, without a word
	Silent   Outcome = "silent"   // nothing within the time
	Foreign  Outcome = "foreign"  // octets that are no startup frame
)

// Refused reports whether the peer ended the connection without a word.
func (o Outcome) Refused() bool { return o == Closed || o == Reset }

// A Question is one connection, and what came of it.
type Question struct {
	Name    string  `json:"name"`
	Sent    string  `json:"sent,omitempty"`   // the frame, in words
	Outcome Outcome `json:"outcome"`          // of the frame
	Answer  string  `json:"answer,omitempty"` // the peer's frame, in words
	// Milliseconds until the outcome.
	Milliseconds float64 `json:"ms"`
	// Then is what became of the connection after the peer's frame, where the
	// question goes on: "closed", "reset", "open", or a description.
	Then string `json:"then,omitempty"`

	asked mpa.StartupFrame // if it is a Request
	reply mpa.StartupFrame // if the answer is a Reply
	key   mpa.StartKey     // if it is a Start Key
}

// enhanced returns the Reply's enhanced data.
func (q *Question) enhanced() (mpa.Enhanced, bool) {
	if q == nil || q.reply == nil {
		return mpa.Enhanced{}, false
	}
	return q.reply.Enhanced()
}

// replied reports whether there was a Reply of either kind.
func (q *Question) replied() bool { return q != nil && q.reply != nil }

// A line is the connection of one question.
type line struct {
	conn    net.Conn
	timeout time.Duration
	buf     []byte // received and not used
	spoke   bool   // an FPDU was sent
}

// ask sends a frame, each piece of it in one write, and takes the answer.
func (l *line) ask(q *Question, pieces [][]byte) {
	start := time.Now()
	defer func() { q.Milliseconds = float64(time.Since(start).Microseconds()) / 1e3 }()
	_ = l.conn.SetDeadline(start.Add(l.timeout))
	q.states(slices.Concat(pieces...))
	for i, piece := range pieces {
		if i > 0 {
			time.Sleep(min(pause, l.timeout/2))
		}
		if _, err := l.conn.Write(piece); err != nil {
			q.Outcome = outcomeOf(err)
			return
		}
	}
	q.Outcome = l.answer(q)
}

// pause is between the pieces of a frame, to have them in segments of their own.
const pause = 100 * time.Millisecond

// states notes what is asked.
func (q *Question) states(frame []byte) {
	if len(frame) > 0 {
		q.Sent = describe(frame)
	}
	if f, err := mpa.ParseStartup(frame); err == nil && f.Key() == mpa.KeyRequest {
		q.asked = f
	}
}

// describe leaves out FPDUs behind the frame.
func describe(b []byte) string {
	if f, err := mpa.ParseStartup(b); err == nil && f.Key() == mpa.KeyRequest {
		return f.String()
	}
	return mpa.DescribeStartup(b)
}

// answer reads until there is a whole frame, something else, or an end.
func (l *line) answer(q *Question) Outcome {
	for {
		if outcome, done := l.parse(q); done {
			return outcome
		}
		if err := l.more(); err != nil {
			if len(l.buf) > 0 {
				q.Answer = mpa.DescribeStartup(l.buf)
				return Foreign
			}
			return outcomeOf(err)
		}
	}
}

// parse looks for a whole frame at the beginning of what was received: a Reply to a
// Request, and a Start Key to a Start Key.
func (l *line) parse(q *Question) (Outcome, bool) {
	n := min(len(l.buf), mpa.KeyLen)
	switch got := string(l.buf[:n]); {
	case q.asked != nil && strings.HasPrefix(mpa.KeyReply, got):
		f, err := mpa.ParseStartup(l.buf)
		if err != nil {
			return "", false
		}
		q.reply, q.Answer, l.buf = f, f.String(), l.buf[len(f):]
		if f.R() {
			return Rejected, true
		}
		return Accepted, true
	case q.asked == nil && strings.HasPrefix(got, mpa.KeyStart) && n == mpa.StartKeyLen:
		q.key = mpa.StartKey(l.buf[:n])
		q.Answer, l.buf = q.key.String(), l.buf[n:]
		return Accepted, true
	case q.asked == nil && strings.HasPrefix(mpa.KeyStart, got):
		return "", false
	}
	q.Answer = mpa.DescribeStartup(l.buf)
	return Foreign, true
}

// settle is how long a peer is given to finish with a startup before the first FPDU:
// Linux's siw crashes its kernel if that, or the end of the connection, comes while
// it is still at its Reply in the peer-to-peer model.
const settle = 50 * time.Millisecond

// lastWords is how many octets a peer may still send behind our FIN.
const lastWords = 1 << 20

// leave ends the connection so that no peer comes to harm: one that waits for an RTR
// indication gets it, and one more FPDU; then goes our FIN, and the peer's is waited
// for, as octets that nobody has read would make a RST of a close. A Reply with R=1
// may be such a one, too: siw repeats the R of a Request that it has accepted.
func (l *line) leave(q *Question) {
	if e, ok := q.enhanced(); ok && e.A && q.asked != nil && !l.spoke && l.fate(settle) == "open" {
		_ = l.conn.SetDeadline(time.Now().Add(l.timeout))
		_, _ = l.conn.Write(ready(q, e.RTR()))
	}
	if h, ok := l.conn.(interface{ CloseWrite() error }); ok && h.CloseWrite() == nil {
		_ = l.conn.SetReadDeadline(time.Now().Add(min(l.timeout, time.Second)))
		_, _ = io.CopyN(io.Discard, l.conn, lastWords)
	}
	_ = l.conn.Close()
}

// more reads what has come.
func (l *line) more() error {
	var b [4096]byte
	n, err := l.conn.Read(b[:])
	l.buf = append(l.buf, b[:n]...)
	if n > 0 {
		return nil
	}
	return err
}

// sentFirst is the fate of a connection on which the peer goes on unasked.
const sentFirst = "the peer sent first"

// fate says what becomes of the connection within a time, if nothing is sent.
func (l *line) fate(within time.Duration) string {
	_ = l.conn.SetReadDeadline(time.Now().Add(within))
	switch err := l.more(); {
	case err == nil:
		return sentFirst
	case outcomeOf(err) == Silent:
		return "open"
	default:
		return string(outcomeOf(err))
	}
}

func outcomeOf(err error) Outcome {
	switch {
	case errors.Is(err, io.EOF):
		return Closed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Silent
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return Reset
	}
	return Closed
}
