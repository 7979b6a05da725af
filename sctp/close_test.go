package sctp_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// accepted has the peer ask for a session, and accepts it. SCTP has not acknowledged the Accept.
func accepted(t *testing.T, c sctp.Config) *dialogue {
	c.Listening = true
	d := newDialogue(t, c)
	d.hears(0, 17, `0000 0001`)
	d.told(sctp.EventRequest, 0)
	d.accept(0)
	d.says(0, 17, `0000 0002`)
	return d
}

// TestOvertaking: no session control message leaves while an earlier one may arrive after it.
//
// Proves C04, C08: RFC 5043, section 6.6.
func TestOvertaking(t *testing.T) {
	t.Run("Close after Accept, then acknowledged", func(t *testing.T) {
		d := accepted(t, sctp.Config{})
		testrig.Must(t, d.a.Send(0, []byte("A")))
		d.says(0, 16, `0001 41`)
		d.a.Close(d.now, 0)
		d.silent()
		d.a.Acked(d.now, 0, 1) // the Accept, and not the segment
		d.says(0, 17, `0002 0004`)
	})
	t.Run("Close after Accept, then a segment", func(t *testing.T) {
		d := accepted(t, sctp.Config{})
		d.a.Close(d.now, 0)
		d.silent()
		d.hears(0, 16, `0001 41`) // the active side waits for the Accept
		d.told(sctp.EventSegment, 0)
		d.says(0, 17, `0001 0004`)
	})
	t.Run("Terminate as answer after Accept", func(t *testing.T) {
		d := accepted(t, sctp.Config{})
		d.hears(0, 17, `0001 0004`) // which may have been sent before the Accept arrived
		d.told(sctp.EventTerminate, 0)
		d.a.Close(d.now, 0)
		d.state(0, sctp.Draining)
		d.silent()
		d.acked(0)
		d.says(0, 17, `0001 0004`)
		d.state(0, sctp.Draining)
		d.acked(0)
		d.told(sctp.EventEnded, 0)
		d.state(0, sctp.Idle)
	})
	t.Run("cancel after Initiate", func(t *testing.T) {
		d := newDialogue(t, sctp.Config{Active: true})
		id := d.connect()
		d.says(id, 17, `0000 0001`)
		d.a.Close(d.now, id)
		d.silent()
		d.acked(id)
		d.says(id, 17, `0001 0004`)
		d.hears(id, 17, `0000 0002`) // the Accept was under way
		d.hears(id, 16, `0001 41`)   // and a segment
		d.hears(id, 17, `0002 0004`)
		d.acked(id)
		d.state(id, sctp.Idle)
		d.silent()
	})
}

// TestWithdrawn: the peer takes back its request.
//
// Proves C04.
func TestWithdrawn(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true})
	d.hears(0, 17, `0000 0001`)
	d.told(sctp.EventRequest, 0)
	d.hears(0, 17, `0001 0004`)
	if e := d.told(sctp.EventWithdrawn, 0); !errors.Is(e.Err, sctp.ErrCanceled) {
		t.Error(e.Err)
	}
	d.says(0, 17, `0000 0004`)
	if err := d.a.Reject(d.now, 0, nil, 0, 0); !errors.Is(err, sctp.ErrState) {
		t.Error(err)
	}
	d.acked(0)
	d.state(0, sctp.Idle)
	d.silent()
}

// TestUnanswered: a request that is closed without an answer gets a Terminate.
func TestUnanswered(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true})
	d.hears(0, 17, `0000 0001`)
	d.told(sctp.EventRequest, 0)
	d.a.Close(d.now, 0)
	d.says(0, 17, `0000 0004`)
	d.acked(0)
	d.state(0, sctp.Idle)
	d.silent()
}

// TestCollision: both sides ask for a session on one stream, which the convention of even and odd prevents.
func TestCollision(t *testing.T) {
	d := newDialogue(t, sctp.Config{Active: true, Listening: true})
	id := d.connect()
	d.says(id, 17, `0000 0001`)
	d.hears(id, 17, `0000 0001`)
	wantRule(t, d.told(sctp.EventRefused, id).Err, sctp.RuleSequence)
	d.silent()
	d.acked(id)
	d.says(id, 17, `0001 0004`)
	d.hears(id, 17, `0001 0004`) // the peer does the same
	d.acked(id)
	d.state(id, sctp.Idle)
	d.silent()
}

// TestHalfClose: the peer's Terminate may leave our direction open.
func TestHalfClose(t *testing.T) {
	d := accepted(t, sctp.Config{})
	d.acked(0)
	d.hears(0, 17, `0001 0004`)
	d.told(sctp.EventTerminate, 0)
	d.silent()
	d.state(0, sctp.Open)
	testrig.Must(t, d.a.Send(0, []byte("A")))
	d.says(0, 16, `0001 41`)
	d.a.Close(d.now, 0)
	d.says(0, 17, `0002 0004`)
	d.state(0, sctp.Draining)
	d.acked(0)
	d.told(sctp.EventEnded, 0)
	d.silent()
}

