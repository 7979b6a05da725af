package sctp_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// TestStrays: messages outside of any session are not answered, and too many of them end the association. A session
// that opens shows that the peer is in its senses.
func TestStrays(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true, Streams: 4})
	for i := range uint16(15) {
		d.hears(i%8, 17, `0001 0004`) // on streams that do not exist, too
	}
	d.silent()
	d.hears(0, 17, `0000 0001`)
	d.told(sctp.EventRequest, 0)
	d.accept(0)
	d.says(0, 17, `0000 0002`)
	for range 15 {
		d.hears(1, 16, `0000 41`)
	}
	if e := d.a.End(); e.How != sctp.NotYet {
		t.Fatalf("ended %+v", e)
	}
	d.hears(1, 16, `0000 41`)
	wantRule(t, d.a.End().Cause, sctp.RuleStray)
	wantRule(t, d.told(sctp.EventEnded, 0).Err, sctp.RuleStray)
	if d.a.Stats().Dropped != 31 {
		t.Errorf("%d messages dropped", d.a.Stats().Dropped)
	}
}

// TestCrossedTerminate: a Terminate that takes back a request, and has crossed our answer, is legal: it counts for
// nothing, however often, and the live session of another stream stays. A second one is a stray.
//
// Proves C04.
func TestCrossedTerminate(t *testing.T) {
	d := accepted(t, sctp.Config{MaxPending: 1})
	refuse := func() {
		d.hears(1, 17, `0000 0001`)
		d.told(sctp.EventRequest, 1)
		testrig.Must(t, d.a.Reject(d.now, 1, nil, 0, 0))
		d.says(1, 17, `0000 0003`)
		d.acked(1)
		d.state(1, sctp.Idle)
	}
	for range 20 {
		refuse()
		d.hears(1, 17, `0001 0004`)
	}
	d.silent()
	d.state(0, sctp.Open)
	if n := d.a.Stats().Dropped; n != 20 {
		t.Errorf("%d messages dropped", n)
	}
	refuse()
	for range 8 {
		d.hears(1, 17, `0001 0004`)
	}
	refuse()
	for range 4 { // they cannot be that one
		d.hears(1, 17, `0002 0004`)
		d.hears(1, 17, `0001 0002`)
	}
	d.state(0, sctp.Open)
	d.hears(1, 17, `0002 0004`)
	wantRule(t, d.told(sctp.EventEnded, 0).Err, sctp.RuleStray)
}

// TestLateTerminateOfOthers: there is nothing to take back in a session that was accepted, nor in one of ours.
func TestLateTerminateOfOthers(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true})
	d.opensAndEnds(1)
	for range 16 {
		d.hears(1, 17, `0001 0004`)
	}
	wantRule(t, d.a.End().Cause, sctp.RuleStray)
	d = newDialogue(t, sctp.Config{Active: true})
	id := d.connect()
	d.says(id, 17, `0000 0001`)
	d.hears(id, 17, `0000 0003`)
	d.told(sctp.EventRefused, id)
	for range 16 {
		d.hears(id, 17, `0001 0004`)
	}
	wantRule(t, d.a.End().Cause, sctp.RuleStray)
}

// TestOrdered: an ordered message does no harm and is counted.
//
// RFC 5043, section 10: "The adaptation layer MUST use the Unordered option on all Data Chunks".
//
// Proves C12.
func TestOrdered(t *testing.T) {
	d := accepted(t, sctp.Config{})
	for i := range byte(2) {
		d.a.Receive(d.now, sctp.Message{PPID: 16, Ordered: true, Data: []byte{0, 1 + i, 'A'}})
		d.told(sctp.EventSegment, 0)
	}
	if d.a.Stats().Ordered != 2 {
		t.Errorf("%d ordered messages", d.a.Stats().Ordered)
	}
}

// TestEarly: segments may overtake the Accept, and are handed out after it. Beyond a bound the session ends.
//
// Proves C04.
func TestEarly(t *testing.T) {
	d := newDialogue(t, sctp.Config{Active: true, MaxEarly: 1000, Streams: 8})
	id := d.connect()
	d.says(id, 17, `0000 0001`)
	d.hears(id, 16, `0002 42`)
	d.hears(id, 17, `0003 0004`)
	d.hears(id, 16, `0001 41`)
	d.silent()
	d.hears(id, 17, `0000 0002`)
	d.told(sctp.EventEstablished, id)
	for _, want := range []struct {
		number  uint64
		segment string
	}{{2, "B"}, {1, "A"}} {
		if e := d.told(sctp.EventSegment, id); e.Number != want.number || string(e.Segment) != want.segment {
			t.Errorf("told %+v, want %v", e, want)
		}
	}
	d.told(sctp.EventTerminate, id)
	if n := d.a.Early(); n != 0 {
		t.Errorf("%d bytes are held of what was handed out", n)
	}
	d.a.Close(d.now, id)
	d.says(id, 17, `0001 0004`)
	d.silent()

	other := d.connect()
	d.says(other, 17, `0000 0001`)
	d.hears(other, 16, `0001 41 + 400 of 00`)
	d.silent()
	d.hears(other, 16, `0002 41 + 400 of 00`)
	if err := d.told(sctp.EventRefused, other).Err; !errors.Is(err, sctp.ErrEarly) {
		t.Errorf("refused: %v", err)
	}
	third := d.connect()
	d.says(third, 17, `0000 0001`)
	d.hears(third, 16, `0001 41 + 800 of 00`) // what was held is given back
	d.silent()
}

