// Package conform is a conformance suite for iWARP peers, in both roles: it talks to
// a live peer over TCP, octet by octet, and judges what it does by the documents.
//
// It stands on packages mpa, ddp and rdmap for reading and writing frames, which
// write any value, legal or not, and on no endpoint: what it expects comes from the
// documents and not from how ours happens to behave.
//
// # Running it
//
// [Run] runs the cases that [Options] select against a [Peer] and hands each
// [Result] to a function. The command iwarp conform does so for peers on the network,
// and this package's own tests for our endpoint, and for broken variants of it.
//
// A peer is driven beyond the startup by what its application does. [AppRping] is
// rdma-core's rping or ours: told of a source buffer by a Send, rping -s reads it,
// says so by a Send, and told of a sink writes the text back. rping -c is the other
// half of that.
//
// # Verdicts
//
//	Pass           the peer keeps to the rule
//	Fail           it breaks it; Expected and Got say how
//	NotApplicable  the rule does not concern this peer, or the case was not asked for
//	Inconclusive   the dialogue did not come to the rule, for something else went wrong
//
// # JSON
//
// [WriteJSON] writes an object for each case on a line of its own:
//
//	id            group/name
//	requirements  the project's IDs, an array
//	section       of the document
//	role          the peer's: "responder" or "initiator"
//	text          a sentence
//	verdict       "pass", "fail", "not applicable" or "inconclusive"
//	why           of the last two
//	expected, got of "fail"
//	took_ms       a number
//	dialogue      an array of {at_ms, kind, text, octets}; kind is "sent", "received",
//	              "did", "saw" or "checked", octets are hexadecimal digits
//
// The command's last line is a [Summary]: passed, failed, not_applicable,
// inconclusive, and stopped if the run is not complete.
//
// # Writing a case
//
// A [Case] is a value; the functions that return groups of them are joined in
// [Cases]. It is built by toResponder or toInitiator, by the role of the peer under
// test, and narrowed by in (dialects), withRping, slow and unsafe:
//
//	toResponder("startup/req-res-1", "Q06", "RFC 5044 7.1.1",
//		"The reserved bit 0x01 in a Request is not checked.", func(s *Session) {
//			q := s.Request()
//			q.Res = 1
//			s.Send("Request", q.Octets())
//			r := s.PeerAccepts("reserved bits are not checked on reception")
//			s.Want(!r.M(), "M=0 in the Reply", r)
//		}).in(rfcs()...)
//
// The ID is group/name: startup, negotiate, rtr, fallback, rtr2007, revision0 and
// startkey are taken by the startup; fpdu, ddp, rdmap and terminate are what comes
// behind it. The function is a dialogue, and each step leaves the case by itself
// where the peer does not play its part, so there is no error to look at.
//
// Steps of every kind:
//
//	Send, SendSplit, SendOctets       octets, in one, several and many TCP segments
//	Octets, Frame                     octets, or a whole startup frame, from the peer
//	ExpectNothing                     silence, for Options.Quiet
//	ExpectClosed, ExpectFIN           the end of the connection, and nothing before
//	CloseWrite, Reset, Pause          FIN, RST, time
//	Reconnect, ComesAgain             another connection
//	Want, Failf                       a rule, after looking at what came
//	NotApplicable, Inconclusive       leave without judging
//	Setup                             steps that are not the rule: failing is Inconclusive
//
// Startup: Request and Reply return ordinary frames of the Session's dialect, to be
// spoiled and sent; PeerRequest, PeerReply, PeerAccepts wait for the peer's. Enter
// begins Full Operation with what two frames have settled, and Operate with any terms.
//
// Full Operation: Establish does all of the startup, RTR indication included, in the
// dialect that the run is in; then
//
//	SendFPDU, FrameULPDU              a ULPDU in an FPDU, sent or to be spoiled first
//	SendSegment, Header               a DDP Segment with any header; the right one
//	SendMessage, SendTagged           a message of one segment, by its opcode
//	FPDU, Segment, Message            what the peer sends: framed and checked, reassembled
//	ExpectTerminate                   a Terminate with one of some codes
//	SendReady, PeerReady, ReadNothing RTR indications, zero-length Reads
//
// Cases of Full Operation are mostly of either role: either, eitherRping, toServer and
// toClient build them, with a dialogue, in which both sides may send, in place of the
// Session. Its works proves that the connection works; refuses waits for the Terminate
// that an error must be answered by, refused for one that there need not be, and
// takenOr is for what may be taken or refused.
//
// rping: Ping is a whole ping in either role. Its steps, to be done wrongly, are
// SendAdvert, PeerReads, SendResponse, PeerAdvert and PeerWrites for a server, and
// PeerAdvert, ReadSource, SendTagged and SendAdvert for a client. Works is a Ping where
// the peer's application is rping, and a moment of silence otherwise: behind
// something that the peer must take, it says that nothing broke.
//
// What a Session does by itself, for the sake of kernels: the first FPDU behind a
// Reply waits a moment, and a case that leaves an accepted peer-to-peer connection
// without having heard an FPDU sends the RTR indication first. Linux's siw crashes
// where a peer-to-peer connection ends before it has seen that, and where an FPDU in
// error comes together with it. So a case that sends something wrong in Full
// Operation does Establish and a Ping first, or is unsafe.
//
// A case must hold for every peer that keeps to the documents: what a document
// leaves open (a Reply's M and C, the depths granted, whether an error is told of by
// a Terminate where it only SHOULD be) is looked at, and not assumed. A case that may
// harm the peer's system says how, by unsafe.
//
// # Testing the suite
//
// Our endpoint passes every case in every dialect (TestEndpoint). A variant is our
// endpoint behind something that breaks one rule on the wire: it names the rule, and
// the case that must catch it (variants_test.go). Both run in virtual time over
// connections in memory, so waiting costs nothing.
//
// Codes such as [Q13] are the project's requirement IDs.
package conform
