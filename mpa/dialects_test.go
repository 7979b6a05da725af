package mpa_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A play is a startup that succeeds, from one end's view: what it sends at first (an
// Initiator), and what it sends upon each frame that it receives.
type play struct {
	name  string
	role  mpa.Role
	offer mpa.Offer
	cfg   mpa.ResponderConfig
	start string
	acts  []act
}

// act is a frame received, and what is sent then: for a Responder's first one by
// Accept.
type act struct {
	awaits string // what a timeout calls it
	frame  string
	sends  string
}

func (p *play) initiates() bool { return p.role == mpa.RoleInitiator }

// plays has every dialect from either end.
var plays = []play{
	{
		"RFC 5044 Initiator", mpa.RoleInitiator, mpa.Offer{Dialect: mpa.DialectRFC5044}, mpa.ResponderConfig{},
		reqKey + "40 01 00 00", []act{{"MPA Reply Frame", repKey + "40 01 00 02 79 6f", ""}},
	},
	{
		"RFC 5044 Responder", mpa.RoleResponder, mpa.Offer{}, mpa.ResponderConfig{},
		"", []act{{"MPA Request Frame", reqKey + "00 01 00 02 68 69", repKey + "40 01 00 00"}},
	},
	{
		"RFC 6581 Initiator", mpa.RoleInitiator, mpa.Offer{}, mpa.ResponderConfig{},
		reqKey + "50 02 00 04 c0 00 c0 00", []act{{"MPA Reply Frame", repKey + "50 02 00 06 80 01 c0 00 79 6f", ""}},
	},
	{
		"RFC 6581 Responder", mpa.RoleResponder, mpa.Offer{}, mpa.ResponderConfig{},
		"", []act{{"MPA Request Frame", reqKey + "10 02 00 06 80 00 c0 00 68 69", repKey + "50 02 00 04 80 01 c0 00"}},
	},
	{
		"Rtr Initiator", mpa.RoleInitiator, mpa.Offer{Dialect: mpa.DialectRtr,
			PrivateData: []byte("hi")}, mpa.ResponderConfig{},
		rtrRequest, []act{{"MPA Reply Frame", rtrReply, rtrFrame}},
	},
	{
		"Rtr Responder", mpa.RoleResponder, mpa.Offer{PrivateData: []byte("yo")}, rtrServed,
		"", []act{{"MPA Request Frame", rtrRequest, rtrReply}, {"Rtr frame", rtrFrame, ""}},
	},
	{
		"revision 0 Initiator", mpa.RoleInitiator,
		mpa.Offer{Kind: rdmac, PrivateData: []byte("hi")}, mpa.ResponderConfig{},
		revision0Request, []act{{"MPA Reply Frame", revision0Reply, ""}},
	},
	{
		"revision 0 Responder", mpa.RoleResponder, mpa.Offer{PrivateData: []byte("yo")}, mpa.ResponderConfig{},
		"", []act{{"MPA Request Frame", revision0Request, revision0Reply}},
	},
	{
		"Passive", mpa.RoleInitiator, mpa.Offer{Dialect: mpa.DialectStartKey}, mpa.ResponderConfig{},
		startKeyC, []act{{"Start Key", startKeyC, ""}},
	},
	{
		"Active", mpa.RoleResponder, mpa.Offer{}, mpa.ResponderConfig{},
		"", []act{{"MPA Request Frame", startKeyC, startKeyC}},
	},
	{
		"Passive with messages", mpa.RoleInitiator,
		mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true, PrivateData: []byte("hello")}, mpa.ResponderConfig{},
		helloMessage, []act{{"private data message", noMessage, startKeyC}, {"Start Key", startKeyC, ""}},
	},
	{
		"Active with messages", mpa.RoleResponder, mpa.Offer{PrivateData: []byte("no")},
		mpa.ResponderConfig{Messages: true},
		"", []act{{"MPA Request Frame", helloMessage, noMessage}, {"Start Key", startKeyC, startKeyC}},
	},
}

