package mpa_test

import (
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// cutClasses have every startup frame of every dialect.
var cutClasses = []class{
	of("enhanced", data("ask", "answer")),
	of("enhanced, rejected", data("ask", "no"), deciding(rejects)),
	of("revision 1", dialect(rfc5044), data("ask", "answer")),
	of("revision 1, rejected", dialect(rfc5044), data("ask", "no"), deciding(rejects)),
	of("Rtr frame", dialect(rtr2007), serving(rtr2007), data("ask", "answer")),
	of("revision 0", dialect(revision0), data("ask", "answer")),
	of("revision 0, rejected", dialect(revision0), data("ask", "no"), deciding(rejects)),
	of("revision 1 answered with revision 0", dialect(rfc5044), kind(perm, rdmac)),
	of("Start Key", dialect(startKey)),
	of("messages", dialect(startKey), bothMessages, data("ask", "answer")),
}

// stream is what one end gets where nothing is cut: the bytes of its first startup frame,
// of all of them, and of what follows.
type stream struct{ first, startup, all int }

// measure lets a class come to its end, and returns what each end got.
func (c *class) measure(t *testing.T) map[string]stream {
	t.Helper()
	n := c.firstState(t)
	got := map[string]stream{}
	for steps := n.steps(); len(steps) > 0; steps = n.steps() {
		for name, e := range n.ends() {
			if s := got[name]; steps[0] == "to "+lower[name] {
				s.all += len(n.other(e).sent)
				got[name] = s
			}
		}
		n.takeStep(steps[0], 1<<20)
		if s := got["Initiator"]; steps[0] == "decision" {
			s.first = len(n.reply)
			got["Initiator"] = s
		}
	}
	for name, e := range n.ends() {
		s := got[name]
		s.startup = s.all - len(e.inbox)
		got[name] = s
	}
	s := got["Responder"]
	s.first = len(c.firstState(t).i.sent)
	got["Responder"] = s
	return got
}

var lower = map[string]string{"Initiator": "initiator", "Responder": "responder"}

// cut lets a class come to its end, with no more than some bytes to one end. After them
// comes a FIN, or nothing at all.
func (c *class) cut(t *testing.T, name string, size int, fin bool) *node {
	t.Helper()
	n := c.firstState(t)
	for n.wrong == nil {
		e := n.ends()[name]
		done := false
		for _, step := range n.steps() {
			switch {
			case step == "FIN to "+lower[name], step == "to "+lower[name] && size == 0:
				continue
			case step == "to "+lower[name]:
				taken := min(size, len(n.other(e).sent))
				size -= taken
				n.takeStep(step, taken)
			default:
				n.takeStep(step, 1<<20)
			}
			done = true
			break
		}
		if done {
			continue
		}
		if fin && !e.finSeen {
			n.close(e)
			continue
		}
		d, waits := n.virtual.next()
		if !waits {
			break
		}
		n.elapse(max(d, 0))
	}
	if n.wrong != nil {
		t.Fatalf("%s, %d bytes to the %s: %v", c.name, size, name, n.wrong)
	}
	return n
}

// TestCutAnywhere ends what one end gets at every byte, with a FIN and without: it is told
// at once, or when its time is over; the other end hears of it; what came after the startup
// is there, to the last byte.
//
// Proves Q12, Q13, Q16, E13, K07: under every dialect, in both roles.
func TestCutAnywhere(t *testing.T) {
	for k := range cutClasses {
		c := &cutClasses[k]
		for name, s := range c.measure(t) {
			for size := range s.all {
				for _, fin := range []bool{true, false} {
					n := c.cut(t, name, size, fin)
					if wrong := c.judgeCut(n, name, s, size, fin); wrong != "" {
						t.Errorf("%s, %d of %d bytes to the %s, FIN %v: %s: %v / %v",
							c.name, size, s.startup, name, fin, wrong, n.i.err, n.r.err)
					}
				}
			}
		}
	}
}

// judgeCut returns what is wrong with the end of a connection that was cut.
func (c *class) judgeCut(n *node, name string, s stream, size int, fin bool) string {
	e := n.ends()[name]
	other := n.other(e)
	left := max(size-s.startup, 0)
	switch _, rejected := e.err.(*mpa.RejectError); {
	case n.wrongNow() != "" || len(e.inbox) != left:
		return "bytes are lost: " + string(e.inbox)
	case size < s.startup && !rejected:
		if wrong := c.judgeError(e, n, s, size, fin); wrong != "" {
			return wrong
		}
	case size < s.startup && (!c.message() || size != s.first || !fin):
		return "a rejection"
	case size >= s.startup && c.decision == accepts && !e.open:
		return "not up"
	case size >= s.startup && c.decision == rejects && name == "Initiator" && !rejected:
		return "no rejection"
	}
	// With a FIN no time passes; without, a limit.
	var limit time.Duration
	if !fin && size < s.startup {
		limit = limits[name]
	}
	if took := n.now.Sub(epoch); took != limit && !(size >= s.startup && !fin) {
		return "it took " + took.String()
	}
	if !other.over && !(other.open && (other.finSeen || !e.over)) {
		return "the other end waits"
	}
	return ""
}

var limits = map[string]time.Duration{"Initiator": mpa.DefaultReplyTimeout, "Responder": mpa.DefaultRequestTimeout}

// judgeError returns what is wrong with the error of an end whose startup was cut.
func (c *class) judgeError(e *end, n *node, s stream, size int, fin bool) string {
	var err *mpa.StartupError
	want := mpa.FailureTimeout
	if fin {
		want = mpa.FailureClosed
	}
	offset := size
	if offset >= s.first {
		offset -= s.first
	}
	switch fallback := fin && size == 0 && e == n.i && c.dialect() == rfc6581; {
	case !errors.As(e.err, &err) || err.Failure != want || err.Err.Code != mpa.CodeConnectionLost:
		return "not a " + want.String()
	case err.Err.Hint == "" || err.Err.Offset != uint64(offset) || err.Fallback != fallback:
		return "another place, or other advice"
	}
	return ""
}
