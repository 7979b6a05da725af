package script

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/mpa"
)

// A Startup is a Request, Reply or Rtr Frame to be sent, with any values. PrivateData
// of the fields, if it is set, goes before Enhanced and ULP.
type Startup struct {
	mpa.StartupFields
	Enhanced *mpa.Enhanced // of RFC 6581; nil: none
	ULP      []byte        // private data after it
}

// Bytes returns the frame as it is sent.
func (f Startup) Bytes() []byte {
	fields := f.Fields()
	return mpa.AppendStartup(nil, &fields)
}

// Fields returns the fields of the frame, with all of its private data.
func (f Startup) Fields() mpa.StartupFields {
	fields := f.StartupFields
	if fields.PrivateData == nil {
		if f.Enhanced != nil {
			fields.PrivateData = mpa.AppendEnhanced(nil, f.Enhanced)
		}
		fields.PrivateData = append(fields.PrivateData, f.ULP...)
	}
	return fields
}

// Request returns a Request of a dialect with frames that any peer takes: CRCs, no
// markers but in revision 0; in RFC 6581 peer-to-peer, with Write and Read as RTR
// indications, and with depth as IRD and ORD.
func Request(d mpa.Dialect, depth mpa.Depth) Startup {
	f := Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: 1}}
	switch d {
	case mpa.DialectRFC6581:
		f.Rev, f.S = 2, true
		f.Enhanced = &mpa.Enhanced{A: true, C: true, D: true, IRD: depth, ORD: depth}
	case mpa.DialectRtr:
		f.S = true
	case mpa.DialectRevision0:
		f.Rev, f.M = 0, true
	}
	return f
}

// Reply returns an accepting Reply that answers a Request in a dialect: no more than
// the Request asks for, with depth as the highest ORD.
func Reply(d mpa.Dialect, q mpa.StartupFrame, depth mpa.Depth) Startup {
	f := Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: q.Rev()}}
	switch d {
	case mpa.DialectRFC6581:
		e, _ := q.Enhanced()
		f.S, f.Enhanced = true, AnswerEnhanced(e, depth)
	case mpa.DialectRtr:
		f.S = true
	case mpa.DialectRevision0:
		f.M = true
	}
	return f
}

// AnswerEnhanced returns enhanced data that accepts a Request's, with depth as the highest ORD, and where it wants the
// peer-to-peer model with the First of the RTR indications that it offers: a Send if it offers none.
func AnswerEnhanced(q mpa.Enhanced, depth mpa.Depth) *mpa.Enhanced {
	e := mpa.Enhanced{IRD: q.ORD, ORD: min(q.IRD, depth)}
	if q.IRD == mpa.NoNegotiation {
		e.ORD = mpa.NoNegotiation
	}
	if !q.A {
		return &e
	}
	kind := cmp.Or(First(q.RTR()), mpa.RTRSend)
	e = e.WithRTR(kind)
	if kind == mpa.RTRRead {
		e.IRD = max(e.IRD, 1)
	}
	return &e
}

// First returns the first of the kinds of RTR indications in the order Write, Read, Send: the order of how little a
// peer needs to take one. Of none it is 0.
func First(kinds mpa.RTR) mpa.RTR {
	for _, kind := range []mpa.RTR{mpa.RTRWrite, mpa.RTRRead, mpa.RTRSend} {
		if kinds&kind != 0 {
			return kind
		}
	}
	return 0
}

// RtrFrame returns the Rtr Frame of the 2007 proposal that follows a Reply.
func RtrFrame(r mpa.StartupFrame) Startup {
	return Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyRtr, C: r.C(), Rev: 1}}
}

// Terms are what the startup settles for Full Operation.
type Terms struct {
	MarkersSend    bool  // we insert markers
	MarkersReceive bool  // the other end does
	CRC            bool  // CRCs are generated and checked
	Version        uint8 // of DDP and RDMAP
}

// TermsOf returns what a Request and its Reply have settled for the end that plays a
// role. In revision 0 there are markers and CRCs whatever they say.
func TermsOf(role mpa.Role, q, r mpa.StartupFrame) Terms {
	if q.Rev() == 0 || r.Rev() == 0 {
		return Terms{true, true, true, 0}
	}
	ours, theirs := q, r
	if role == mpa.RoleResponder {
		ours, theirs = r, q
	}
	return Terms{MarkersSend: theirs.M(), MarkersReceive: ours.M(), CRC: q.C() || r.C(), Version: 1}
}

// TermsOfKeys returns what two Start Keys have settled.
func TermsOfKeys(ours, theirs mpa.StartKey) Terms {
	return Terms{MarkersSend: theirs.M(), MarkersReceive: ours.M(), CRC: ours.C() || theirs.C()}
}

// String returns, for instance, "version 1, CRC, markers sent".
func (t Terms) String() string {
	parts := []string{fmt.Sprintf("version %d", t.Version)}
	for _, p := range []struct {
		set  bool
		text string
	}{{t.CRC, "CRC"}, {t.MarkersSend, "markers sent"}, {t.MarkersReceive, "markers received"}} {
		if p.set {
			parts = append(parts, p.text)
		}
	}
	return strings.Join(parts, ", ")
}
