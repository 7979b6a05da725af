package sctp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// wrongMessages are what no peer sends in the midst of a session, from the Function Code on.
var wrongMessages = []string{
	"\x00\x01", "\x00\x02", "\x00\x03", "\x00\x05\x00\x00\x00\x00", "\x00\x06\x00", "\x00\x07",
	"\x00\x00", "\x00\x04!", "\x00",
}

// TestWrongAhead: a message that breaks a rule counts when it has its turn. What is missing before it is still handed
// out when it comes, and the failure has the message's own number.
//
// Proves C04, C06.
func TestWrongAhead(t *testing.T) {
	d := accepted(t, sctp.Config{})
	d.acked(0)
	d.hears(0, 17, `0003 0001`) // an Initiate
	d.hears(0, 16, `0002 42`)
	if e := d.told(sctp.EventSegment, 0); e.Number != 2 {
		t.Errorf("told %+v", e)
	}
	d.hears(0, 16, `0004 44`) // of what lies after it nothing is taken any more
	d.silent()
	d.hears(0, 16, `0001 41`)
	if e := d.told(sctp.EventSegment, 0); string(e.Segment) != "A" {
		t.Errorf("told %+v", e)
	}
	e := d.told(sctp.EventFailed, 0)
	wantRule(t, e.Err, sctp.RuleSequence)
	if e.Number != 3 {
		t.Errorf("failed at %d", e.Number)
	}
	d.a.Close(d.now, 0)
	d.says(0, 17, `0001 0004`)
	d.hears(0, 17, `0005 0004`)
	d.state(0, sctp.Draining)
}

// TestWrongAndRefused: what has come after a rejection means nothing, whatever it is.
func TestWrongAndRefused(t *testing.T) {
	d := newDialogue(t, sctp.Config{Active: true})
	id := d.connect()
	d.says(id, 17, `0000 0001`)
	d.hears(id, 17, `0001 0001`)
	d.silent()
	d.hears(id, 17, `0000 0003`)
	var r *sctp.Refusal
	if e := d.told(sctp.EventRefused, id); !errors.As(e.Err, &r) || r.Provider {
		t.Errorf("refused: %v", e.Err)
	}
	d.state(id, sctp.Idle)
	d.silent()
}

// script returns the messages of a peer that accepts a session, from the answer to its Terminate, with a wrong one
// among the segments.
func script(wrong string, at, n int) (messages []sctp.Message) {
	for i := range n + 1 {
		m := sctp.Message{PPID: sctp.PPIDSegment, Data: []byte{0, byte(i), 'x'}}
		switch i {
		case 0:
			m = sctp.Message{PPID: sctp.PPIDControl, Data: []byte{0, 0, 0, 2}}
		case at:
			m = sctp.Message{PPID: sctp.PPIDControl, Data: append([]byte{0, byte(i)}, wrong...)}
		case n:
			m = sctp.Message{PPID: sctp.PPIDControl, Data: []byte{0, byte(i), 0, 4}}
		}
		messages = append(messages, m)
	}
	return messages
}

// hearing returns what a consumer hears of them, in a canonical order up to the failure: segments after it may have
// come ahead.
func hearing(t *rapid.T, messages []sctp.Message) (heard []string) {
	a := sctp.New(epoch, sctp.Config{Active: true, Streams: 1})
	if _, err := a.Connect(epoch, mpa.Offer{Dialect: mpa.DialectRFC5044}); err != nil {
		t.Fatal(err)
	}
	var segments []string
	failedAt := uint64(0)
	for _, m := range messages {
		a.Receive(epoch, m)
		for e, ok := a.Event(); ok; e, ok = a.Event() {
			line := fmt.Sprintf("%s %03d", kinds[e.Kind], e.Number)
			switch {
			case failedAt > 0:
				t.Fatalf("%s after the failure", line)
			case e.Kind == sctp.EventSegment:
				segments = append(segments, line)
				continue
			case e.Kind == sctp.EventFailed:
				failedAt = e.Number
				line += " " + e.Err.Error()
			}
			heard = append(heard, line)
		}
	}
	slices.Sort(segments)
	below, _ := slices.BinarySearch(segments, fmt.Sprintf("%s %03d", kinds[sctp.EventSegment], failedAt))
	return append(heard, segments[:below]...)
}

// TestWrongInAnyOrder: one message that breaks a rule comes to the same, in whatever order the messages of a session
// arrive.
//
// Proves C04, C06.
func TestWrongInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wrong := rapid.SampledFrom(wrongMessages).Draw(t, "wrong")
		n := rapid.IntRange(2, 40).Draw(t, "messages")
		at := rapid.IntRange(1, n-1).Draw(t, "at")
		messages := script(wrong, at, n)
		want := hearing(t, messages) // established, failed, the segments before
		if len(want) != 2+at-1 || !strings.HasPrefix(want[1], fmt.Sprintf("failed %03d ", at)) {
			t.Fatalf("in order, heard %q", want)
		}
		if got := hearing(t, rapid.Permutation(messages).Draw(t, "order")); !slices.Equal(got, want) {
			t.Fatalf("heard %q, and in order %q", got, want)
		}
	})
}