// TestRoom: a session takes as many segments as may be queued, and as the DDP-SSNs can tell apart. The last two numbers
// are left to the Terminates of RDMAP and of the session.
//
// RFC 5043, section 10: "the sending DDP must simply refrain from sending more than 32767 Data Chunks for a single
// stream without acknowledgment."
//
// Proves C12.
func TestRoom(t *testing.T) {
	d := accepted(t, sctp.Config{MaxQueued: 3})
	if n := d.a.Room(0); n != 3 {
		t.Errorf("room for %d", n)
	}
	if n := d.a.Room(3); n != 0 {
		t.Errorf("room for %d without a session", n)
	}
	for range 3 {
		testrig.Must(t, d.a.Send(0, []byte("A")))
	}
	if err := d.a.Send(0, []byte("A")); !errors.Is(err, sctp.ErrFull) {
		t.Error(err)
	}
	given := uint64(1)
	for ok := true; ok; {
		_ = d.a.Send(0, []byte("A"))
		if _, ok = d.a.Output(); ok {
			given++
		}
	}
	if given != 32765 {
		t.Errorf("%d messages without an acknowledgement", given)
	}
	d.hears(0, 16, `0001 41`) // shows that the Accept has arrived, which is one
	d.told(sctp.EventSegment, 0)
	if n := d.a.Room(0); n != 1 {
		t.Errorf("room for %d", n)
	}
	d.a.Close(d.now, 0)
	d.says(0, 17, `7ffd 0004`)
	d.a.Acked(d.now, 3, 1)         // of a stream that was never used
	d.a.Acked(d.now, 0, given+100) // never more than there are
	d.a.Acked(d.now, 0, given)
	d.hears(0, 17, `0002 0004`)
	d.told(sctp.EventTerminate, 0)
	d.told(sctp.EventEnded, 0)
}

// TestSize: RFC 5043, section 9.
//
// Proves C11.
func TestSize(t *testing.T) {
	for message, want := range map[int]int{1452: 1434, 1444: 1426, 8156: 8138, 600: 582, 532: 514, 531: 514, 0: 514} {
		if got := sctp.MULPDU(message); got != want {
			t.Errorf("MULPDU is %d with messages of %d, want %d", got, message, want)
		}
	}
	d := accepted(t, sctp.Config{MaxMessage: 1444})
	if err := d.a.Send(0, make([]byte, 20), make([]byte, 1407)); !errors.Is(err, sctp.ErrSize) {
		t.Error(err)
	}
	testrig.Must(t, d.a.Send(0, make([]byte, 20), make([]byte, 1406)))
	d.hears(0, 16, `0001 + 5000 of 00`) // we do not know the peer's
	if e := d.told(sctp.EventSegment, 0); len(e.Segment) != 5000 {
		t.Errorf("%d bytes", len(e.Segment))
	}
}

// TestWrap: DDP-SSNs go on from 65535 with 0, in both directions.
//
// Proves C06.
func TestWrap(t *testing.T) {
	d := accepted(t, sctp.Config{})
	for n := uint64(1); n < 70_000; n++ {
		want := []byte{byte(n >> 8), byte(n), 'A'}
		testrig.Must(t, d.a.Send(0, want[2:]))
		if m, _ := d.a.Output(); !bytes.Equal(m.Data, want) {
			t.Fatalf("message %d is % x", n, m.Data)
		}
		d.a.Acked(d.now, 0, n+1)
		d.a.Receive(d.now, sctp.Message{PPID: 16, Data: want})
		if e := d.told(sctp.EventSegment, 0); e.Number != n {
			t.Fatalf("got %d, want %d", e.Number, n)
		}
	}
}

// TestWindow: in any order within 32768, across the wrap; one further is refused, and so is one that was there.
//
// Proves C12.
func TestWindow(t *testing.T) {
	d := accepted(t, sctp.Config{})
	const window = 32768
	hear := func(n int) { d.a.Receive(d.now, sctp.Message{PPID: 16, Data: []byte{byte(n >> 8), byte(n)}}) }
	first := 1
	for range 5 {
		for i := window - 1; i >= 0; i-- {
			hear(first + i)
			if e := d.told(sctp.EventSegment, 0); e.Number != uint64(first+i) {
				t.Fatalf("got %d, want %d", e.Number, first+i)
			}
		}
		first += window
	}
	hear(first + 3)
	d.told(sctp.EventSegment, 0)
	hear(first + 3)
	wantRule(t, d.told(sctp.EventFailed, 0).Err, sctp.RuleSSN)

	d = accepted(t, sctp.Config{})
	hear(1 + window)
	wantRule(t, d.told(sctp.EventFailed, 0).Err, sctp.RuleSSN)
}

// TestSessionsApart: what one session does to itself does nothing to another.
func TestSessionsApart(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true, MaxPending: 4})
	for id := range uint16(3) {
		d.hears(id, 17, `0000 0001`)
		d.told(sctp.EventRequest, id)
		d.accept(id)
		d.says(id, 17, `0000 0002`)
		d.acked(id)
	}
	d.hears(0, 16, `0001 41`)
	d.hears(1, 17, `0001 0001`)
	d.hears(2, 16, `0001 42`)
	d.told(sctp.EventSegment, 0)
	d.told(sctp.EventFailed, 1)
	d.told(sctp.EventSegment, 2)
	d.a.Abort(d.now, 1)
	d.says(1, 17, `0001 0004`)
	d.hears(1, 99, `00`)
	d.told(sctp.EventEnded, 1)
	d.state(1, sctp.Dead)
	testrig.Must(t, d.a.Send(0, []byte("A")))
	d.says(0, 16, `0001 41`)
	if n := d.a.Sessions(); n != 2 {
		t.Errorf("%d sessions", n)
	}
	if id, err := d.a.Connect(d.now, mpa.Offer{}); err != nil || id != 3 { // the dead stream is not used again
		t.Errorf("stream %d (%v)", id, err)
	}
}
