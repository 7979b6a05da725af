package sctp_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/sctp"
)

// wantReset expects the association to be aborted over a session that was given up.
func (d *dialogue) wantReset() {
	d.Helper()
	if e := d.a.End(); e.How != sctp.Abort || !errors.Is(e.Cause, sctp.ErrReset) {
		d.Errorf("ended %+v", e)
	}
}

// TestResetAlone: the peer of the only session learns by ABORT that it was given up, also when our half had ended
// before.
//
// Proves C13.
func TestResetAlone(t *testing.T) {
	d := accepted(t, sctp.Config{})
	d.a.Reset(d.now, 0, []byte("T"))
	d.wantReset()
	d.told(sctp.EventEnded, 0)
	d.silent()

	d = accepted(t, sctp.Config{})
	d.acked(0)
	d.a.Close(d.now, 0)
	d.says(0, 17, `0001 0004`)
	d.a.Reset(d.now, 0, []byte("T"))
	d.wantReset()
}

// TestResetAmongSessions: where there are others, even one whose last message the peer may lack, the last words are
// the last segment, and nothing more is taken.
//
// Proves C13.
func TestResetAmongSessions(t *testing.T) {
	d := accepted(t, sctp.Config{})
	d.acked(0)
	d.hears(1, 17, `0000 0001`)
	d.told(sctp.EventRequest, 1)
	d.a.Reset(d.now, 0, []byte("T"))
	d.says(0, 16, `0001 54`)
	d.says(0, 17, `0002 0004`)
	d.hears(0, 16, `0001 41`)
	d.silent()
	d.a.Reset(d.now, 0, []byte("T")) // all is said
	d.silent()
	if e := d.a.End(); e.How != sctp.NotYet {
		t.Errorf("ended %+v", e)
	}

	d = accepted(t, sctp.Config{})
	d.acked(0)
	d.a.Reset(d.now, 9, nil) // there is none
	d.hears(1, 17, `0000 0001`)
	d.told(sctp.EventRequest, 1)
	d.a.Close(d.now, 1)
	d.says(1, 17, `0000 0004`)
	d.state(1, sctp.Draining)
	d.a.Reset(d.now, 0, nil)
	d.says(0, 17, `0001 0004`)
	d.silent()
}

// TestLastWordsFit: words that are one byte too long for a segment are not said.
func TestLastWordsFit(t *testing.T) {
	for _, longer := range []int{0, 1} {
		d := accepted(t, sctp.Config{MaxMessage: 544})
		d.acked(0)
		d.hears(1, 17, `0000 0001`)
		d.told(sctp.EventRequest, 1)
		d.a.Reset(d.now, 0, bytes.Repeat([]byte{'T'}, 526+longer)) // 544 without 16 of a SACK, and without the DDP-SSN
		if longer == 0 {
			d.says(0, 16, `0001 + 526 of 54`)
			d.says(0, 17, `0002 0004`)
		} else {
			d.says(0, 17, `0001 0004`)
		}
		d.silent()
	}
}

// TestResetBehindAccept: the Terminate of a session that is given up waits until it cannot overtake the Accept.
func TestResetBehindAccept(t *testing.T) {
	d := accepted(t, sctp.Config{})
	d.hears(1, 17, `0000 0001`)
	d.told(sctp.EventRequest, 1)
	d.a.Reset(d.now, 0, []byte("T"))
	d.says(0, 16, `0001 54`)
	d.silent()
	d.acked(0)
	d.says(0, 17, `0002 0004`)
}

// TestResetBeforeOpen: what is not open is taken back or turned down, and the association stays.
func TestResetBeforeOpen(t *testing.T) {
	d := newDialogue(t, sctp.Config{Active: true, Listening: true})
	id := d.connect()
	d.says(id, 17, `0000 0001`)
	d.a.Reset(d.now, id, []byte("T"))
	d.acked(id)
	d.says(id, 17, `0001 0004`)
	d.a.Reset(d.now, id, []byte("T")) // the answer may be under way
	d.hears(id, 17, `0000 0003`)
	d.acked(id)
	d.state(id, sctp.Idle)
	d.hears(1, 17, `0000 0001`)
	d.told(sctp.EventRequest, 1)
	d.a.Reset(d.now, 1, []byte("T"))
	d.says(1, 17, `0000 0004`)
	if d.later(time.Second); d.a.End().How != sctp.NotYet {
		t.Errorf("ended %+v", d.a.End())
	}
	d.silent()
}

