package mpa_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// machine is what both startup machines have.
type machine interface {
	Input(now time.Time, b []byte) (int, error)
	Output() []byte
	Want() int
	Done() bool
	Negotiated() mpa.Negotiated
	Deadline() time.Time
	HandleTimeout(now time.Time) error
	PeerClosed(cause error) error
}

// dialogue plays the peer of a machine, with time of its own. A twin of the machine
// gets the same bytes one by one and must come to the same result.
type dialogue struct {
	*testing.T
	m, twin machine
	now     time.Time
	err     error
}

// input gives bytes to the machine and expects it to take all but the last few.
func (d *dialogue) input(b []byte, left int) {
	d.Helper()
	before := bytes.Clone(b)
	n, err := d.m.Input(d.now, b)
	d.err = err
	if err == nil && n != len(b)-left {
		d.Fatalf("took %d of %d bytes, and %d should be left", n, len(b), left)
	}
	if !bytes.Equal(b, before) {
		d.Error("the machine changed its input")
	}
	taken, twinErr := drip(d.twin, d.now, b)
	if taken != n {
		d.Errorf("took %d bytes at once, and %d one by one", n, taken)
	}
	if errText(err) != errText(twinErr) {
		d.Errorf("at once: %v, one by one: %v", err, twinErr)
	}
	if diff := cmp.Diff(d.m.Negotiated(), d.twin.Negotiated()); diff != "" {
		d.Errorf("at once and one by one: %s", diff)
	}
	if d.m.Done() && d.m.Want() > 0 || d.m.Done() != d.twin.Done() || d.m.Want() != d.twin.Want() {
		d.Errorf("done %v, wants %d; the twin %v, %d", d.m.Done(), d.m.Want(), d.twin.Done(), d.twin.Want())
	}
}

