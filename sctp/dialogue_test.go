package sctp_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// TestAccepted is the legal sequence of RFC 5043, section 6.2, seen from the active side.
//
// Proves C01, C03, C04: Initiate, Accept, segments both ways, a Terminate of each side.
func TestAccepted(t *testing.T) {
	d := newDialogue(t, sctp.Config{Active: true})
	id, err := d.a.Connect(d.now, mpa.Offer{Dialect: mpa.DialectRFC5044, PrivateData: []byte("hi"), IRD: 3, ORD: 4})
	testrig.Must(t, err)
	d.says(id, 17, `0000 # DDP-SSN
		0001 # Initiate
		6869 # private data`)
	if err := d.a.Send(id, []byte("early")); !errors.Is(err, sctp.ErrState) {
		t.Errorf("a segment before the Accept: %v", err)
	}
	d.hears(id, 17, `0000 # DDP-SSN, of the peer's own direction
		0002 # Accept
		796f # private data`)
	n := d.told(sctp.EventEstablished, id).Negotiated
	want := mpa.Negotiated{
		Role: mpa.RoleInitiator, Dialect: mpa.DialectRFC5044, DDPVersion: 1, RDMAPVersion: 1, IRD: 3, ORD: 4,
		PeerIRD: mpa.NoNegotiation, PeerORD: mpa.NoNegotiation, SendFirst: true, PrivateData: []byte("yo"),
	}
	if diff := cmp.Diff(want, n); diff != "" {
		t.Error(diff)
	}
	testrig.Must(t, d.a.Send(id, []byte("A"), []byte("BC")))
	d.says(id, 16, `0001 # the second message
		414243 # the DDP Segment, of two parts`)
	d.hears(id, 16, `0001 444546`)
	if e := d.told(sctp.EventSegment, id); e.Number != 1 || string(e.Segment) != "DEF" {
		t.Errorf("told %+v", e)
	}
	d.a.Close(d.now, id)
	d.says(id, 17, `0002 0004 # a Terminate has no private data`)
	d.state(id, sctp.TerminateSent)
	d.hears(id, 16, `0002 47`) // which was under way
	d.told(sctp.EventSegment, id)
	d.hears(id, 17, `0003 0004`)
	if e := d.told(sctp.EventTerminate, id); e.Number != 3 {
		t.Errorf("told %+v", e)
	}
	d.state(id, sctp.Draining)
	d.acked(id)
	if e := d.told(sctp.EventEnded, id); e.Err != nil {
		t.Error(e.Err)
	}
	d.state(id, sctp.Idle)
	d.silent()
}

// TestAccepting is the same from the passive side, which sends first.
//
// Proves C03, C04: either side may send the first DDP message.
func TestAccepting(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true})
	d.hears(2, 17, `0000 0001 6869`)
	q := d.told(sctp.EventRequest, 2).Request
	if string(q.PrivateData) != "hi" || q.Enhanced || q.IRD != mpa.NoNegotiation || q.ORD != mpa.NoNegotiation {
		t.Errorf("asked %+v", q)
	}
	n, err := d.a.Accept(d.now, 2, mpa.Answer{PrivateData: []byte("yo"), IRD: 1})
	testrig.Must(t, err)
	if n.Role != mpa.RoleResponder || !n.SendFirst || n.IRD != 1 || string(n.PrivateData) != "hi" {
		t.Errorf("agreed on %+v", n)
	}
	d.says(2, 17, `0000 0002 796f`)
	testrig.Must(t, d.a.Send(2, []byte("first")))
	d.says(2, 16, `0001 6669727374`)
	d.hears(2, 16, `0001 00`)
	d.told(sctp.EventSegment, 2)
	d.hears(2, 17, `0002 0004`)
	d.told(sctp.EventTerminate, 2)
	d.a.Close(d.now, 2)
	d.says(2, 17, `0002 0004`)
	d.state(2, sctp.Draining)
	if err := d.a.Send(2, []byte("late")); !errors.Is(err, sctp.ErrState) {
		t.Errorf("a segment after our Terminate: %v", err)
	}
	d.acked(2)
	d.told(sctp.EventEnded, 2)
	d.state(2, sctp.Idle)
	d.silent()
}

