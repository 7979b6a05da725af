package conform

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/mpa"
)

// How to write a case: a [Case] is a value, and the functions that return groups of
// them are joined in [Cases]. toResponder or toInitiator builds it, by the role of the
// peer under test, and in (dialects), withRping, slow and unsafe narrow it:
//
//	toResponder("startup/req-res-1", "Q06", "RFC 5044 7.1.1",
//		"The reserved bit 0x01 in a Request is not checked.", func(s *session) {
//			q := s.request()
//			q.Res = 1
//			s.send("Request", q.Octets())
//			r := s.peerAccepts("reserved bits are not checked on reception")
//			s.want(!r.M(), "M=0 in the Reply", r)
//		}).in(rfcs()...)
//
// The ID is group/name. startup, negotiate, rtr, fallback, rtr2007, revision0 and
// startkey are the groups of the startup; fpdu, ddp, rdmap and terminate are about what
// follows it. The function is a dialogue. Each of its steps leaves the case by itself
// where the peer does not play its part, so there is no error to look at.
//
// The steps are the methods of session: in session.go those that send and end, in
// expect.go those that wait, in startup.go and establish.go those of the startup, in
// operation.go those of Full Operation, and in rping.go those of a ping. setup runs
// steps that are not the rule: where they fail, the case is inconclusive.
//
// Cases of Full Operation are mostly for either role: either, eitherRping, toServer and
// toClient build them, with a dialogue, in which both sides may send, in place of the
// session. Its works proves that the connection works; refuses waits for the Terminate
// that must answer an error, refused for one that may, and mayRefuse is for what the
// peer may take or refuse.
//
// For the sake of kernels, a session does two things by itself: it waits a moment
// before its first FPDU after a Reply, and before it leaves an accepted peer-to-peer
// connection on which it has heard no FPDU it sends the RTR indication. Linux's siw
// crashes where a peer-to-peer connection ends before siw has seen that, and where an
// FPDU in error comes together with it. So a case that sends something wrong in Full
// Operation uses establish and ping first, or is unsafe.
//
// A case must hold for every peer that keeps to the documents: what a document leaves
// open (a Reply's M and C, the depths granted, whether a Terminate tells of an error
// where it only SHOULD) is looked at, and not assumed. A case that may harm the peer's
// system says how, by unsafe.

// toResponder and toInitiator return a case for a peer of that role. requirements
// are separated by blanks.
func toResponder(id, requirements, section, text string, run func(*session)) Case {
	return Case{ID: id, Requirements: strings.Fields(requirements), Section: section,
		Role: mpa.RoleResponder, Text: text, run: run}
}

func toInitiator(id, requirements, section, text string, run func(*session)) Case {
	c := toResponder(id, requirements, section, text, run)
	c.Role = mpa.RoleInitiator
	return c
}

// in limits a case to dialects.
func (c Case) in(dialects ...mpa.Dialect) Case {
	c.Dialects = dialects
	return c
}

// withRping has a case need rping on the peer's side.
func (c Case) withRping() Case {
	c.App = AppRping
	return c
}

// slow marks a case that waits for the peer's own timeouts.
func (c Case) slow() Case {
	c.Slow = true
	return c
}

// unsafe marks a case that may harm the peer's system.
func (c Case) unsafe(why string) Case {
	c.Unsafe = why
	return c
}

// all limits cases to dialects.
func all(dialects []mpa.Dialect, cases ...Case) []Case {
	for i := range cases {
		if len(cases[i].Dialects) == 0 {
			cases[i].Dialects = dialects
		}
	}
	return cases
}

// frames are the dialects with a Request and a Reply.
func frames() []mpa.Dialect {
	return []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044, mpa.DialectRtr, mpa.DialectRevision0}
}

// rfcs are the dialects of RFCs.
func rfcs() []mpa.Dialect { return []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044} }

// enhanced is the dialect of RFC 6581.
func enhanced() []mpa.Dialect { return []mpa.Dialect{mpa.DialectRFC6581} }

// plain is every dialect with frames but that of RFC 6581.
func plain() []mpa.Dialect {
	return []mpa.Dialect{mpa.DialectRFC5044, mpa.DialectRtr, mpa.DialectRevision0}
}

// textOf names a frame in the sentence of a case.
func textOf(text, frame string) string { return fmt.Sprintf(text, frame) }

// text returns n bytes of private data.
func text(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('A' + i%26)
	}
	return b
}
