package conform

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// sctpCases are those of DDP over SCTP.
func sctpCases() []Case {
	cases := setupCases(overSCTP, "INIT ACK", func(s *session) { s.stream(0) })
	cases = append(cases,
		unindicated("indication-none", "without Adaptation Layer Indication",
			func(ours *chunk.Setup) { ours.HasAdaptation = false }),
		unindicated("indication-other", "with another Adaptation Layer Indication",
			func(ours *chunk.Setup) { ours.Adaptation = 7 }),
	)
	cases = append(cases, sctpStartup()...)
	cases = append(cases, sctpOrder()...)
	cases = append(cases, sctpWays()...)
	return append(cases, sctpViolations()...)
}

// A caseMaker makes a case for one of the ends.
type caseMaker func(id, requirements, section, text string, run func(*session)) Case

// setupCases are the cases of what an end says of itself in the chunk that is named, when an association is set up.
// begin has one.
func setupCases(of caseMaker, name string, begin func(*session)) []Case {
	return []Case{
		of("indication", "C05", "RFC 5043 11.1", "The "+name+
			" has the Adaptation Layer Indication of DDP.", func(s *session) {
			begin(s)
			s.want(s.assoc.Peer.Indicates(sctp.AdaptationDDP), "indication 1 in the "+name,
				wording.If(s.assoc.Peer.HasAdaptation, fmt.Sprint("indication ", s.assoc.Peer.Adaptation), "none"))
		}),
		of("addresses", "C14", "RFC 5043 7.2", "The "+name+
			" announces no other address, as an endpoint SHOULD NOT cover several.", func(s *session) {
			begin(s)
			n := s.assoc.Addresses
			s.shouldNot(n > 0, fmt.Sprintf("announces %d of its IP addresses in the %s", n, name),
				"no IP address in the "+name)
		}),
		of("streams", "C10", "RFC 5043 8", "The "+name+" asks for as many streams in as out.", func(s *session) {
			begin(s)
			s.want(s.assoc.Peer.Out == s.assoc.Peer.In, "as many streams in as out",
				fmt.Sprintf("%d in, %d out", s.assoc.Peer.In, s.assoc.Peer.Out))
		}),
	}
}

// filled asks with as much private data as there may be.
func filled(q sctp.Control, n int, rule string) func(*session) {
	q.PrivateData = text(n)
	return func(s *session) {
		if q.Function.IsEnhanced() { // does the peer know RFC 6581?
			first := s.stream(2)
			first.accepted(enhancedInitiate(), "an enhanced request has an enhanced answer")
			first.close()
		}
		d := s.stream(0)
		answer := d.initiate(q, rule)
		want := sctp.FunctionAccept
		if q.Function.IsEnhanced() {
			want = sctp.FunctionEnhancedAccept
		}
		d.want(answer.Function == want, fmt.Sprintf("an %v: %s", want, rule), answer.Function)
		d.close()
	}
}

// unindicated is a case of an INIT that is not one of DDP.
func unindicated(id, text string, change func(*chunk.Setup)) Case {
	return overSCTP(id, "C05", "RFC 5043 7.1, 11.1", "An INIT "+text+" leads to no session.", func(s *session) {
		ours := script.DDPSetup()
		change(&ours)
		if s.associate(ours) {
			d := s.stream(0)
			d.say("Initiate", d.Control(plainInitiate()))
			d.refusedOr("DDP procedures MUST NOT be performed upon this association")
			s.dissociate()
		}
		s.openSession(0).close()
	})
}

// worksAndEnds opens a session, uses it and ends it, each of which is judged.
func worksAndEnds(s *session) {
	d := s.openSession(0)
	d.works("the session is open")
	d.close()
}

