package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp"
)

// lastWordWait is how long an end that is interrupted waits for the other to have read that.
const lastWordWait = time.Second

// An InterruptedError ends a measurement of which an end was interrupted: its context has ended before the measurement.
type InterruptedError struct {
	Side string // which end was: "initiator" or "responder"
}

func (e *InterruptedError) Error() string { return "perf: the " + e.Side + " was interrupted" }

// A GoneError ends a measurement whose other end has gone, and has not said that it was interrupted: it was killed, or
// its machine is gone.
type GoneError struct {
	Side  string // which end has gone: "initiator" or "responder"
	Cause error  // why its control connection ended
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("perf: the %s has gone without a word: %v", e.Side, e.Cause)
}

// Unwrap returns why the connection ended.
func (e *GoneError) Unwrap() error { return e.Cause }

// isEnd reports whether an error is how the other end has ended.
func isEnd(err error) bool {
	return errors.As(err, new(*InterruptedError)) || errors.As(err, new(*GoneError))
}

// orEnd is how a responder has ended, if one has, and else err. It may be the one that was not busy, by whose end the
// slice of the other was cut. What a responder has told, or either end has found wrong, stays.
func (m *measurement) orEnd(err error) error {
	if err == nil || errors.As(err, new(*PeerError)) || errors.As(err, new(*CorruptionError)) {
		return err
	}
	for _, s := range m.sessions() {
		if end := s.ctl.endError(); isEnd(end) {
			return end
		}
	}
	return err
}

// endError is how the control connection has ended, or nil.
func (c *control) endError() error {
	select {
	case <-c.qp.Done():
		return c.ended(context.Background(), c.qp.Err())
	default:
		return nil
	}
}

// A lastWord is the message of an end that is interrupted. It comes in any state, and has no answer.
type lastWord struct {
	Interrupted bool `json:"interrupted"`
}

// isLastWord reports whether a message is one.
func isLastWord(text []byte) bool {
	var word lastWord
	return json.Unmarshal(text, &word) == nil && word.Interrupted
}

// orInterrupted is the other end's last word, if it has come, and else err.
func (c *control) orInterrupted(err error) error {
	var wc [1]iwarp.WC
	for err != nil && !errors.As(err, new(*InterruptedError)) && c.cq.Poll(wc[:]) > 0 {
		if isLastWord(c.message(wc[0])) {
			return &InterruptedError{c.other.String()}
		}
	}
	return err
}

// message is what a completion has received, or nil.
func (c *control) message(wc iwarp.WC) []byte {
	if wc.Err() != nil || wc.Op != iwarp.OpRecv {
		return nil
	}
	return c.in[wc.ID].Bytes()[:wc.Length]
}

// leave tells the other end that this one was interrupted, and ends the session. The control connection ends in order,
// or the other end might never read the word.
func (s *session) leave() {
	if s.ctl.qp == nil {
		s.abort()
		return
	}
	word, _ := json.Marshal(lastWord{true}) // nothing of it cannot be encoded
	_ = s.ctl.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: word})
	_ = s.ctl.qp.CloseWrite() // a connection without halves is closed by the other end
	s.abort()
	select {
	case <-s.ctl.qp.Done():
	case <-time.After(lastWordWait):
		s.ctl.qp.Abort()
	}
}