// TestReuse: a stream is used again only when nothing of the old session can be under way, and begins anew then.
//
// Proves C04, C06, C08: RFC 5043, sections 6.1 and 6.6.
func TestReuse(t *testing.T) {
	d := accepted(t, sctp.Config{})
	d.acked(0)
	d.a.Close(d.now, 0)
	d.says(0, 17, `0001 0004`)
	d.hears(0, 17, `0001 0004`)
	d.told(sctp.EventTerminate, 0)
	d.state(0, sctp.Draining) // our Terminate is not acknowledged
	d.silent()
	d.hears(0, 17, `0000 0001`) // so the peer has it after all
	d.told(sctp.EventEnded, 0)
	d.told(sctp.EventRequest, 0)
	d.accept(0)
	d.says(0, 17, `0000 0002`)
	d.hears(0, 16, `0001 41`)
	if e := d.told(sctp.EventSegment, 0); e.Number != 1 {
		t.Errorf("told %+v", e)
	}
	d.a.Close(d.now, 0)
	d.says(0, 17, `0001 0004`)
}

// TestImpossibleReuse: a peer cannot have a Terminate that has not left.
func TestImpossibleReuse(t *testing.T) {
	d := newDialogue(t, sctp.Config{})
	d.hears(0, 17, `0000 0001`) // nobody listens
	d.hears(0, 17, `0000 0001`)
	d.says(0, 17, `0000 0004`)
	d.silent()
	if d.a.Stats().Dropped != 1 {
		t.Errorf("%d messages dropped", d.a.Stats().Dropped)
	}
}

// TestTimeouts ends what the peer leaves open.
func TestTimeouts(t *testing.T) {
	t.Run("no answer", func(t *testing.T) {
		d := newDialogue(t, sctp.Config{Active: true})
		id := d.connect()
		d.says(id, 17, `0000 0001`)
		d.acked(id)
		d.later(10*time.Second - 1)
		d.silent()
		d.later(1)
		if e := d.told(sctp.EventRefused, id); !errors.Is(e.Err, sctp.ErrTimeout) {
			t.Error(e.Err)
		}
		d.says(id, 17, `0001 0004`)
		d.acked(id)
		d.later(5 * time.Second)
		d.state(id, sctp.Dead)
		if e := d.a.End(); e.How != sctp.Abort || !errors.Is(e.Cause, sctp.ErrTimeout) {
			t.Errorf("ended %+v", e)
		}
	})
	t.Run("an Initiate that does not arrive", func(t *testing.T) {
		d := newDialogue(t, sctp.Config{Active: true, AnswerTimeout: time.Second, CloseTimeout: 2 * time.Second})
		id := d.connect()
		d.says(id, 17, `0000 0001`)
		d.later(time.Second)
		d.told(sctp.EventRefused, id)
		d.later(2 * time.Second)
		if e := d.a.End(); e.How != sctp.Abort || !errors.Is(e.Cause, sctp.ErrTimeout) {
			t.Errorf("ended %+v", e)
		}
		d.silent()
	})
	t.Run("no Terminate", func(t *testing.T) {
		d := accepted(t, sctp.Config{})
		d.acked(0)
		d.hears(1, 17, `0000 0001`)
		d.told(sctp.EventRequest, 1)
		d.a.Abort(d.now, 0)
		d.says(0, 17, `0001 0004`)
		d.acked(0)
		d.later(4 * time.Second)
		d.hears(0, 16, `0001 41`) // which gains it no time
		d.silent()
		d.state(0, sctp.TerminateSent)
		d.later(time.Second)
		if e := d.told(sctp.EventEnded, 0); !errors.Is(e.Err, sctp.ErrTimeout) ||
			!strings.Contains(e.Err.Error(), "no Terminate from the peer") {
			t.Error(e.Err)
		}
		d.state(0, sctp.Dead)
		if e := d.a.End(); e.How != sctp.NotYet { // the other session goes on
			t.Errorf("ended %+v", e)
		}
		d.silent()
	})
	t.Run("a Terminate that does not arrive", func(t *testing.T) {
		d := accepted(t, sctp.Config{})
		d.hears(0, 17, `0001 0004`)
		d.told(sctp.EventTerminate, 0)
		d.a.Close(d.now, 0)
		d.acked(0)
		d.says(0, 17, `0001 0004`)
		d.later(5 * time.Second) // in which SCTP has taken it
		d.silent()
		d.later(5 * time.Second)
		if e := d.told(sctp.EventEnded, 0); !errors.Is(e.Err, sctp.ErrTimeout) ||
			!strings.Contains(e.Err.Error(), "our Terminate was not acknowledged") {
			t.Error(e.Err)
		}
		d.state(0, sctp.Dead)
	})
	t.Run("a Terminate after much else", func(t *testing.T) {
		d := accepted(t, sctp.Config{})
		d.acked(0)
		for range 6 {
			testrig.Must(t, d.a.Send(0, []byte("A")))
		}
		d.hears(0, 17, `0001 0004`)
		d.told(sctp.EventTerminate, 0)
		d.a.Close(d.now, 0)
		for i := range 3 { // which SCTP takes one by one
			d.says(0, 16, []string{`0001 41`, `0002 41`, `0003 41`}[i])
			if i > 0 { // and some are acknowledged, too
				d.acked(0)
			}
			d.later(5 * time.Second)
			d.state(0, sctp.Draining)
		}
		d.says(0, 16, `0004 41`) // too slowly
		d.later(5 * time.Second)
		d.told(sctp.EventEnded, 0)
		d.state(0, sctp.Dead)
	})
	t.Run("a half that stays open", func(t *testing.T) {
		d := accepted(t, sctp.Config{})
		d.hears(1, 17, `0000 0001`)
		d.told(sctp.EventRequest, 1)
		d.a.Close(d.now, 0)
		d.silent()
		d.acked(0) // our Terminate has waited for that
		d.says(0, 17, `0001 0004`)
		d.later(time.Hour)
		d.hears(0, 16, `0001 41`)
		d.told(sctp.EventSegment, 0)
		d.later(time.Hour)
		d.state(0, sctp.TerminateSent)
		d.a.Abort(d.now, 0) // the consumer does not want it any more
		d.acked(0)
		d.later(5 * time.Second)
		d.told(sctp.EventEnded, 0)
		d.state(0, sctp.Dead)
	})
	t.Run("a consumer without last words", func(t *testing.T) {
		d := accepted(t, sctp.Config{})
		d.acked(0)
		d.hears(0, 17, `0001 0001`)
		wantRule(t, d.told(sctp.EventFailed, 0).Err, sctp.RuleSequence)
		d.later(5 * time.Second)
		d.says(0, 17, `0001 0004`)
		d.state(0, sctp.TerminateSent)
	})
}