// TestEnhanced is the legal sequence with the codes of RFC 6581, section 7.
//
// Proves C01, C02, C04, E15, E16: the 32 bits of IRD, ORD and flags come first in the private data.
func TestEnhanced(t *testing.T) {
	active, passive := newDialogue(t, sctp.Config{Active: true}), newDialogue(t, sctp.Config{Listening: true})
	id, err := active.a.Connect(epoch, mpa.Offer{IRD: 5, ORD: 9, PrivateData: []byte("hi")})
	testrig.Must(t, err)
	const initiate = `0000 0005 # Enhanced Initiate
		c005 # A and B, IRD 5
		c009 # C and D, ORD 9
		6869 # the ULP's private data`
	active.says(id, 17, initiate)
	passive.hears(id, 17, initiate)
	q := passive.told(sctp.EventRequest, id).Request
	if !q.Enhanced || !q.PeerToPeer || q.IRD != 5 || q.ORD != 9 || q.RTR != mpa.RTRSend|mpa.RTRWrite|mpa.RTRRead ||
		string(q.PrivateData) != "hi" {
		t.Errorf("asked %+v", q)
	}
	n, err := passive.a.Accept(epoch, id, mpa.Answer{IRD: 4, MaxIRD: 8, ORD: 7, PrivateData: []byte("yo")})
	testrig.Must(t, err)
	if n.IRD != 8 || n.ORD != 5 || n.PeerIRD != 5 || n.PeerORD != 9 || !n.PeerToPeer {
		t.Errorf("the responder has %+v", n)
	}
	const accept = `0000 0006 # Enhanced Accept
		c008 # A and B, IRD 8
		c005 # C and D, ORD 5
		796f`
	passive.says(id, 17, accept)
	active.hears(id, 17, accept)
	n = active.told(sctp.EventEstablished, id).Negotiated
	if n.IRD != 5 || n.ORD != 8 || n.RTR != mpa.RTRWrite || string(n.PrivateData) != "yo" || n.TerminateCode != 0 {
		t.Errorf("the initiator has %+v", n)
	}
}

// TestRejected is the legal sequence of section 6.3: at the ULP's direction.
//
// Proves C01, C03, C04: an Initiate is rejected in its own kind, with private data.
func TestRejected(t *testing.T) {
	for _, c := range []struct{ initiate, reject string }{
		{`0000 0001`, `0000 0003 6e6f`},
		{`0000 0005 8000 8009`, `0000 0007 8002 8006 6e6f # IRD 2, ORD 6, A and C as they were asked for`},
	} {
		d := newDialogue(t, sctp.Config{Listening: true})
		d.hears(0, 17, c.initiate)
		d.told(sctp.EventRequest, 0)
		testrig.Must(t, d.a.Reject(d.now, 0, []byte("no"), 2, 6))
		d.says(0, 17, c.reject)
		d.state(0, sctp.Draining)
		if _, err := d.a.Accept(d.now, 0, mpa.Answer{}); !errors.Is(err, sctp.ErrState) {
			t.Errorf("accepted afterwards: %v", err)
		}
		d.acked(0)
		d.state(0, sctp.Idle)
		d.silent()
	}
}