// startDialogue starts a play.
func (p *play) startDialogue(t *testing.T) *dialogue {
	t.Helper()
	if p.initiates() {
		d, _ := starting(t, p.offer, unhex(t, p.start))
		return d
	}
	d, _ := responder(t, p.cfg)
	return d
}

// upTo begins a play and plays it up to an act.
func (p *play) upTo(t *testing.T, n int) *dialogue {
	t.Helper()
	d := p.startDialogue(t)
	for k := range n {
		d.input(unhex(t, p.acts[k].frame), 0)
		p.send(d, k)
	}
	return d
}

// send expects what is sent upon a frame.
func (p *play) send(d *dialogue, n int) {
	d.Helper()
	d.wantOK()
	if want := unhex(d.T, p.acts[n].sends); n == 0 && !p.initiates() {
		d.wantAnswer(p.offer.Answer(), want)
	} else {
		d.output(want)
	}
}

// each runs a test for each act of each play.
func each(t *testing.T, f func(t *testing.T, p *play, n int)) {
	for _, p := range plays {
		for n, a := range p.acts {
			t.Run(fmt.Sprintf("%s, %s", p.name, a.awaits), func(t *testing.T) { f(t, &p, n) })
		}
	}
}

// Proves Q01, Q09, Q11, Q13, K02, K03, T03, E01: under every dialect a frame may be split
// anywhere, what is after it is left
// alone, and only an Initiator, or a Responder with an Rtr frame, may send the first FPDU.
func TestEveryDialectSplit(t *testing.T) {
	const behind = "first FPDU"
	each(t, func(t *testing.T, p *play, n int) {
		frame := unhex(t, p.acts[n].frame)
		var whole mpa.Negotiated
		for at := range frame {
			d := p.upTo(t, n)
			d.input(frame[:at], 0)
			d.wantOK()
			if d.m.Done() {
				t.Fatalf("done after %d bytes", at)
			}
			if p.initiates() && n+1 < len(p.acts) {
				d.input(frame[at:], 0) // it goes on to the next frame, whose key this is not
			} else {
				d.input(append(frame[at:], behind...), len(behind))
			}
			p.send(d, n)
			if last := n == len(p.acts)-1; d.m.Done() != last {
				t.Fatalf("done %v after frame %d of %d", d.m.Done(), n+1, len(p.acts))
			}
			if at == 0 {
				whole = d.m.Negotiated()
			}
			if diff := cmp.Diff(whole, d.m.Negotiated()); diff != "" {
				t.Errorf("split at %d: %s", at, diff)
			}
		}
		if n == len(p.acts)-1 && whole.SendFirst != (p.initiates() || whole.Dialect == mpa.DialectRtr) {
			t.Errorf("%+v", whole)
		}
	})
}

// Proves Q02, Q16, K04, T02: under every dialect a wrong byte in the key closes the connection.
func TestEveryDialectWrongKey(t *testing.T) {
	each(t, func(t *testing.T, p *play, n int) {
		if strings.HasSuffix(p.acts[n].frame, noMessage) || p.acts[n].frame == helloMessage {
			return // messages have no key
		}
		for at := range 15 {
			bad := unhex(t, p.acts[n].frame)
			bad[at] ^= 0x80
			d := p.upTo(t, n)
			d.input(bad[:mpa.KeyLen], 0)
			e := d.wantError(mpa.FailureKey, mpa.CodeStartupFrame, "bad Key at byte")
			if e.Role != p.role {
				t.Errorf("%v", e.Role)
			}
			d.output(nil)
		}
	})
}

