package conform

import (
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

const rtrProposal = "Rtr frame proposal of 2007"

// rtrRequests are of the 2007 proposal, with the peer as Responder.
func rtrRequests() []Case {
	cases := []Case{
		toResponder("rtr2007/req", "T01 T03", rtrProposal,
			"A Request of revision 1 with S gets a Reply with S, and the Rtr frame opens the connection.",
			func(s *session) {
				s.rtrOpens(func(*script.Startup) {})
				s.works()
			}),
		toResponder("rtr2007/req-plain", "T01 T04", rtrProposal,
			"A Request without S gets a Reply without S, and no Rtr frame follows.", func(s *session) {
				q := s.request()
				q.S = false
				s.send("Request", q.Bytes())
				r := s.peerAccepts("it is an ordinary Request of revision 1")
				s.want(!r.S(), "a Reply with S=0", r)
				s.enter(q.Bytes(), r)
				s.sendFPDU("zero-length Write", zeroWrite())
				s.works()
			}),
		toResponder("rtr2007/rtr-waits", "T01 T02", rtrProposal,
			"The Responder sends nothing before it has the Rtr frame.", func(s *session) {
				s.silentBeforeOpen("the Reply says that it waits for the Rtr frame")
			}),
		toResponder("rtr2007/rtr-letters", "T02", rtrProposal,
			"The Rtr frame's key is taken as the text spells it, too.", func(s *session) {
				s.rtrOpens(func(f *script.Startup) { f.Key = mpa.KeyRtrInLetters })
			}),
		toResponder("rtr2007/rtr-m", "T02", rtrProposal,
			"M in the Rtr frame is not checked.", func(s *session) {
				s.rtrOpens(func(f *script.Startup) { f.M = true })
			}),
		toResponder("rtr2007/rtr-r", "T02", rtrProposal,
			"R and S in the Rtr frame are not checked.", func(s *session) {
				s.rtrOpens(func(f *script.Startup) { f.R, f.S = true, true })
			}),
		toResponder("rtr2007/rtr-bytes", "Q13 T02", rtrProposal,
			"An Rtr frame that comes byte by byte is taken.", func(s *session) {
				q, r := s.rtrReply()
				s.sendEach("Rtr frame", script.RtrFrame(r).Bytes())
				s.enter(q.Bytes(), r)
				s.expectNothing("the connection is established")
			}),
		toResponder("rtr2007/rtr-missing", "T01 T02", rtrProposal,
			"An FPDU in place of the Rtr frame closes the connection.", func(s *session) {
				q, r := s.rtrReply()
				s.enter(q.Bytes(), r)
				s.sendFPDU("zero-length Write", zeroWrite())
				s.expectClosed("the Reply says that it waits for the Rtr frame")
			}),
		toResponder("rtr2007/rtr-key", "Q02 T02", rtrProposal,
			"A Request in place of the Rtr frame closes the connection.", func(s *session) {
				q, _ := s.rtrReply()
				s.send("Request", q.Bytes())
				s.expectClosed("the Reply says that it waits for the Rtr frame")
			}),
		toResponder("rtr2007/rtr-rev", "Q07 T02", rtrProposal,
			"An Rtr frame of another revision than 1 closes the connection.", func(s *session) {
				_, r := s.rtrReply()
				f := script.RtrFrame(r)
				f.Rev = 2
				s.send("Rtr frame", f.Bytes())
				s.expectClosed("there is no Rtr frame of another revision")
			}),
	}
	return all([]mpa.Dialect{mpa.DialectRtr}, cases...)
}

// rtrReply sends the Request, and waits for the Reply that asks for the Rtr frame.
func (s *session) rtrReply() (script.Startup, mpa.StartupFrame) {
	q := s.request()
	r := s.asks(q)
	s.want(r.S(), "a Reply with S=1", r)
	return q, r
}

// rtrOpens opens a connection with an adjusted Rtr frame.
func (s *session) rtrOpens(adjust func(*script.Startup)) {
	q, r := s.rtrReply()
	f := script.RtrFrame(r)
	adjust(&f)
	s.send("Rtr frame", f.Bytes())
	s.enter(q.Bytes(), r)
	s.expectNothing("the connection is established")
}

// rtrReplies are of the 2007 proposal, with the peer as Initiator.
func rtrReplies() []Case {
	cases := []Case{
		toInitiator("rtr2007/rep", "T01 T02", rtrProposal,
			"A Reply with S gets a well-formed Rtr frame: R, S, reserved bits and PD_Length zero, revision 1.",
			func(s *session) {
				f := s.rtrComes(true)
				s.want(!f.R() && !f.S() && f.Res() == 0, "R, S and reserved bits zero in the Rtr frame", f)
				s.want(f.Rev() == 1 && f.PDLength() == 0, "revision 1, and no Private Data in the Rtr frame", f)
			}),
		toInitiator("rtr2007/rep-no-c", "T05", rtrProposal,
			"The Rtr frame's C is that of the Reply where it is zero.", func(s *session) { s.rtrComes(false) }),
		toInitiator("rtr2007/rep-plain", "T01 T04", rtrProposal,
			"A Reply without S gets no Rtr frame: the first bytes are an FPDU.", func(s *session) {
				s.takesReply(func(_ mpa.StartupFrame, f *script.Startup) { f.S = false })
			}).withRping(),
		toInitiator("rtr2007/rep-first", "T03", rtrProposal,
			"After the Rtr frame the Responder may send the first FPDU.", func(s *session) {
				s.establish()
				s.sendFPDU("zero-length Write", zeroWrite())
				s.works()
			}).withRping(),
	}
	return all([]mpa.Dialect{mpa.DialectRtr}, cases...)
}

func (s *session) rtrComes(c bool) mpa.StartupFrame {
	q := s.peerRequest()
	f := s.replyTo(q)
	f.C = c
	b := f.Bytes()
	s.send("Reply", b)
	return s.peerRtrFrame(b)
}

const carrier = "draft-carrier-rddp-rnic-interop-00 5"

// revision0Requests are of an RDMAC RNIC, with the peer as Responder.
func revision0Requests() []Case {
	cases := []Case{
		toResponder("revision0/req", "N03 N05", carrier,
			"A Request of revision 0 gets a Reply of revision 0 with M=1 and C=1.", func(s *session) {
				r := s.accept(s.request(), "the peer is permissive")
				s.want(r.Rev() == 0 && r.M() && r.C(), "a Reply of revision 0 with M=1 and C=1", r)
			}),
		toResponder("revision0/req-no-m", "N05", carrier,
			"Markers and CRCs are used whatever M and C of the Request are.", func(s *session) {
				s.readsWith(func(q *script.Startup) { q.M, q.C = false, false })
			}),
		toResponder("revision0/req-s", "Q06 N05", carrier,
			"The bit that is S elsewhere is not checked in revision 0.", func(s *session) {
				q := s.request()
				q.S = true
				s.accept(q, "reserved bits are not checked on reception")
			}),
		toResponder("revision0/version", "N02 N06", carrier,
			"FPDUs have version 0 of DDP and RDMAP, with markers and CRCs.", func(s *session) {
				s.readsWith(func(*script.Startup) {})
			}),
		toResponder("revision0/works", "N05 N06", carrier,
			"The connection works.", func(s *session) {
				s.establish()
				s.works()
			}).withRping(),
	}
	return all([]mpa.Dialect{mpa.DialectRevision0}, cases...)
}

// revision0Replies are of an RDMAC RNIC, with the peer as Initiator.
func revision0Replies() []Case {
	cases := []Case{
		toInitiator("revision0/rep-request", "N05", carrier,
			"The Request of revision 0 has M=1 and C=1.", func(s *session) {
				q := s.peerRequest()
				s.want(q.M() && q.C(), "a Request with M=1 and C=1", q)
			}),
		toInitiator("revision0/rep-no-m", "N05", carrier,
			"A Reply of revision 0 that accepts with M=0 and C=0 ends the connection.", func(s *session) {
				q := s.peerRequest()
				f := s.replyTo(q)
				f.M, f.C = false, false
				s.send("Reply", f.Bytes())
				s.operate(script.Terms{MarkersSend: true, MarkersReceive: true, CRC: true})
				s.givesUp(q, "a Reply of revision 0 has M=1 and C=1")
			}),
		toInitiator("revision0/rep-rev-1", "N03 N04", carrier,
			"A Reply of revision 1 to a Request of revision 0 ends the connection.", func(s *session) {
				q := s.peerRequest()
				f := s.replyTo(q)
				f.Rev, f.M = 1, false
				s.send("Reply", f.Bytes())
				s.operate(script.Terms{MarkersSend: true, MarkersReceive: true, CRC: true})
				s.givesUp(q, "an RDMAC RNIC has no version 1")
			}),
		toInitiator("revision0/rep-works", "N02 N05 N06", carrier,
			"The connection works, in version 0 of DDP and RDMAP.", func(s *session) {
				s.establish()
				s.works()
			}).withRping(),
	}
	return all([]mpa.Dialect{mpa.DialectRevision0}, cases...)
}

const culley = "draft-culley-iwarp-mpa-03 8.1"

// startKeyRequests are of the Start Key, with the peer as Responder, which is what
// the draft calls Active.
func startKeyRequests() []Case {
	cases := []Case{
		toResponder("startkey/active", "K01 K02 K05", culley,
			"A Start Key is answered by a Start Key, with revision and reserved bits zero.", func(s *session) {
				k := s.exchangeKeys(mpa.StartKeyFields{C: true})
				s.want(k.Rev() == 0 && k.Res() == 0, "revision and reserved bits zero in the Start Key", k)
			}),
		toResponder("startkey/active-waits", "K02", culley,
			"The Active side sends nothing before it has a Start Key.", func(s *session) {
				s.expectNothing("it MUST wait until a Start Key is received")
				s.exchangeKeys(mpa.StartKeyFields{C: true})
			}),
		toResponder("startkey/active-silence", "K03", culley,
			"The Active side sends no FPDU or marker before it has received one.", func(s *session) {
				s.exchangeKeys(mpa.StartKeyFields{C: true, M: true})
				s.expectNothing("it MUST NOT send FPDUs or markers before it has received one")
			}),
		toResponder("startkey/active-bytes", "Q14 K01", culley,
			"A Start Key that comes byte by byte is taken.", func(s *session) {
				f := mpa.StartKeyFields{C: true}
				b := mpa.AppendStartKey(nil, &f)
				s.sendEach("Start Key", b)
				s.keysOpen(b, s.peerKey("a Start Key"))
			}),
		toResponder("startkey/active-res", "K05", culley,
			"Reserved bits of a Start Key are not checked, and are zero in the answer.", func(s *session) {
				k := s.exchangeKeys(mpa.StartKeyFields{C: true, Res: 3})
				s.want(k.Res() == 0, "reserved bits zero in the Start Key", k)
			}),
		toResponder("startkey/active-fin", "K04 Q15", culley,
			"A FIN within the Start Key closes the connection.", func(s *session) {
				s.send("half a Start Key", []byte(mpa.KeyStart)[:8])
				s.closeWrite()
				s.expectClosed("the Start Key cannot become whole")
			}),
	}
	cases = append(cases, wrongStartKeys(toResponder, "active", func(s *session, send func()) {
		send()
		s.expectClosed("a Start Key that does not match MUST close the connection")
	})...)
	return all([]mpa.Dialect{mpa.DialectStartKey}, append(cases, startKeyData()...)...)
}

// startKeyData look at FPDUs after the Start Keys.
func startKeyData() []Case {
	return []Case{
		toResponder("startkey/active-m", "F07 F11 K01", culley,
			"With M in our Start Key the Active side's FPDUs have markers.", func(s *session) {
				s.keysWork(mpa.StartKeyFields{C: true, M: true})
			}).withRping(),
		toResponder("startkey/active-no-m", "F11 K01", culley,
			"Without M in our Start Key the Active side's FPDUs have no markers, and version 0.", func(s *session) {
				s.keysWork(mpa.StartKeyFields{C: true})
			}).withRping(),
		toResponder("startkey/active-no-c", "F14 K01", culley,
			"Without C in our Start Key the other's C decides on CRCs.", func(s *session) {
				s.keysWork(mpa.StartKeyFields{})
			}).withRping(),
	}
}

// exchangeKeys sends our Start Key, waits for the peer's, and opens the connection.
func (s *session) exchangeKeys(f mpa.StartKeyFields) mpa.StartKey {
	ours := s.sendKey("Start Key", f)
	k := s.peerKey("a Start Key")
	s.keysOpen(ours, k)
	return k
}

func (s *session) keysOpen(ours, peer mpa.StartKey) {
	s.enterKeys(ours, peer)
	s.expectNothing("the connection is established")
}

func (s *session) keysWork(f mpa.StartKeyFields) {
	s.setup(func() { s.establishKeys(f) })
	s.works()
}

// wrongStartKeys are first frames that are no Start Key.
func wrongStartKeys(build func(id, requirements, section, text string, run func(*session)) Case, side string,
	run func(s *session, send func())) []Case {
	var cases []Case
	for _, k := range []struct {
		name, requirement, text string
		f                       mpa.StartKeyFields
	}{
		{"first", "K04", "one wrong bit in the first byte of the key",
			mpa.StartKeyFields{Key: "L" + mpa.KeyStart[1:], C: true}},
		{"last", "K04", "a wrong last byte of the key", mpa.StartKeyFields{Key: mpa.KeyStart[:14] + "f", C: true}},
		{"case", "K04", "upper case for lower", mpa.StartKeyFields{Key: strings.ToUpper(mpa.KeyStart), C: true}},
		{"rev-1", "K05", "revision 1", mpa.StartKeyFields{C: true, Rev: 1}},
		{"rev-8", "K05", "revision 8", mpa.StartKeyFields{C: true, Rev: 8}},
	} {
		cases = append(cases, build(fmt.Sprintf("startkey/%s-%s", side, k.name), k.requirement, culley,
			"A Start Key with "+k.text+" closes the connection.", func(s *session) {
				run(s, func() { s.sendKey("Start Key", k.f) })
			}))
	}
	return cases
}

// startKeyReplies are of the Start Key, with the peer as Initiator, which is what the
// draft calls Passive.
func startKeyReplies() []Case {
	cases := []Case{
		toInitiator("startkey/passive", "K01 K02 K05", culley,
			"The Passive side sends its Start Key first, with revision and reserved bits zero.", func(s *session) {
				k := s.peerKey("a Start Key")
				s.want(k.Rev() == 0 && k.Res() == 0, "revision and reserved bits zero in the Start Key", k)
			}),
		toInitiator("startkey/passive-waits", "K03", culley,
			"The Passive side sends no FPDU or marker before it has our Start Key.", func(s *session) {
				peer := s.peerKey("a Start Key")
				s.expectNothing("it MUST NOT send FPDUs or markers before it has a Start Key")
				s.enterKeys(s.sendKey("Start Key", mpa.StartKeyFields{C: true}), peer)
				s.expectOpen()
			}),
		toInitiator("startkey/passive-bytes", "Q14 K01", culley,
			"A Start Key that comes byte by byte is taken.", func(s *session) {
				peer := s.peerKey("a Start Key")
				b := mpa.AppendStartKey(nil, &mpa.StartKeyFields{C: true})
				s.sendEach("Start Key", b)
				s.enterKeys(b, peer)
				s.expectOpen()
			}),
		toInitiator("startkey/passive-res", "K05", culley,
			"Reserved bits of a Start Key are not checked.", func(s *session) {
				peer := s.peerKey("a Start Key")
				s.enterKeys(s.sendKey("Start Key", mpa.StartKeyFields{C: true, Res: 3}), peer)
				s.expectOpen()
			}),
		toInitiator("startkey/passive-reply", "K04", culley,
			"A Reply Frame in place of a Start Key closes the connection.", func(s *session) {
				s.peerKey("a Start Key")
				s.send("Reply", script.Startup{StartupFields: mpa.StartupFields{Key: mpa.KeyReply,
					C: true, Rev: 1}}.Bytes())
				s.expectClosed("a Start Key that does not match MUST close the connection")
			}),
	}
	for _, m := range []bool{false, true} {
		cases = append(cases, toInitiator("startkey/passive-works-"+
			map[bool]string{false: "no-m", true: "m"}[m], "F11 K01 N02", culley,
			fmt.Sprintf("With M=%v in our Start Key the connection works, in version 0 of DDP and RDMAP.", m),
			func(s *session) {
				s.keysWork(mpa.StartKeyFields{C: true, M: m})
			}).withRping())
	}
	cases = append(cases, wrongStartKeys(toInitiator, "passive", func(s *session, send func()) {
		s.peerKey("a Start Key")
		send()
		s.expectClosed("a Start Key that does not match MUST close the connection")
	})...)
	return all([]mpa.Dialect{mpa.DialectStartKey}, cases...)
}
