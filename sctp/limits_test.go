package sctp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/sctp"
)

// opensAndEnds has the peer open a session on a stream, and end it again.
func (d *dialogue) opensAndEnds(id uint16) {
	d.Helper()
	d.hears(id, 17, `0000 0001`)
	d.told(sctp.EventRequest, id)
	d.accept(id)
	d.says(id, 17, `0000 0002`)
	d.acked(id)
	d.hears(id, 17, `0001 0004`)
	d.told(sctp.EventTerminate, id)
	d.a.Close(d.now, id)
	d.says(id, 17, `0001 0004`)
	d.acked(id)
	d.told(sctp.EventEnded, id)
}

// TestComingAndGoing: sessions that are over count no more, in whichever way they came to it.
func TestComingAndGoing(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true, MaxSessions: 1, MaxPending: 1, Streams: 8})
	for range 5 {
		d.opensAndEnds(0)
	}
	// One that dies: the stream is dead, and there is room for another on the next one.
	d = newDialogue(t, sctp.Config{Listening: true, MaxSessions: 2, Streams: 8})
	d.hears(7, 17, `0000 0001`) // it keeps the association
	d.told(sctp.EventRequest, 7)
	for id := range uint16(4) {
		d.hears(id, 17, `0000 0001`)
		d.told(sctp.EventRequest, id)
		d.accept(id)
		d.says(id, 17, `0000 0002`)
		d.acked(id)
		d.a.Close(d.now, id)
		d.says(id, 17, `0001 0004`)
		d.hears(id, 99, `00`)
		d.told(sctp.EventEnded, id)
		d.state(id, sctp.Dead)
	}
}

// TestEarlyIsForgotten: what has overtaken an answer counts no more when the session is over. Up to the
// bound it is held.
func TestEarlyIsForgotten(t *testing.T) {
	d := newDialogue(t, sctp.Config{Active: true, Listening: true, Streams: 8, MaxEarly: 2 * (128 + 3)})
	d.hears(7, 17, `0000 0001`) // it keeps the association
	d.told(sctp.EventRequest, 7)
	for range 4 {
		id := d.connect()
		d.says(id, 17, `0000 0001`)
		d.hears(id, 16, `0001 414141`)
		d.hears(id, 16, `0002 424242`) // the bound
		d.silent()
		d.acked(id)
		d.a.Close(d.now, id)
		d.says(id, 17, `0001 0004`)
		d.hears(id, 17, `0000 0003`) // rejected
		d.acked(id)
	}
	id := d.connect()
	d.says(id, 17, `0000 0001`)
	for _, segment := range []string{`0001 414141`, `0002 424242`, `0003 43`} {
		d.hears(id, 16, segment)
	}
	e := d.told(sctp.EventRefused, id)
	if !errors.Is(e.Err, sctp.ErrEarly) || d.a.Early() != 0 {
		t.Errorf("%v, and %d bytes held", e.Err, d.a.Early())
	}
	if want := "391 bytes"; !strings.Contains(e.Err.Error(), want) {
		t.Errorf("%v, want %q in it", e.Err, want)
	}
}

// TestBehindTheTerminate: nothing follows the peer's Terminate, neither a segment nor another one. It is what has come
// before the Terminate has its turn that shows that it is not the last.
//
// Proves C04.
func TestBehindTheTerminate(t *testing.T) {
	for name, behind := range map[string]func(d *dialogue){
		"a segment":         func(d *dialogue) { d.hears(0, 16, `0003 41`) },
		"another Terminate": func(d *dialogue) { d.hears(0, 17, `0003 0004`) },
	} {
		for order, before := range map[string]bool{"before it": true, "after it": false} {
			t.Run(name+", "+order, func(t *testing.T) {
				d := accepted(t, sctp.Config{})
				d.acked(0)
				if before {
					behind(d)
					for e, ok := d.a.Event(); ok; e, ok = d.a.Event() {
						if e.Kind != sctp.EventSegment { // which was ahead
							t.Errorf("told %+v", e)
						}
					}
				}
				d.hears(0, 17, `0002 0004`)
				if !before {
					behind(d)
				}
				d.silent()
				d.hears(0, 16, `0001 41`)
				d.told(sctp.EventSegment, 0)
				e := d.told(sctp.EventFailed, 0)
				wantRule(t, e.Err, sctp.RuleSequence)
				if e.Number != 2 {
					t.Errorf("failed at %d", e.Number)
				}
				d.silent()
			})
		}
	}
}