// TestBeingRejected is what the active side makes of it.
//
// Proves C03: the consumer gets private data, IRD and ORD of a rejection.
func TestBeingRejected(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   sctp.Refusal
	}{
		"Reject": {`0000 0003 6e6f`, sctp.Refusal{Dialect: mpa.DialectRFC5044, PrivateData: []byte("no")}},
		"Enhanced Reject": {`0000 0007 8001 8006 6e6f`,
			sctp.Refusal{Dialect: mpa.DialectRFC6581, PrivateData: []byte("no"), Enhanced: true, PeerIRD: 1,
				PeerORD: 6, RTR: mpa.RTRWrite}},
		"an Enhanced Reject with enhanced data only": {`0000 0007 8001 8006`,
			sctp.Refusal{Dialect: mpa.DialectRFC6581, Enhanced: true, PeerIRD: 1, PeerORD: 6, RTR: mpa.RTRWrite}},
		"an Enhanced Reject alone": {`0000 0007`, sctp.Refusal{Dialect: mpa.DialectRFC6581}},
		"an Enhanced Reject without enhanced data": {`0000 0007 6e6f`,
			sctp.Refusal{Dialect: mpa.DialectRFC6581, PrivateData: []byte("no")}},
		"Terminate": {`0000 0004`, sctp.Refusal{Provider: true, Fallback: true}},
	} {
		d := newDialogue(t, sctp.Config{Active: true})
		id, err := d.a.Connect(d.now, mpa.Offer{})
		testrig.Must(t, err)
		d.says(id, 17, `0000 0005 c000 c000`)
		d.hears(id, 17, c.answer)
		var got *sctp.Refusal
		if e := d.told(sctp.EventRefused, id); !errors.As(e.Err, &got) || !cmp.Equal(*got, c.want) {
			t.Errorf("%s: told %+v", name, e.Err)
		}
		d.state(id, sctp.Idle)
		d.silent()
		if next := d.connect(); next != id {
			t.Errorf("%s: stream %d is not used again: %d", name, id, next)
		}
	}
}

// TestProviderRejects is the legal sequence of section 6.4: the consumer does not hear of requests beyond a limit, or
// when there is none.
//
// Proves C04, C07: the answer is a Terminate, also to an enhanced Initiate.
func TestProviderRejects(t *testing.T) {
	for name, c := range map[string]struct {
		config sctp.Config
		before int // requests that wait
	}{
		"nobody listens":    {sctp.Config{}, 0},
		"too many requests": {sctp.Config{Listening: true, MaxPending: 2}, 2},
		"too many sessions": {sctp.Config{Listening: true, MaxSessions: 1}, 1},
	} {
		for _, initiate := range []string{`0000 0001`, `0000 0005 8000 c000`} {
			d := newDialogue(t, c.config)
			for id := range c.before {
				d.hears(uint16(id), 17, initiate)
				d.told(sctp.EventRequest, uint16(id))
			}
			d.hears(3, 17, initiate)
			d.says(3, 17, `0000 0004`)
			d.state(3, sctp.Draining)
			d.acked(3)
			d.state(3, sctp.Idle)
			d.silent()
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
}

// TestUnsupportedRTR: the provider rejects a peer-to-peer request for none of the RTR indications that it takes, and
// says which those are.
//
// Proves C01.
func TestUnsupportedRTR(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true, RTR: mpa.RTRSend})
	d.hears(0, 17, `0000 0005 8001 c002`)
	d.says(0, 17, `0000 0007 c000 0000 # A and B: by a Send`)
	d.silent()
	d.hears(1, 17, `0000 0005 0001 0002`) // client-server needs none
	d.told(sctp.EventRequest, 1)
}

// TestOffers: what an Initiate cannot say is refused before it is sent, and a plain one is sent if nothing enhanced is
// wanted.
//
// Proves C01, C02.
func TestOffers(t *testing.T) {
	for _, o := range []mpa.Offer{
		{PrivateData: make([]byte, 509)},
		{Dialect: mpa.DialectRFC5044, PrivateData: make([]byte, 513)},
		{Dialect: mpa.DialectRevision0}, {Dialect: mpa.DialectStartKey},
		{Dialect: mpa.DialectRtr}, {Kind: mpa.KindRDMAC},
		{IRD: mpa.NoNegotiation + 1},
	} {
		d := newDialogue(t, sctp.Config{Active: true})
		if _, err := d.a.Connect(d.now, o); !errors.Is(err, mpa.ErrOffer) {
			t.Errorf("%+v: %v", o, err)
		}
		d.silent()
	}
	d := newDialogue(t, sctp.Config{Active: true})
	id, err := d.a.Connect(d.now, mpa.Offer{ClientServer: true, IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation,
		PrivateData: make([]byte, 512)})
	testrig.Must(t, err)
	d.says(id, 17, `0000 0001 + 512 of 00`)
	d.hears(1, 17, `0000 0001`) // nobody listens
	d.says(1, 17, `0000 0004`)
}

