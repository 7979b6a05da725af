package mpa_test

import (
	"testing"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// class is a pair of ends that the search goes through: what each wants and is set to.
type class struct {
	name string
	scenario
}

// firstState returns the state in which the first frame is on its way.
func (c *class) firstState(t *testing.T) *node {
	t.Helper()
	i, err := mpa.NewInitiator(c.offer)
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	v := newVirtual(i, mpa.NewResponder(c.cfg), c.answer, c.decision)
	v.insist = c.insist
	return &node{virtual: v, deaf: map[string]bool{}, patience: c.patience()}
}

type setting func(s *scenario)

func dialect(d mpa.Dialect) setting { return func(s *scenario) { s.offer.Dialect = d } }
func kind(i, r mpa.Kind) setting    { return func(s *scenario) { s.offer.Kind, s.cfg.Kind = i, r } }
func answering(k mpa.Kind) setting  { return func(s *scenario) { s.answer.Kind = k } }
func markers(i, r bool) setting {
	return func(s *scenario) { s.offer.Markers, s.answer.Markers = i, r }
}
func noCRC(i, r bool) setting          { return func(s *scenario) { s.offer.NoCRC, s.answer.NoCRC = i, r } }
func initiatorRTR(k mpa.RTR) setting   { return func(s *scenario) { s.offer.RTR = k } }
func responderRTR(k mpa.RTR) setting   { return func(s *scenario) { s.answer.RTR = k } }
func deciding(d decision) setting      { return func(s *scenario) { s.decision = d } }
func insisting(ord mpa.Depth) setting  { return func(s *scenario) { s.insist = ord } }
func serving(d ...mpa.Dialect) setting { return func(s *scenario) { s.cfg.Dialects = d } }
func bound(i, r mpa.Depth) setting {
	return func(s *scenario) { s.offer.MaxIRD, s.answer.MaxIRD = i, r }
}
func clientServer(s *scenario)    { s.offer.ClientServer = true }
func allRTR(s *scenario)          { s.answer.AllRTR = true }
func asking(s *scenario)          { s.offer.Messages = true }
func takingMessages(s *scenario)  { s.cfg.Messages = true }
func bothMessages(s *scenario)    { s.offer.Messages, s.cfg.Messages = true, true }
func farewellMarkers(s *scenario) { s.cfg.Markers, s.cfg.NoCRC = true, true }
func patient(s *scenario)         { s.offer.Timeout, s.cfg.Timeout = -time.Second, -time.Second }

func depths(ird, ord, responderIRD, responderORD mpa.Depth) setting {
	return func(s *scenario) {
		s.offer.IRD, s.offer.ORD, s.answer.IRD, s.answer.ORD = ird, ord, responderIRD, responderORD
	}
}

func data(i, r string) setting {
	return func(s *scenario) { s.offer.PrivateData, s.answer.PrivateData = []byte(i), []byte(r) }
}

const (
	rfc5044, rfc6581, rtr2007 = mpa.DialectRFC5044, mpa.DialectRFC6581, mpa.DialectRtr
	revision0, startKey       = mpa.DialectRevision0, mpa.DialectStartKey
	sends, writes, reads      = mpa.RTRSend, mpa.RTRWrite, mpa.RTRRead
	unnegotiated              = mpa.NoNegotiation
)

func of(name string, settings ...setting) class {
	c := class{name: name}
	for _, set := range settings {
		set(&c.scenario)
	}
	return c
}

// classes cover all dialects, kinds of RNIC, markers and CRCs, depths, sets of RTR
// indications, private data, decisions, and what leads to a fallback.
var classes = []class{
	of("enhanced"),
	of("enhanced, markers to the Initiator", markers(true, false)),
	of("enhanced, markers to the Responder", markers(false, true)),
	of("enhanced, markers both ways, no CRC", markers(true, true), noCRC(true, true)),
	of("enhanced, CRC for the Initiator's sake", noCRC(false, true)),
	of("enhanced, CRC for the Responder's sake", noCRC(true, false)),
	of("enhanced, equal depths", depths(32, 32, 32, 32)),
	of("enhanced, an ORD above the Responder's IRD", depths(1, 64, 8, 1)),
	of("enhanced, the Responder's IRD grows", depths(1, 64, 8, 1), bound(0, 32)),
	of("enhanced, the Responder's ORD is lowered", depths(4, 4, 4, 64)),
	of("enhanced, the Initiator's depths left to the ULP", depths(unnegotiated, unnegotiated, 8, 8)),
	of("enhanced, the Responder's depths left to the ULP", depths(8, 8, unnegotiated, unnegotiated)),
	of("enhanced, the Initiator's IRD grows to what the Reply insists on", depths(4, 4, 4, 4),
		bound(16, 0), insisting(16)),
	of("enhanced, the Initiator's IRD cannot grow", depths(4, 4, 4, 4), insisting(16)),
	of("enhanced, RTR by Send", initiatorRTR(sends)),
	of("enhanced, a Responder that takes a Send alone", responderRTR(sends)),
	of("enhanced, RTR by Read without IRD", initiatorRTR(reads), depths(0, 0, 0, 0)),
	of("enhanced, no RTR in common", initiatorRTR(sends), responderRTR(writes)),
	of("enhanced, all RTR named", initiatorRTR(sends|writes), allRTR),
	of("enhanced, client-server", clientServer, depths(2, 2, 2, 2)),
	of("enhanced, private data", data("ask", "answer")),
	of("enhanced, rejected", deciding(rejects)),
	of("enhanced, rejected with data, client-server", deciding(rejects), clientServer,
		data("ask", "no"), depths(7, 7, 7, 7)),
	of("enhanced, no decision", deciding(ignores)),
	of("enhanced, without timeouts", patient),
	of("enhanced to a Responder of revision 1", serving(rfc5044)),
	of("enhanced to an RDMAC RNIC", kind(perm, rdmac)),
	of("enhanced, non-permissive, to an RDMAC RNIC", kind(nonperm, rdmac)),
	of("enhanced, answered by an RDMAC RNIC", answering(rdmac)),
	of("nothing enhanced wanted", clientServer, depths(unnegotiated, unnegotiated, 8, 8)),

	of("revision 1", dialect(rfc5044)),
	of("revision 1, markers both ways, data", dialect(rfc5044), markers(true, true), data("ask", "answer")),
	of("revision 1, no CRC", dialect(rfc5044), noCRC(true, true)),
	of("revision 1, rejected with data", dialect(rfc5044), deciding(rejects), data("", "no")),
	of("revision 1, no decision", dialect(rfc5044), deciding(ignores)),
	of("revision 1, an answer that does not fit", dialect(rfc5044), kind(perm, nonperm), answering(rdmac)),
	of("revision 1 to an RDMAC RNIC", dialect(rfc5044), kind(perm, rdmac)),
	of("revision 1, non-permissive, to an RDMAC RNIC", dialect(rfc5044), kind(nonperm, rdmac)),
	of("revision 1 to an RDMAC RNIC that rejects", dialect(rfc5044), kind(perm, rdmac), deciding(rejects)),
	of("revision 1 to a Responder of revision 2", dialect(rfc5044), serving(rfc6581)),

	of("Rtr frame", dialect(rtr2007), serving(rtr2007)),
	of("Rtr frame, markers, no CRC, data", dialect(rtr2007), serving(mpa.Dialects()...), markers(true, true),
		noCRC(true, true), data("ask", "answer")),
	of("Rtr frame not served", dialect(rtr2007)),
	of("Rtr frame to an RDMAC RNIC", dialect(rtr2007), kind(perm, rdmac)),
	of("Rtr frame, rejected", dialect(rtr2007), serving(rtr2007), deciding(rejects)),
	of("Rtr frame, no decision", dialect(rtr2007), serving(rtr2007), deciding(ignores)),
	of("Rtr frame, without timeouts", dialect(rtr2007), serving(rtr2007), patient),

	of("revision 0 to a permissive RNIC", kind(rdmac, perm), data("ask", "answer")),
	of("revision 0 of a permissive RNIC to a permissive one", dialect(revision0)),
	of("revision 0 to an RDMAC RNIC", kind(rdmac, rdmac)),
	of("revision 0 to a non-permissive RNIC", kind(rdmac, nonperm)),
	of("revision 0 to a non-permissive RNIC that wants markers and no CRC", kind(rdmac, nonperm), farewellMarkers),
	of("revision 0, rejected", kind(rdmac, perm), deciding(rejects), data("", "no")),
	of("revision 0 answered by a non-permissive RNIC", kind(rdmac, perm), answering(nonperm)),

	of("Start Key", dialect(startKey)),
	of("Start Key, markers, no CRC", dialect(startKey), markers(true, true), noCRC(true, true)),
	of("Start Key of an RDMAC RNIC", dialect(startKey), kind(rdmac, perm)),
	of("Start Key, rejected", dialect(startKey), deciding(rejects)),
	of("Start Key, no decision", dialect(startKey), deciding(ignores)),
	of("Start Key not served", dialect(startKey), serving(rfc5044, rfc6581)),
	of("Start Key to a non-permissive RNIC", dialect(startKey), kind(perm, nonperm)),
	of("Start Key to a Responder that takes messages", dialect(startKey), takingMessages),
	of("Request to a Responder that takes messages", takingMessages),
	of("messages", dialect(startKey), bothMessages),
	of("messages with data", dialect(startKey), bothMessages, data("ask", "answer")),
	of("messages, rejected with data", dialect(startKey), bothMessages, deciding(rejects), data("ask", "no")),
	of("messages, no decision", dialect(startKey), bothMessages, deciding(ignores)),
	of("messages, without timeouts", dialect(startKey), bothMessages, patient),
	of("a short message to a Responder that looks for a key", dialect(startKey), asking, data("ask", "")),
	of("a message as long as a key to a Responder that looks for one", dialect(startKey), asking,
		data("fourteen bytes"[:14], "")),
	of("a long message to a Responder that looks for a key", dialect(startKey), asking,
		data("more than fourteen bytes", "")),
}