// Proves Q12, Q16, Q03: under every dialect and at every step there is a time limit, for the
// whole of a Reply, and
// for each frame that a Responder awaits; the consumer's own time does not count.
func TestEveryDialectTimeout(t *testing.T) {
	each(t, func(t *testing.T, p *play, n int) {
		frame := unhex(t, p.acts[n].frame)
		for _, arrived := range []int{0, 1, len(frame) - 1} {
			d := p.startDialogue(t)
			limit := map[bool]time.Duration{true: 10 * time.Second, false: 5 * time.Second}[p.initiates()]
			left := limit
			for k := range n {
				d.advance(time.Second)
				d.input(unhex(t, p.acts[k].frame), 0)
				if !p.initiates() {
					d.wantDeadline(0)
					d.advance(time.Hour)
				}
				p.send(d, k)
				if p.initiates() {
					left -= time.Second
				}
			}
			d.wantDeadline(left)
			d.advance(left - 1)
			d.input(frame[:arrived], 0)
			d.advance(0)
			d.wantOK()
			d.advance(1)
			e := d.wantError(mpa.FailureTimeout, mpa.CodeConnectionLost,
				fmt.Sprintf("no %s within %v: ", p.acts[n].awaits, limit))
			if !e.Timeout() || arrived == 0 != strings.Contains(e.Error(), "nothing arrived") ||
				e.Err.Offset != uint64(arrived) {
				t.Errorf("%d bytes arrived: %v", arrived, e)
			}
		}
	})
}

// Proves Q12: without a timeout there is none, at no step.
func TestEveryDialectNoTimeout(t *testing.T) {
	each(t, func(t *testing.T, p *play, n int) {
		q := *p
		q.offer.Timeout, q.cfg.Timeout = -1, -1
		d := q.upTo(t, n)
		d.wantDeadline(0)
		d.advance(1000 * time.Hour)
		d.wantOK()
	})
}

// Proves Q16, E13, K07: under every dialect and at every step the peer may close the
// connection, which is an error
// with code 1, but for a close that is a rejection.
func TestEveryDialectClosed(t *testing.T) {
	each(t, func(t *testing.T, p *play, n int) {
		frame := unhex(t, p.acts[n].frame)
		for arrived := range frame {
			d := p.upTo(t, n)
			d.input(frame[:arrived], 0)
			d.closed()
			if p.offer.Messages && n == 1 && arrived == 0 {
				var e *mpa.RejectError
				if !errors.As(d.err, &e) || !e.Closed || string(e.PrivateData) != "no" {
					t.Error(d.err)
				}
				continue
			}
			e := d.wantError(mpa.FailureClosed, mpa.CodeConnectionLost,
				"closed the connection before its "+p.acts[n].awaits+" was whole")
			if e.Err.Hint == "" || e.Fallback != (p.name == "RFC 6581 Initiator" && arrived == 0) {
				t.Errorf("%d bytes arrived: %v, Fallback %v", arrived, e, e.Fallback)
			}
		}
		d := p.upTo(t, n)
		d.input(frame, 0)
		if !p.initiates() && n == 0 {
			d.closed()
			d.wantError(mpa.FailureClosed, mpa.CodeConnectionLost, "before its Request was answered")
			return
		}
		p.send(d, n)
		if !d.m.Done() {
			return
		}
		d.closed()
		var e *mpa.StartupError
		if !errors.As(d.err, &e) || e.Failure != mpa.FailureClosed || e.Err.Hint == "" ||
			!strings.Contains(e.Error(), "after the startup") {
			t.Error(d.err)
		}
	})
}

// Proves Q08, Q13, Q16, E01: under every dialect private data ends at 512 bytes, the enhanced
// data included, and reaches
// the consumer whole.
func TestEveryDialectPrivateData(t *testing.T) {
	for _, p := range plays {
		found, _, _ := mpa.CutStartup(unhex(t, p.acts[0].frame))
		f, ok := found.(mpa.StartupFrame)
		if !ok {
			continue // Start Keys have none, and messages are tested by themselves
		}
		t.Run(p.name, func(t *testing.T) {
			fields := f.Fields()
			enhanced := len(f.PrivateData()) - len(f.ULPData())
			ulp := bytes.Repeat([]byte{'p'}, 512-enhanced)
			fields.PrivateData = append(bytes.Clone(f.PrivateData()[:enhanced]), ulp...)
			d := p.startDialogue(t)
			d.input(append(frame(fields), "FPDU"...), 4)
			p.send(d, 0)
			if r, ok := d.m.(*mpa.Responder); ok && !bytes.Equal(r.Request().PrivateData, ulp) {
				t.Errorf("% x", r.Request().PrivateData)
			}
			if got := d.m.Negotiated().PrivateData; !bytes.Equal(got, ulp) {
				t.Errorf("% x", got)
			}
			for _, length := range []int{513, 514, 0xffff} {
				fields.PDLength = length
				d := p.startDialogue(t)
				d.input(frame(fields)[:20], 0)
				d.wantError(mpa.FailurePrivateData, mpa.CodeStartupFrame,
					fmt.Sprintf("bad PD_Length at byte 18 of the startup frame: %d bytes, and at most 512", length))
				d.output(nil)
			}
		})
	}
}

