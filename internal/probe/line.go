package probe

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// A Question is one connection, and what came of it.
type Question struct {
	Name    string  `json:"name"`
	Sent    string  `json:"sent,omitempty"`   // the frame, in words
	Outcome Outcome `json:"outcome"`          // of the frame
	Answer  string  `json:"answer,omitempty"` // the peer's frame, in words
	// Milliseconds until the outcome.
	Milliseconds float64 `json:"ms"`
	// Then is what became of the connection after the peer's frame, where the
	// question goes on.
	Then Outcome `json:"then,omitempty"`
	// StillThere: this question had no answer, and the control question after it had one.
	StillThere bool `json:"still_there,omitempty"`

	asked mpa.StartupFrame // if it is a Request
	reply mpa.StartupFrame // if the answer is a Reply
	start mpa.StartKey     // if it is a Start Key
	other bool             // the answer is none of MPA
	late  bool             // the answer came only after our FIN
	sent  []byte           // the frame, and FPDUs that follow it
	echo  bool             // the answer is that again, as far as it has come
}

// enhanced returns the enhanced data of the Reply.
func (q *Question) enhanced() (mpa.Enhanced, bool) {
	if q == nil || q.reply == nil {
		return mpa.Enhanced{}, false
	}
	return q.reply.Enhanced()
}

// answered returns the enhanced data of the answer, or nil.
func (q *Question) answered() *mpa.Enhanced {
	if e, ok := q.enhanced(); ok {
		return &e
	}
	return nil
}

// took is the time until the outcome.
func (q *Question) took() time.Duration {
	return report.OfMilliseconds(q.Milliseconds)
}

// replied reports whether there was a Reply of either kind.
func (q *Question) replied() bool { return q != nil && q.reply != nil }

func (q *Question) outcome() Outcome { return q.Outcome }

// isAnswered reports whether the peer has answered in frames of MPA, and has not gone silent or left after that: if so,
// it is there.
func (q *Question) isAnswered() bool {
	return (q.replied() || q.start != nil && !q.echo) && q.Then != Silent && !q.Then.Refused()
}

// heard reports whether the peer has answered an FPDU: it is past its startup.
func (q *Question) heard() bool { return q.Then == Response || q.Then == Answered }

// A line is the connection of one question.
type line struct {
	*script.Link
	timeout time.Duration
}

// pause is between the pieces of a frame, to have them in segments of their own.
const pause = 100 * time.Millisecond

// ask sends a frame, each piece of it in one write, and takes the answer.
func (l *line) ask(q *Question, pieces [][]byte) {
	start := time.Now()
	defer func() { q.Milliseconds = report.Milliseconds(time.Since(start)) }()
	q.states(slices.Concat(pieces...))
	_ = l.Conn().SetWriteDeadline(start.Add(l.timeout))
	if err := l.SendSplit(min(pause, l.timeout/2), pieces...); err != nil {
		q.Outcome = ending(script.EndOf(err), Silent)
		return
	}
	q.Outcome = l.answer(q, start.Add(l.timeout))
}

// states notes what is asked. FPDUs that follow the frame are left out.
func (q *Question) states(frame []byte) {
	q.sent = frame
	f, err := mpa.ParseStartup(frame)
	switch {
	case err == nil && f.Key() == mpa.KeyRequest:
		q.asked, q.Sent = f, f.String()
	case len(frame) > 0:
		q.Sent = mpa.DescribeStartup(frame)
	}
}

// key is that of the frame which answers.
func (q *Question) key() string {
	return wording.If(q.asked != nil, mpa.KeyReply, mpa.KeyStart)
}

// answer waits for a whole frame, something else, or an end.
func (l *line) answer(q *Question, until time.Time) Outcome {
	for {
		if outcome := l.parse(q); outcome != None {
			return outcome
		}
		had := len(l.Received())
		if l.Receive(until) == nil && len(l.Received()) > had {
			continue
		}
		if had == 0 {
			return ending(l.End(), Silent)
		}
		if part := script.Part(l.Received(), q.key()); part != "" {
			q.Answer = part + wording.If(l.End() == script.Open, "", ", and then the connection is "+l.End().String())
			return Incomplete
		}
		return l.foreign(q)
	}
}