// sctpStartup are the cases of how sessions begin and end.
func sctpStartup() []Case {
	return []Case{
		overSCTP("accept", "C01 C04", "RFC 5043 6.2",
			"An Initiate is answered by an Accept, and the session works.", worksAndEnds),
		overSCTP("accept-enhanced", "C01 C02", "RFC 6581 7, 10",
			"An Enhanced Initiate is answered by an Enhanced Accept, whose depths fit.", func(s *session) {
				d := s.stream(0)
				a := d.accepted(enhancedInitiate(), "an enhanced request has an enhanced answer")
				d.want(a.Enhanced.ORD <= depth, "an ORD of at most the IRD that was asked with", a.Enhanced.ORD)
				d.want(!a.Enhanced.A, "A=0, as in the Initiate", "A=1")
				d.works("the session is open")
				d.close()
			}),
		overSCTP("accept-ready", "C01 C04", "RFC 6581 7, 9.2",
			"An Enhanced Initiate with A=1 is answered with A=1, and the RTR indication is taken.", func(s *session) {
				d := s.stream(0)
				q := enhancedInitiate()
				q.Enhanced = mpa.Enhanced{A: true, B: true, C: true, D: true, IRD: depth, ORD: depth}
				a := d.accepted(q, "an enhanced request has an enhanced answer")
				d.want(a.Enhanced.A && a.Enhanced.RTR() != 0, "A=1 and a kind of RTR indication", a.Enhanced.RTR())
				for _, m := range d.Parting(&q.Enhanced, &a.Enhanced) {
					d.say("RTR indication", m)
				}
				d.say("RDMA Read Request", d.EmptyRead())
				d.answered("the session is open")
				d.close()
			}),
		overSCTP("enhanced-unnegotiated", "C02", "RFC 6581 7, 9.1",
			"IRD and ORD of 0x3FFF are answered by 0x3FFF.", func(s *session) {
				d := s.stream(0)
				q := enhancedInitiate()
				q.Enhanced.IRD, q.Enhanced.ORD = mpa.NoNegotiation, mpa.NoNegotiation
				a := d.accepted(q, "depths may be left to the ULP")
				d.want(a.Enhanced.IRD == mpa.NoNegotiation &&
					a.Enhanced.ORD == mpa.NoNegotiation, "0x3FFF for both",
					fmt.Sprintf("IRD %v, ORD %v", a.Enhanced.IRD, a.Enhanced.ORD))
				d.close()
			}),
		overSCTP("private-data", "C02 C03", "RFC 5043 5.2.3",
			"An Initiate with 512 bytes of private data is answered like any other.",
			filled(plainInitiate(), mpa.MaxPrivateData, "512 bytes are allowed")),
		overSCTP("private-data-enhanced", "C02 C03", "RFC 6581 7",
			"An Enhanced Initiate with 508 bytes of private data is answered like any other.",
			filled(enhancedInitiate(), mpa.MaxEnhancedPrivateData, "508 bytes are allowed beside the enhanced data")),
		overSCTP("terminate", "C03", "RFC 5043 5.2.3, 6.2",
			"Our Terminate ends the session, and the peer's own has no private data.", worksAndEnds),
		overSCTP("sessions", "C04", "RFC 5043 6", "Two sessions in one association work side by side.",
			func(s *session) {
				first := s.openSession(0)
				second := s.openSession(2)
				second.works("the second session is open")
				first.works("the first session is open")
				second.close()
				first.works("the other session has ended, not this one")
				first.close()
			}),
		overSCTP("reuse", "C08", "RFC 5043 6.6", "A stream is used for another session when both ends are done with the first.", func(s *session) {
			s.openSession(0).close()
			s.assoc.Settle(s.deadline())
			d := s.openSession(0)
			d.works("DDP-SSNs begin at zero again")
			d.close()
		}),
		rejecting("reject", sctp.FunctionReject, plainInitiate),
		rejecting("reject-enhanced", sctp.FunctionEnhancedReject, enhancedInitiate),
	}
}

// rejecting is a case of a peer whose application rejects every session.
func rejecting(id string, want sctp.Function, q func() sctp.Control) Case {
	c := overSCTP(id, "C01 C03", "RFC 5043 6.3; RFC 6581 7",
		fmt.Sprintf("An application that rejects has the peer answer by %v.", want), func(s *session) {
			d := s.stream(0)
			a := d.initiate(q(), "the Initiate is an ordinary one")
			d.want(a.Function == want, want.String(), a.Function)
		})
	c.App = AppReject
	return c
}

// sctpOrder are the cases of DDP-SSNs.
func sctpOrder() []Case {
	return ssnCases(overSCTP, func(s *session) *ddpSession {
		d := s.openSession(0)
		d.works("the session is open")
		return d
	}, (*session).stillOpens)
}

// ssnCases are the cases of DDP-SSNs for either end: of makes one, open opens a session that works, and goesOn sees
// that the peer still has sessions.
func ssnCases(of caseMaker, open func(*session) *ddpSession, goesOn func(*session)) []Case {
	return []Case{
		of("ssn-order", "C06", "RFC 5043 10", "Messages are delivered in the order of DDP-SSNs, whatever the order they come in.", func(s *session) {
			d := open(s)
			first, second := d.Ready(mpa.RTRWrite), d.EmptyRead()
			d.say("RDMA Read Request, ahead of a Write", second)
			d.unanswered("a DDP-SSN before it has not come")
			d.say("the RDMA Write, of no bytes", first)
			d.answered("the message before it has come")
			d.close()
		}),
		of("ssn-twice", "C12", "RFC 5043 10", "A message with a DDP-SSN that was used already is not delivered.",
			func(s *session) {
				d := open(s)
				d.SSN--
				d.say("RDMA Read Request with the DDP-SSN of the one before", d.EmptyRead())
				d.unanswered("its DDP-SSN is invalid")
				goesOn(s)
			}),
		of("ssn-far", "C12", "RFC 5043 10", "A message whose DDP-SSN cannot be yet is not delivered.",
			func(s *session) {
				d := open(s)
				d.SSN += 1 << 15
				d.say("RDMA Read Request with a DDP-SSN that is 32768 too high", d.EmptyRead())
				d.unanswered("its DDP-SSN is invalid")
				goesOn(s)
			}),
	}
}