// TestFirstAfterTheTerminate: of several messages after the peer's Terminate, the failure names the one that came
// first.
func TestFirstAfterTheTerminate(t *testing.T) {
	d := accepted(t, sctp.Config{})
	d.acked(0)
	for _, b := range []string{`0002 0004`, `0005 0004`, `0006 0004`} {
		d.hears(0, 17, b)
	}
	d.hears(0, 16, `0001 41`)
	d.told(sctp.EventSegment, 0)
	if e := d.told(sctp.EventFailed, 0); !strings.Contains(e.Err.Error(), "message 5,") {
		t.Errorf("failed: %v", e.Err)
	}
}

// TestStreamsThereAre: what comes on a stream that does not exist, as the one after the last, is counted and nothing
// else, however often.
//
// RFC 9260, section 6.5: SCTP tells the peer, and the association goes on.
func TestStreamsThereAre(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true, Streams: 4})
	for range 100 {
		d.hears(4, 17, `0000 0001`)
	}
	d.silent()
	d.hears(3, 17, `0000 0001`)
	d.told(sctp.EventRequest, 3)
	if e, n := d.a.End(), d.a.Stats().Dropped; e.How != sctp.NotYet || n != 100 {
		t.Errorf("ended %+v; %d dropped", e, n)
	}
}

// TestStraysAreForgotten: only a session that opens makes strays forgotten.
func TestStraysAreForgotten(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true, Streams: 4})
	stray := func() { d.hears(2, 16, `0001 41`) }
	for range 15 {
		stray()
	}
	d.silent()
	d.hears(3, 17, `0000 0001`)
	d.told(sctp.EventRequest, 3)
	d.accept(3)
	for range 15 {
		stray()
	}
	if e := d.a.End(); e.How != sctp.NotYet {
		t.Errorf("ended %+v", e)
	}
	d.hears(1, 17, `0000 0001`)
	stray()
	wantRule(t, d.a.End().Cause, sctp.RuleStray)
}

// TestFormBounds: 512 bytes of private data are legal, and so is a message of a DDP-SSN alone.
//
// Proves C02.
func TestFormBounds(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true})
	d.hears(0, 17, `0000 0001 + 512 of 41`)
	if q := d.told(sctp.EventRequest, 0).Request; len(q.PrivateData) != 512 {
		t.Errorf("%d bytes of private data", len(q.PrivateData))
	}
	if ssn, ok := sctp.SSN([]byte{1, 2}); ssn != 0x102 || !ok {
		t.Errorf("%d, %v", ssn, ok)
	}
	for _, b := range [][]byte{nil, {1}} {
		if _, ok := sctp.SSN(b); ok {
			t.Errorf("% x is taken", b)
		}
	}
}

// TestDeadIsCounted counts what comes on a dead stream, and is not answered.
func TestDeadIsCounted(t *testing.T) {
	d := accepted(t, sctp.Config{})
	d.acked(0)
	d.hears(1, 17, `0000 0001`)
	d.told(sctp.EventRequest, 1)
	d.a.Close(d.now, 0)
	d.says(0, 17, `0001 0004`)
	d.hears(0, 99, `00`)
	d.told(sctp.EventEnded, 0)
	d.state(0, sctp.Dead)
	d.hears(0, 17, `0000 0001`)
	d.silent()
	if n := d.a.Stats().Dropped; n != 1 {
		t.Errorf("%d messages dropped", n)
	}
	if s := sctp.State(7).String(); s != "state 7" || sctp.Dead.String() != "Dead" {
		t.Error(s)
	}
}

// TestMalformedInitiate: a request for a session that is none is answered by a Terminate, so that its sender need not
// wait until its time is up. Two idle ends do not answer each other for ever, and a peer that sends nothing else is
// given up.
//
// Proves C04, C07.
func TestMalformedInitiate(t *testing.T) {
	for name, text := range map[string]string{
		"no enhanced data":      `0000 0005 00`,
		"too much private data": `0000 0001 + 513 of 00`,
		"a DDP-SSN":             `0007 0001`,
		"an unknown function":   `0000 0008`,
		"no function":           `0000`,
	} {
		d := newDialogue(t, sctp.Config{Listening: true, Streams: 4})
		d.hears(2, 17, text)
		d.says(2, 17, `0000 0004`)
		d.hears(2, 17, `0000 0004`) // the other end has no session either
		d.silent()
		d.acked(2)
		d.hears(2, 17, `0000 0001`)
		d.told(sctp.EventRequest, 2)
		if t.Failed() {
			t.Log(name)
		}
	}
	d := newDialogue(t, sctp.Config{Listening: true, Streams: 4})
	for range 15 {
		d.hears(2, 17, `0000 0008`)
		d.says(2, 17, `0000 0004`)
		d.acked(2)
	}
	d.hears(2, 17, `0000 0008`)
	wantRule(t, d.a.End().Cause, sctp.RuleStray)
}