// parse looks for a whole frame at the beginning of what was received: a Reply to a
// Request, and a Start Key to a Start Key. It returns None while that may still come.
func (l *line) parse(q *Question) Outcome {
	in := l.Received()
	n := min(len(in), mpa.KeyLen)
	switch got := string(in[:n]); {
	case q.asked != nil && strings.HasPrefix(mpa.KeyReply, got):
		f, err := mpa.ParseStartup(in)
		if err != nil {
			return None
		}
		q.reply, q.Answer = f, f.String()
		l.Take(len(f))
		if f.R() {
			return Rejected
		}
		return Accepted
	case q.asked == nil && strings.HasPrefix(got, mpa.KeyStart) && n == mpa.StartKeyLen:
		q.start = mpa.StartKey(l.Take(n))
		q.Answer, q.echo = q.start.String(), bytes.HasPrefix(q.sent, q.start)
		return Accepted
	case q.asked == nil && strings.HasPrefix(mpa.KeyStart, got):
		return None
	}
	return l.foreign(q)
}

// shown is how many bytes of a foreign answer are printed.
const shown = 32

// foreign says what was received that is no answer.
func (l *line) foreign(q *Question) Outcome {
	b := l.Received()
	q.Answer, q.echo = mpa.DescribeStartup(b), bytes.HasPrefix(q.sent, b)
	if !mpa.BeginsAsKey(b) {
		q.other = true
		q.Answer = fmt.Sprintf("%s: %+q", q.Answer, b[:min(len(b), shown)])
	}
	return Foreign
}

// settle is how long a peer is given to finish with a startup before the first FPDU, and to work on an FPDU before the
// next one or our FIN: Linux's siw crashes its kernel if the end of the connection comes while it is still at its Reply
// in the peer-to-peer model, or at the RTR indication.
const settle = 50 * time.Millisecond

// lastWait is how long the FIN of the peer is waited for at most.
const lastWait = time.Second

// leave ends the connection so that no peer comes to harm, and so that none is told of
// it by a RST. What a peer says only then may be its answer to a line that it takes for
// whole now, as a server of HTTP does.
func (l *line) leave(q *Question) {
	if q.replied() && q.asked != nil && !q.heard() {
		l.part(q)
	}
	wait := min(l.timeout, lastWait)
	if q.Outcome == Silent && l.CloseWrite() == nil {
		if l.Receive(time.Now().Add(wait)) != nil {
			wait = 0 // neither a word nor a FIN: that was the wait
		}
		if len(l.Received()) > 0 && !mpa.BeginsAsKey(l.Received()) {
			q.Outcome, q.late = l.foreign(q), true
		}
	}
	l.Leave(wait)
}

// part sends what the peer waits for before the connection may end, and gives it the time to work on each FPDU. It does
// so after an interrupt, too, by which the connection's deadlines are over.
func (l *line) part(q *Question) {
	parting := l.Parting(q.asked, q.reply)
	for _, fpdu := range parting {
		l.rest(settle)
		if l.End() != script.Open {
			return
		}
		_ = l.Conn().SetWriteDeadline(time.Now().Add(lastWait))
		_ = l.Send(fpdu)
	}
	if len(parting) > 0 {
		l.rest(settle)
	}
}

// rest lets time pass, whatever the peer sends meanwhile, unless it ends the connection.
func (l *line) rest(d time.Duration) {
	for until := time.Now().Add(d); l.End() == script.Open && time.Now().Before(until); {
		if len(l.Received()) >= script.MaxRest {
			time.Sleep(time.Until(until))
			return
		}
		_ = l.Receive(until)
	}
}

// fate says what becomes of the connection within a time, if nothing is sent.
func (l *line) fate(within time.Duration) Outcome {
	if len(l.Received()) == 0 {
		_ = l.Receive(time.Now().Add(within))
	}
	if len(l.Received()) > 0 {
		return SentFirst
	}
	return ending(l.End(), Open)
}
