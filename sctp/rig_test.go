package sctp_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A dialogue plays the peer of an Association, byte by byte, with time of its own.
type dialogue struct {
	*testing.T
	a     *sctp.Association
	now   time.Time
	given map[uint16]uint64 // messages of ours, by stream
}

func newDialogue(t *testing.T, c sctp.Config) *dialogue {
	if c.Streams == 0 {
		c.Streams = 4
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = 1444
	}
	return &dialogue{T: t, a: sctp.New(epoch, c), now: epoch, given: make(map[uint16]uint64)}
}

// bytes reads annotated hex; "+ N of XX" at the end stands for N bytes.
func unhex(t *testing.T, text string) []byte {
	t.Helper()
	text, tail, found := strings.Cut(text, " + ")
	b := testrig.Bytes(t, text)
	if found {
		var n int
		var v byte
		if _, err := fmt.Sscanf(tail, "%d of %x", &n, &v); err != nil {
			t.Fatal(err)
		}
		b = append(b, bytes.Repeat([]byte{v}, n)...)
	}
	return b
}

// hears gives a message of the peer's to the Association.
func (d *dialogue) hears(id uint16, ppid uint32, text string) {
	d.Helper()
	d.a.Receive(d.now, sctp.Message{Stream: id, PPID: ppid, Data: unhex(d.T, text)})
}

// says expects the next message to be exactly this.
func (d *dialogue) says(id uint16, ppid uint32, text string) {
	d.Helper()
	m, ok := d.a.Output()
	want := unhex(d.T, text)
	if !ok || m.Stream != id || m.PPID != ppid || !bytes.Equal(m.Data, want) || m.Ordered {
		d.Fatalf("said % x on stream %d with PPID %d (%t), want % x on %d with %d",
			m.Data, m.Stream, m.PPID, ok, want, id, ppid)
	}
	d.given[id]++
}

// silent expects no message, and no event.
func (d *dialogue) silent() {
	d.Helper()
	if m, ok := d.a.Output(); ok {
		d.Fatalf("said % x on stream %d with PPID %d", m.Data, m.Stream, m.PPID)
	}
	if e, ok := d.a.Event(); ok {
		d.Fatalf("told %+v", e)
	}
}

// acked has SCTP acknowledge all that was said on a stream.
func (d *dialogue) acked(id uint16) { d.a.Acked(d.now, id, d.given[id]) }

// told expects the next event to be of a kind.
func (d *dialogue) told(k sctp.EventKind, id uint16) sctp.Event {
	d.Helper()
	e, ok := d.a.Event()
	if !ok || e.Kind != k || e.Stream != id {
		d.Fatalf("told %+v (%t), want kind %d on stream %d", e, ok, k, id)
	}
	return e
}

func (d *dialogue) state(id uint16, want sctp.State) {
	d.Helper()
	if got := d.a.State(id); got != want {
		d.Fatalf("stream %d is in state %v, want %v", id, got, want)
	}
}

// later lets time pass.
func (d *dialogue) later(by time.Duration) {
	d.now = d.now.Add(by)
	if at := d.a.Deadline(); !at.IsZero() && !d.now.Before(at) {
		d.a.HandleTimeout(d.now)
	}
}

// connect asks for a session without anything of RFC 6581.
func (d *dialogue) connect() uint16 {
	d.Helper()
	id, err := d.a.Connect(d.now, mpa.Offer{Dialect: mpa.DialectRFC5044})
	testrig.Must(d.T, err)
	return id
}

// accept accepts the peer's request for a session.
func (d *dialogue) accept(id uint16) {
	d.Helper()
	_, err := d.a.Accept(d.now, id, mpa.Answer{})
	testrig.Must(d.T, err)
}

// wantRule expects an error to be a Violation of a rule, and to name its section.
func wantRule(t *testing.T, err error, want sctp.Rule) {
	t.Helper()
	var v *sctp.Violation
	if !errors.As(err, &v) || v.Rule != want || !strings.Contains(v.Error(), want.Section()) {
		t.Errorf("got %v, want a violation of %v (%s)", err, want, want.Section())
	}
}