// TestAbortIsTold: who gives up a session in order drops what the peer still sends, whose SCTP is told that it has
// come. The peer of the only session learns of that by an ABORT; among others it cannot, until it is the only one. A
// segment that breaks a rule is no loss.
//
// Proves C13.
func TestAbortIsTold(t *testing.T) {
	for _, others := range []bool{false, true} {
		d := accepted(t, sctp.Config{})
		d.acked(0)
		if others {
			d.hears(1, 17, `0000 0001`)
			d.told(sctp.EventRequest, 1)
		}
		d.a.Abort(d.now, 0)
		d.says(0, 17, `0001 0004`)
		d.silent()
		d.hears(0, 16, `0002 42`) // in any order
		if others {
			d.silent()
			d.a.Close(d.now, 1)
			d.says(1, 17, `0000 0004`)
			d.acked(1)
			if e := d.a.End(); e.How != sctp.NotYet {
				t.Errorf("ended %+v", e)
			}
			d.hears(0, 16, `0001 41`)
		}
		d.wantReset()
		d.told(sctp.EventEnded, 0)
		d.silent()
	}
}

// TestCancelIsTold: so it is with a request that is given up, be it by the consumer or over a peer that is late, and
// with what has overtaken the Accept before that.
func TestCancelIsTold(t *testing.T) {
	const segment = `0001 41`
	for name, run := range map[string]func(d *dialogue, id uint16){
		"before": func(d *dialogue, id uint16) { d.hears(id, 16, segment); d.a.Close(d.now, id) },
		"after":  func(d *dialogue, id uint16) { d.a.Close(d.now, id); d.silent(); d.hears(id, 16, segment) },
		"in turn": func(d *dialogue, id uint16) {
			d.a.Close(d.now, id)
			d.hears(id, 17, `0000 0002`)
			d.hears(id, 16, segment)
		},
		"late": func(d *dialogue, id uint16) {
			d.hears(id, 16, segment)
			d.later(10 * time.Second)
			d.told(sctp.EventRefused, id)
		},
		"too much": func(d *dialogue, id uint16) {
			d.hears(id, 16,
				segment+` + 1000 of 42`)
			d.told(sctp.EventRefused, id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDialogue(t, sctp.Config{Active: true, MaxEarly: 1000})
			id := d.connect()
			d.says(id, 17, `0000 0001`)
			run(d, id)
			d.wantReset()
			d.silent()
		})
	}
}

// TestViolatorIsTold: who breaks a rule before its request is answered has our Terminate for that, and the association
// goes on.
func TestViolatorIsTold(t *testing.T) {
	d := newDialogue(t, sctp.Config{Active: true})
	id := d.connect()
	d.says(id, 17, `0000 0001`)
	d.hears(id, 16, `0001 41`)
	d.hears(id, 16, `0000 42`)
	wantRule(t, d.told(sctp.EventRefused, id).Err, sctp.RuleSequence)
	d.hears(id, 16, `0002 43`)
	d.acked(id)
	d.says(id, 17, `0001 0004`)
	if e := d.a.End(); e.How != sctp.NotYet {
		t.Errorf("ended %+v", e)
	}
}

// TestOwes: the peer lacks what SCTP has not acknowledged, and a Terminate that waits for that.
func TestOwes(t *testing.T) {
	d := newDialogue(t, sctp.Config{Active: true})
	want := func(owes bool) {
		t.Helper()
		if d.a.Owes(0) != owes {
			t.Errorf("owes something: %t", !owes)
		}
	}
	want(false) // a stream that was never used
	id := d.connect()
	want(true)
	d.says(id, 17, `0000 0001`)
	want(true)
	d.a.Close(d.now, id)
	d.acked(id)
	want(true) // the Terminate
	d.says(id, 17, `0001 0004`)
	d.acked(id)
	want(false)
	d.hears(id, 17, `0000 0003`)
	d.state(id, sctp.Idle)
	want(false)
}
