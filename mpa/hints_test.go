package mpa_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// How a dialogue comes to its end.
const (
	atOnce  = iota // what arrived is an error
	inVain         // no more arrives, and the deadline passes
	thenFIN        // no more arrives, and the peer closes
)

// A user is told what the peer may have meant, by what has arrived and how it ended.
//
// Proves Q02, Q03, Q12, Q16, K04.
func TestHints(t *testing.T) {
	startKey, messages := mpa.Offer{Dialect: mpa.DialectStartKey},
		mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true}
	noStartKey := mpa.ResponderConfig{Dialects: []mpa.Dialect{mpa.DialectRFC5044}}
	long := string(mpa.AppendPrivateDataMessage(nil, []byte("twenty bytes of data"), -1))
	for _, c := range []struct {
		name string
		end  any    // mpa.Offer of an Initiator, or mpa.ResponderConfig
		got  string // what arrived
		how  int    // and how it ended
		hint string // what the hint says
	}{
		{"nothing for a Request", mpa.Offer{}, "", inVain,
			"has not decided yet, or does not speak MPA, or not this dialect"},
		{"half a Reply", mpa.Offer{}, mpa.KeyReply[:7], inVain, "stopped in the middle of its MPA Reply Frame"},
		{"nothing for a Start Key", startKey, "", inVain, "waits for the 4 bytes more that a Request Frame has"},
		{"half a Start Key", startKey, mpa.KeyStart[:7], inVain, "stopped in the middle of its Start Key"},
		{"nothing for a message", messages, "", inVain, "takes no private data messages: leave Messages off"},
		{"half a message", messages, long[:16], inVain, "stopped in the middle of its private data message"},
		{"a message and no Start Key", messages, long, inVain,
			"answered our private data message, and neither waits for a Start Key nor closes"},
		{"a message for a Request", mpa.Offer{}, long, atOnce, "may be the private data message of another Initiator"},
		{"a short message for a Request", mpa.Offer{}, "\x00\x05hello", inVain,
			"may be the private data message of another Initiator"},

		{"the longest message there can be", mpa.ResponderConfig{}, "\x02\x00fourteen bytes", atOnce,
			"may be a private data message, which goes before Start Keys"},
		{"a longer message than there can be", mpa.ResponderConfig{}, "\x02\x01fourteen bytes", atOnce,
			"the peer does not speak MPA, or streaming-mode data"},
		{"a misspelled key", mpa.ResponderConfig{}, "MPA id Req frame", atOnce, "only upper and lower case differ"},
		{"four wrong bytes", mpa.ResponderConfig{}, "MPA ID Xxx Xrame", atOnce,
			"4 bytes differ, the first is byte 7"},
		{"five wrong bytes", mpa.ResponderConfig{}, "MPA ID Xxx Xxame", atOnce,
			"the peer does not speak MPA, or streaming-mode data"},
		{"nearly a Start Key", mpa.ResponderConfig{}, "MPA ident fra..\x00", atOnce,
			"compared with the Start Key, 2 bytes differ"},
		{"nearly a Start Key, which is not served", noStartKey, "MPA ident fra..\x00", atOnce,
			"the peer does not speak MPA, or streaming-mode data"},

		{"an FPDU", mpa.Offer{}, "\x00\x2a\x41\x43" + strings.Repeat("\x00", 12), atOnce,
			"the peer is in Full Operation already"},
		{"an FPDU after a marker", mpa.Offer{}, "\x00\x00\x00\x00\x00\x2a\x41\x43" + strings.Repeat("\x00", 8), atOnce,
			"the peer is in Full Operation already"},
		{"the longest FPDU", mpa.Offer{}, "\x3f\xff\x41\x43" + strings.Repeat("\x00", 12), atOnce,
			"the peer is in Full Operation already"},
		{"an FPDU that is too long", mpa.Offer{}, "\x40\x2a\x41\x43" + strings.Repeat("\x00", 12), atOnce,
			"the peer does not speak MPA"},
		{"an FPDU without room for a header", mpa.Offer{}, "\x00\x03\x41\x43" + strings.Repeat("\x00", 12), atOnce,
			"the peer does not speak MPA"},
		{"three bytes of an FPDU", mpa.Offer{}, "\x00\x2a\x41", thenFIN,
			"the responder refused the Request, or is not an MPA responder, or has TLS in front of it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d *dialogue
			switch end := c.end.(type) {
			case mpa.Offer:
				d, _ = starting(t, end, clone(t, end).Start(epoch))
			case mpa.ResponderConfig:
				d, _ = responder(t, end)
			}
			d.input([]byte(c.got), 0)
			switch c.how {
			case inVain:
				d.advance(time.Hour)
			case thenFIN:
				d.closed()
			}
			d.wantHint(c.hint)
		})
	}
}

// A peer that closes the connection right after the startup has a reason that the dialect
// and the revisions tell.
//
// Proves Q16, N04.
func TestGoneAfterStartup(t *testing.T) {
	const unwanted = "the initiator gave up before our Reply arrived, or did not want the connection after it"
	for _, c := range []struct {
		request, reply mpa.StartupFields
		cfg            mpa.ResponderConfig
		hint           string
	}{
		{request(1, ""), withC(reply(1, "")), mpa.ResponderConfig{}, unwanted},
		{withM(withC(request(0, ""))), withM(withC(reply(0, ""))), mpa.ResponderConfig{}, unwanted},
		{request(1, ""), withM(withC(reply(0, ""))), mpa.ResponderConfig{Kind: mpa.KindRDMAC},
			"its Request was of revision 1 and our Reply of revision 0: a non-permissive"},
		{request(2, "00 00 00 00"), withM(withC(reply(0, ""))), mpa.ResponderConfig{Kind: mpa.KindRDMAC},
			"its Request was of revision 2 and our Reply of revision 0: a permissive"},
	} {
		d, _ := responder(t, c.cfg)
		d.input(frame(c.request), 0)
		d.wantReply(mpa.Answer{Kind: c.cfg.Kind}, c.reply)
		d.closed()
		d.wantHint(c.hint)
	}
	for _, c := range []struct {
		dialect mpa.Dialect
		s       bool
		hint    string
	}{
		{mpa.DialectRFC5044, false, "the responder's consumer did not want the connection, or failed"},
		{mpa.DialectRtr, true, "the responder gave up before our Rtr frame arrived, or did not take it"},
	} {
		d, _ := initiator(t, mpa.Offer{Dialect: c.dialect},
			mpa.StartupFields{Key: mpa.KeyRequest, Rev: 1, C: true, S: c.s})
		f := withC(reply(1, ""))
		f.S = c.s
		d.input(frame(f), 0)
		d.wantOK()
		d.closed()
		d.wantHint(c.hint)
	}
}

// wantHint expects the last step to have failed, with a hint.
func (d *dialogue) wantHint(hint string) {
	d.Helper()
	var e *mpa.StartupError
	if !errors.As(d.err, &e) || !strings.Contains(e.Err.Hint, hint) {
		d.Errorf("got %v, want %q", d.err, hint)
	}
}