// TestLastWords: after a violation the consumer may send an RDMAP Terminate, in front of the session's.
func TestLastWords(t *testing.T) {
	d := accepted(t, sctp.Config{})
	d.acked(0)
	d.hears(0, 16, `0001 41`)
	d.told(sctp.EventSegment, 0)
	d.hears(0, 16, `0001 41`)
	e := d.told(sctp.EventFailed, 0)
	wantRule(t, e.Err, sctp.RuleSSN)
	if e.Number != 2 {
		t.Errorf("failed at %d", e.Number)
	}
	d.hears(0, 16, `0002 42`) // nothing is taken any more
	testrig.Must(t, d.a.Send(0, []byte("T")))
	d.a.Close(d.now, 0)
	d.says(0, 16, `0001 54`)
	d.says(0, 17, `0002 0004`)
	d.silent()
	d.hears(0, 17, `0003 0004`)
	d.acked(0)
	d.told(sctp.EventEnded, 0)
}

// TestLost ends every session, and answers nothing afterwards.
//
// Proves C13.
func TestLost(t *testing.T) {
	d := accepted(t, sctp.Config{Active: true})
	id := d.connect()
	d.hears(1, 17, `0000 0001`)
	d.told(sctp.EventRequest, 1)
	cause := errors.New("ABORT")
	d.a.Lost(cause)
	for _, id := range []uint16{0, 1, id} {
		if e := d.told(sctp.EventEnded, id); e.Err != cause {
			t.Error(e.Err)
		}
	}
	d.a.Lost(errors.New("again"))
	d.hears(0, 16, `0001 41`)
	d.later(time.Hour)
	d.silent()
	if e := d.a.End(); e.How != sctp.Abort || e.Cause != cause {
		t.Errorf("ended %+v", e)
	}
	if _, err := d.a.Connect(d.now, mpa.Offer{}); !errors.Is(err, sctp.ErrLimit) {
		t.Error(err)
	}
	if d.a.Sessions() != 0 {
		t.Errorf("%d sessions", d.a.Sessions())
	}
}

// TestUnsent: the segments that SCTP has not got of a stream yet count, and no control messages, also after the end;
// and of a stream that was never used there is nothing.
func TestUnsent(t *testing.T) {
	d := accepted(t, sctp.Config{})
	want := func(id uint16, n int) {
		t.Helper()
		if got := d.a.Unsent(id); got != n {
			t.Errorf("stream %d has %d segments that were not sent, want %d", id, got, n)
		}
	}
	d.hears(0, 16, `0001 41`) // shows that the Accept has arrived
	d.told(sctp.EventSegment, 0)
	want(0, 0)
	want(3, 0)
	testrig.Must(t, d.a.Send(0, []byte("A")))
	testrig.Must(t, d.a.Send(0, []byte("B")))
	d.a.Close(d.now, 0)
	want(0, 2)
	d.says(0, 16, `0001 41`)
	want(0, 1)
	d.a.Lost(errors.New("silent"))
	want(0, 1)
}

// TestUnsentTerminate: the Terminate, which waits as any message, is none of them.
func TestUnsentTerminate(t *testing.T) {
	d := accepted(t, sctp.Config{})
	d.hears(0, 16, `0001 41`) // shows that the Accept has arrived
	testrig.Must(t, d.a.Send(0, []byte("A")))
	d.a.Close(d.now, 0)
	d.says(0, 16, `0001 41`)
	if n := d.a.Unsent(0); n != 0 {
		t.Errorf("%d segments", n)
	}
	d.says(0, 17, `0002 0004`)
}
