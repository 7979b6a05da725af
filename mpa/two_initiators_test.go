package mpa_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/mpa"
)

// initiators are the ways to begin as Initiator, by the first frame.
var initiators = []struct {
	name  string
	offer mpa.Offer
}{
	{"Request", mpa.Offer{}},
	{"Request of revision 1", mpa.Offer{Dialect: mpa.DialectRFC5044, PrivateData: []byte("hello")}},
	{"Request of the Rtr dialect", mpa.Offer{Dialect: mpa.DialectRtr}},
	{"Request of revision 0", mpa.Offer{Dialect: mpa.DialectRevision0}},
	{"Start Key", mpa.Offer{Dialect: mpa.DialectStartKey}},
	{"message of 2 bytes", mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true}},
	{"message of 7 bytes", mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true, PrivateData: []byte("hello")}},
	{"message of 16 bytes", mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true,
		PrivateData: []byte("fourteen bytes")[:14]}},
	{"message of 102 bytes", mpa.Offer{Dialect: mpa.DialectStartKey, Messages: true, PrivateData: make([]byte, 100)}},
}

// mute are the pairs of Initiators that nothing on the wire tells from an Initiator and a
// Responder: both send the same, which is also what a Responder sends.
func mute(a, b mpa.Offer) bool {
	return a.Dialect == mpa.DialectStartKey && b.Dialect == mpa.DialectStartKey && a.Messages == b.Messages
}

// Two Initiators: in any pair of dialects both are told that the other end is an
// Initiator too, wherever the stream is split, but for the pairs that nobody can tell.
//
// Proves Q03, K02.
func TestTwoInitiators(t *testing.T) {
	for _, a := range initiators {
		for _, b := range initiators {
			if mute(a.offer, b.offer) {
				continue
			}
			first := clone(t, b.offer).Start(epoch)
			for cut := range len(first) {
				i := clone(t, a.offer)
				i.Start(epoch)
				err := meets(i, first, cut)
				want := mpa.FailureInitiatorInitiator
				if b.offer.Messages {
					want = 0 // a message has no mark of its own
				}
				if err == nil || !strings.Contains(err.Error(), "both ends were started as Initiator") ||
					want > 0 && err.Failure != want {
					t.Fatalf("%s, from another Initiator %s, cut at %d: %v", a.name, b.name, cut, err)
				}
			}
		}
	}
}

// meets gives bytes to an Initiator in two parts, and then lets the peer close.
func meets(i *mpa.Initiator, b []byte, cut int) *mpa.StartupError {
	for _, part := range [][]byte{b[:cut], b[cut:]} {
		if _, err := i.Input(epoch, part); err != nil {
			return err.(*mpa.StartupError)
		}
	}
	err, _ := i.PeerClosed(io.EOF).(*mpa.StartupError)
	return err
}

// The one pair of Initiators that comes up, or seems to: both send a Start Key.
func TestTwoStartKeysComeUp(t *testing.T) {
	a, b := clone(t, mpa.Offer{Dialect: mpa.DialectStartKey}), clone(t, mpa.Offer{Dialect: mpa.DialectStartKey})
	first, second := a.Start(epoch), b.Start(epoch)
	for i, content := range map[*mpa.Initiator][]byte{a: second, b: first} {
		if _, err := i.Input(epoch, content); err != nil || !i.Done() || i.Negotiated().Role != mpa.RoleInitiator {
			t.Errorf("%v, %+v", err, i.Negotiated())
		}
	}
}

// Proves N03, N05: every Reply of revision 0 has markers and CRCs, a rejection too, and an
// Initiator does not take one that accepts without.
func TestRevision0Bits(t *testing.T) {
	for _, c := range []struct {
		m, c bool
		text string // of the error
	}{
		{true, true, ""},
		{false, true, "bad M at byte 16 of the startup frame: a Reply of revision 0 with M=0 C=1"},
		{true, false, "bad C at byte 16 of the startup frame: a Reply of revision 0 with M=1 C=0"},
		{false, false, "bad M at byte 16 of the startup frame: a Reply of revision 0 with M=0 C=0"},
	} {
		for _, rejects := range []bool{false, true} {
			for _, d := range []mpa.Dialect{mpa.DialectRevision0, mpa.DialectRFC5044} {
				i := clone(t, mpa.Offer{Dialect: d})
				f := reply(0, "")
				f.M, f.C, f.R = c.m, c.c, rejects
				name := fmt.Sprintf("%v asked, M=%v C=%v R=%v", d, c.m, c.c, rejects)
				_, err := i.Input(epoch, frame(f))
				switch s, failed := err.(*mpa.StartupError); {
				case rejects || c.text == "":
					if err != nil || !i.Done() || (i.Rejected() != nil) != rejects {
						t.Errorf("%s: %v", name, err)
					}
				case !failed || s.Failure != mpa.FailureMismatch || !strings.Contains(err.Error(), c.text):
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}