// drip gives bytes to a machine one by one.
func drip(m machine, now time.Time, b []byte) (taken int, err error) {
	for i := range b {
		wanted := m.Want()
		n, err := m.Input(now, b[i:i+1])
		taken += n
		if n > wanted {
			return taken, fmt.Errorf("took a byte and wanted %d", wanted)
		}
		if err != nil || n == 0 {
			return taken, err
		}
	}
	return taken, nil
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// advance lets time pass, up to the machine's deadline if that comes first.
func (d *dialogue) advance(by time.Duration) {
	d.Helper()
	d.now = d.now.Add(by)
	d.err = d.m.HandleTimeout(d.now)
	if twin := d.twin.HandleTimeout(d.now); errText(twin) != errText(d.err) {
		d.Errorf("%v, and the twin: %v", d.err, twin)
	}
}

// closed tells the machine that the peer has closed the connection.
func (d *dialogue) closed() {
	d.Helper()
	d.err = d.m.PeerClosed(io.EOF)
	if twin := d.twin.PeerClosed(io.EOF); errText(twin) != errText(d.err) {
		d.Errorf("%v, and the twin: %v", d.err, twin)
	}
}

// output expects the machine to have something to send, once, or nothing.
func (d *dialogue) output(want []byte) {
	d.Helper()
	for _, m := range []machine{d.m, d.twin} {
		if got := m.Output(); !bytes.Equal(got, want) {
			d.Errorf("output\n% x want\n% x", got, want)
		}
		if again := m.Output(); len(again) > 0 {
			d.Errorf("output again: % x", again)
		}
	}
}

func (d *dialogue) wantOK() {
	d.Helper()
	if d.err != nil {
		d.Fatal(d.err)
	}
}

func (d *dialogue) wantDeadline(in time.Duration) {
	d.Helper()
	var want time.Time
	if in > 0 {
		want = d.now.Add(in)
	}
	for _, m := range []machine{d.m, d.twin} {
		if got := m.Deadline(); !got.Equal(want) {
			d.Errorf("deadline %v want %v", got, want)
		}
	}
}

// wantError expects the last step to have failed, for good.
func (d *dialogue) wantError(f mpa.Failure, code mpa.Code, text string) *mpa.StartupError {
	d.Helper()
	var e *mpa.StartupError
	if !errors.As(d.err, &e) {
		d.Fatalf("got %v want %v", d.err, f)
	}
	if e.Failure != f || e.Err.Code != code || !strings.Contains(e.Error(), text) {
		d.Errorf("got %v, code %d: %v\nwant %v, code %d: %q", e.Failure, e.Err.Code, e, f, code, text)
	}
	if e.Err.Hint == "" && f != mpa.FailureClosed {
		d.Errorf("no hint: %v", e)
	}
	if n, err := d.m.Input(d.now, []byte("more")); n != 0 || err != error(e) {
		d.Errorf("the error is not sticky: %d, %v", n, err)
	}
	if d.m.Done() || !d.m.Deadline().IsZero() || d.m.Want() != 0 {
		d.Errorf("after %v: done %v, deadline %v, wants %d", e, d.m.Done(), d.m.Deadline(), d.m.Want())
	}
	return e
}

func (d *dialogue) wantNegotiated(want mpa.Negotiated) {
	d.Helper()
	d.wantOK()
	if !d.m.Done() || !d.m.Deadline().IsZero() || d.m.Want() != 0 {
		d.Errorf("done %v, deadline %v, wants %d", d.m.Done(), d.m.Deadline(), d.m.Want())
	}
	if diff := cmp.Diff(want, d.m.Negotiated(), cmpopts.EquateEmpty()); diff != "" {
		d.Error(diff)
	}
}

// initiator begins a dialogue with an Initiator and expects its Request.
func initiator(t *testing.T, o mpa.Offer, want mpa.StartupFields) (*dialogue, *mpa.Initiator) {
	t.Helper()
	return starting(t, o, frame(want))
}

// starting begins a dialogue with an Initiator and expects its first frame.
func starting(t *testing.T, o mpa.Offer, want []byte) (*dialogue, *mpa.Initiator) {
	t.Helper()
	a, err := mpa.NewInitiator(o)
	testrig.Must(t, err)
	twin, _ := mpa.NewInitiator(o)
	twin.Start(epoch)
	if got := a.Start(epoch); !bytes.Equal(got, want) {
		t.Fatalf("first frame\n% x want\n% x", got, want)
	}
	return &dialogue{T: t, m: a, twin: twin, now: epoch}, a
}

// responder begins a dialogue with a Responder, of the default configuration if there
// is no other.
func responder(t *testing.T, cfg ...mpa.ResponderConfig) (*dialogue, *mpa.Responder) {
	t.Helper()
	cfg = append(cfg, mpa.ResponderConfig{})
	a, twin := mpa.NewResponder(cfg[0]), mpa.NewResponder(cfg[0])
	a.Start(epoch)
	twin.Start(epoch)
	return &dialogue{T: t, m: a, twin: twin, now: epoch}, a
}

// wantReply accepts the Request and expects a Reply.
func (d *dialogue) wantReply(o mpa.Answer, want mpa.StartupFields) {
	d.Helper()
	d.wantAnswer(o, frame(want))
}

// wantAnswer accepts the Request and expects bytes.
func (d *dialogue) wantAnswer(o mpa.Answer, want []byte) {
	d.Helper()
	d.wantOK()
	for _, m := range []machine{d.m, d.twin} {
		got, err := m.(*mpa.Responder).Accept(d.now, o)
		if err != nil {
			d.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			d.Fatalf("answer\n% x want\n% x", got, want)
		}
	}
}

// wantReject rejects the Request and expects bytes.
func (d *dialogue) wantReject(privateData string, want []byte) {
	d.Helper()
	d.wantOK()
	for _, m := range []machine{d.m, d.twin} {
		got, err := m.(*mpa.Responder).Reject([]byte(privateData), 0, 0)
		if err != nil || !bytes.Equal(got, want) {
			d.Fatalf("rejection\n% x want\n% x: %v", got, want, err)
		}
		if _, err := m.(*mpa.Responder).Accept(d.now, mpa.Answer{}); err != mpa.ErrState {
			d.Errorf("Accept after Reject: %v", err)
		}
	}
}

// bytes reads annotated hex.
func unhex(t *testing.T, text string) []byte {
	t.Helper()
	return testrig.Bytes(t, text)
}