// Proves Q05, Q10, Q13, E03: under every dialect a Responder rejects, with private data and
// without, and the Initiator of that dialect
// is told; where there are Request Frames the connection stays open, with what is after the Reply in it.
func TestEveryDialectReject(t *testing.T) {
	for _, p := range plays {
		if p.initiates() {
			continue
		}
		for _, data := range []string{"", "no", strings.Repeat("n", 508)} {
			r := mpa.NewResponder(p.cfg)
			r.Start(epoch)
			if _, err := r.Input(epoch, unhex(t, p.acts[0].frame)); err != nil {
				t.Fatal(err)
			}
			q := r.Request()
			if q.Dialect == mpa.DialectStartKey && !p.cfg.Messages {
				continue // has no room; see TestMessagesReject
			}
			reply, err := r.Reject([]byte(data), 0, 0)
			if err != nil || !r.Done() || r.KeepsTCP() != (q.Dialect != mpa.DialectStartKey) || r.Want() != 0 ||
				!r.Deadline().IsZero() || r.Output() != nil {
				t.Fatalf("%s: %v, wants %d, deadline %v", p.name, err, r.Want(), r.Deadline())
			}
			o := mpa.Offer{Dialect: q.Dialect, Messages: p.cfg.Messages}
			i := clone(t, o)
			d := &dialogue{T: t, m: i, twin: clone(t, o), now: epoch}
			if p.cfg.Messages {
				d.input(reply, 0)
				d.closed()
			} else {
				d.input(append(bytes.Clone(reply), "ULP's own"...), 9)
				d.wantOK()
				d.output(nil)
			}
			e := i.Rejected()
			if e == nil || !i.Done() || string(e.PrivateData) != data || i.Want() != 0 || !i.Deadline().IsZero() ||
				e.Enhanced != (q.Dialect == mpa.DialectRFC6581) {
				t.Errorf("%s: %+v", p.name, e)
			}
		}
	}
}

// Proves Q13: a Request belongs to the consumer, and what it does with the private data does
// not reach the machine.
func TestRequestPrivateDataAlone(t *testing.T) {
	for _, p := range plays {
		if p.initiates() {
			continue
		}
		d := p.startDialogue(t)
		in := unhex(t, p.acts[0].frame)
		d.input(in, 0)
		clear(in)
		q := d.m.(*mpa.Responder).Request()
		want := string(q.PrivateData)
		_ = append(q.PrivateData, "more"...)
		p.send(d, 0)
		for n := 1; n < len(p.acts); n++ {
			d.input(unhex(t, p.acts[n].frame), 0)
			p.send(d, n)
		}
		if got := string(d.m.Negotiated().PrivateData); got != want ||
			strings.Trim(want, "\x00") == "" && len(want) > 0 {
			t.Errorf("%s: %q want %q", p.name, got, want)
		}
	}
	o := mpa.Offer{Dialect: mpa.DialectRFC5044, PrivateData: []byte("hello")}
	i, err := mpa.NewInitiator(o)
	testrig.Must(t, err)
	clear(o.PrivateData)
	if b := i.Start(epoch); !bytes.HasSuffix(b, []byte("hello")) {
		t.Errorf("% x", b)
	}
}