// TestAnswers: neither does an answer that cannot be said use up the request.
//
// Proves C02.
func TestAnswers(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true})
	d.hears(0, 17, `0000 0005 0001 0002`)
	d.told(sctp.EventRequest, 0)
	if _, err := d.a.Accept(d.now, 0, mpa.Answer{PrivateData: make([]byte, 509)}); !errors.Is(err, mpa.ErrOffer) {
		t.Error(err)
	}
	if err := d.a.Reject(d.now, 0, make([]byte, 509), 0, 0); !errors.Is(err, mpa.ErrOffer) {
		t.Error(err)
	}
	testrig.Must(t, d.a.Reject(d.now, 0, make([]byte, 508), 0, 0))
	d.says(0, 17, `0000 0007 0000 0000 + 508 of 00`)
	if err := d.a.Reject(d.now, 0, nil, 0, 0); !errors.Is(err, sctp.ErrState) {
		t.Error(err)
	}
}

// TestInsufficientIRD: the initiator learns that it has to say so by a Terminate of RDMAP, which is a segment.
//
// Proves C04, E05.
func TestInsufficientIRD(t *testing.T) {
	d := newDialogue(t, sctp.Config{Active: true})
	id, err := d.a.Connect(d.now, mpa.Offer{IRD: 1})
	testrig.Must(t, err)
	d.says(id, 17, `0000 0005 c001 c000`)
	d.hears(id, 17, `0000 0006 8000 c002`)
	if n := d.told(sctp.EventEstablished, id).Negotiated; n.TerminateCode != mpa.CodeInsufficientIRD {
		t.Errorf("agreed on %+v", n)
	}
	testrig.Must(t, d.a.Send(id, []byte("T")))
	d.a.Close(d.now, id)
	d.says(id, 16, `0001 54`)
	d.says(id, 17, `0002 0004`)
}

// TestStreams: each side chooses from its own half of the streams, the lowest that is free, and no more than there
// are.
func TestStreams(t *testing.T) {
	for active, want := range map[bool][]uint16{true: {0, 2, 4}, false: {1, 3}} {
		d := newDialogue(t, sctp.Config{Active: active, Streams: 5})
		for _, id := range want {
			if got := d.connect(); got != id {
				t.Errorf("active %t: stream %d, want %d", active, got, id)
			}
			d.says(id, 17, `0000 0001`)
		}
		if _, err := d.a.Connect(d.now, mpa.Offer{}); !errors.Is(err, sctp.ErrLimit) {
			t.Errorf("active %t: one more: %v", active, err)
		}
	}
	d := newDialogue(t, sctp.Config{Active: true, MaxSessions: 1})
	d.connect()
	if _, err := d.a.Connect(d.now, mpa.Offer{}); !errors.Is(err, sctp.ErrLimit) {
		t.Errorf("more sessions than may be: %v", err)
	}
}

// TestUnused ends an association that has no session.
func TestUnused(t *testing.T) {
	d := newDialogue(t, sctp.Config{Listening: true})
	d.later(29 * time.Second)
	d.hears(0, 17, `0000 0001`)
	d.told(sctp.EventRequest, 0)
	d.later(time.Hour)
	testrig.Must(t, d.a.Reject(d.now, 0, nil, 0, 0))
	d.says(0, 17, `0000 0003`)
	d.acked(0)
	d.later(29 * time.Second)
	if e := d.a.End(); e.How != sctp.NotYet {
		t.Fatalf("ended %+v", e)
	}
	d.later(time.Second)
	if e := d.a.End(); e.How != sctp.Shutdown || !errors.Is(e.Cause, sctp.ErrUnused) {
		t.Errorf("ended %+v", e)
	}
	if at := d.a.Deadline(); !at.IsZero() {
		t.Errorf("a deadline at %v", at)
	}
	d = newDialogue(t, sctp.Config{UnusedTimeout: -1, Listening: true})
	if at := d.a.Deadline(); !at.IsZero() {
		t.Errorf("a deadline at %v", at)
	}
	d.later(29 * time.Second)
	d.a.StopListening()
	d.later(time.Second - 1)
	if e := d.a.End(); e.How != sctp.NotYet {
		t.Fatalf("ended %+v", e)
	}
	d.later(1)
	if e := d.a.End(); e.How != sctp.Shutdown || !errors.Is(e.Cause, sctp.ErrUnused) {
		t.Errorf("ended %+v", e)
	}
}