// stillOpens sees that the peer still takes sessions.
func (s *session) stillOpens() {
	s.dissociate()
	d := s.openSession(0)
	d.works("the peer still takes ordinary sessions")
	d.close()
}

// sctpViolations are the cases of messages that break a rule.
func sctpViolations() []Case {
	const patterns = sctpPatterns
	cases := []Case{
		unsaid("initiate-513", "C02", "RFC 5043 5.2.3", "an Initiate with 513 bytes of private data",
			func(d *ddpSession) sctp.Message {
				q := plainInitiate()
				q.PrivateData = text(mpa.MaxPrivateData + 1)
				return d.Control(q)
			}),
		unsaid("initiate-enhanced-short", "C02", "RFC 6581 7", "an Enhanced Initiate with three bytes of private data",
			func(d *ddpSession) sctp.Message {
				m := d.Control(enhancedInitiate())
				m.Data = m.Data[:len(m.Data)-1]
				return m
			}),
		unsaid("function-unknown", "C01", "RFC 5043 5.2.3", "a message of Function Code 8",
			func(d *ddpSession) sctp.Message { return d.Function(8) }),
		unsaid("segment-first", "C04", "RFC 5043 6.2", "a DDP Segment",
			func(d *ddpSession) sctp.Message { return d.Message(rdmap.OpSend, nil) }),
		unsaid("accept-first", "C04", patterns, "an Accept",
			func(d *ddpSession) sctp.Message { return d.Function(sctp.FunctionAccept) }),
		unsaid("terminate-first", "C04", patterns, "a Terminate",
			func(d *ddpSession) sctp.Message { return d.Function(sctp.FunctionTerminate) }),
	}
	for _, v := range sctpOpenViolations() {
		cases = append(cases, overSCTP(v.id, v.requirement, v.section,
			"In an open session "+v.text+" ends it, and no other.", func(s *session) {
				other := s.openSession(2)
				d := s.openSession(0)
				d.works("the session is open")
				d.say(v.text, v.message(d))
				d.ends("such a message is in none of the legal patterns")
				other.works("its session has nothing to do with the other")
			}))
	}
	return cases
}

// unsaid is a case of a message that begins no session.
func unsaid(id, requirement, section, what string, message func(*ddpSession) sctp.Message) Case {
	return overSCTP(id, requirement, section, "On a stream without a session "+what+" begins none.", func(s *session) {
		d := s.stream(0)
		d.say(what, message(d))
		d.refusedOr("it is no Initiate that is whole")
		other := s.openSession(2)
		other.works("another stream has nothing to do with it")
		other.close()
	})
}

// sctpPatterns is where the legal sequences of a session are.
const sctpPatterns = "RFC 5043 6.1"

// An openViolation is a message that ends an open session, whoever gets it.
type openViolation struct {
	id, requirement, section, text string
	message                        func(d *ddpSession) sctp.Message
}

func sctpOpenViolations() []openViolation {
	return []openViolation{
		{"ppid", "C09", "RFC 5043 5.1", "a message of PPID 51", func(d *ddpSession) sctp.Message {
			m := d.EmptyRead()
			m.PPID = 51
			return m
		}},
		{"initiate-again", "C04", sctpPatterns, "another Initiate",
			func(d *ddpSession) sctp.Message { return d.Control(plainInitiate()) }},
		{"accept-again", "C04", sctpPatterns, "an Accept",
			func(d *ddpSession) sctp.Message { return d.Function(sctp.FunctionAccept) }},
		{"reject-late", "C04", sctpPatterns, "a Reject",
			func(d *ddpSession) sctp.Message { return d.Function(sctp.FunctionReject) }},
		{"function-unknown-open", "C01", "RFC 5043 5.2.3", "a message of Function Code 8",
			func(d *ddpSession) sctp.Message { return d.Function(8) }},
		{"terminate-data", "C02", "RFC 5043 5.2.3", "a Terminate with private data", func(d *ddpSession) sctp.Message {
			return d.Control(sctp.Control{Function: sctp.FunctionTerminate, PrivateData: []byte("bye")})
		}},
		{"control-short", "C04", "RFC 5043 5.2.3", "session control without a Function Code",
			func(d *ddpSession) sctp.Message {
				m := d.Function(sctp.FunctionTerminate)
				m.Data = m.Data[:3]
				return m
			}},
		{"segment-short", "C04", "RFC 5043 5.2.2", "a DDP Segment of one byte, without room for a DDP-SSN",
			func(d *ddpSession) sctp.Message {
				m := d.EmptyRead()
				m.Data = m.Data[:1]
				return m
			}},
	}
}
