package conform_test

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/sctp"
)

// activeVariants are those of our endpoint as the one that asks for sessions over SCTP.
func activeVariants() []sctpVariant {
	all := []sctpVariant{
		{name: "no indication in the INIT", rule: "C05", caughtBy: "sctp/active-indication",
			fromPeer: onKinds(noParams, chunk.TypeInit)},
		{name: "more streams out than in, in the INIT", rule: "C10", caughtBy: "sctp/active-streams",
			fromPeer: onKinds(streams, chunk.TypeInit)},
		{name: "has two addresses in the INIT", rule: "C14", caughtBy: "sctp/active-addresses", reasons: true,
			fromPeer: onKinds(address, chunk.TypeInit)},
		{name: "takes an INIT ACK without indication", rule: "C05", caughtBy: "sctp/active-indication-none",
			toPeer: onKinds(indicatedAck, chunk.TypeInitAck)},
		{name: "takes an INIT ACK with another indication", rule: "C05", caughtBy: "sctp/active-indication-other",
			toPeer: onKinds(indicatedAck, chunk.TypeInitAck)},
		{name: "asks by a segment", rule: "C04", caughtBy: "sctp/active-accept", fromPeer: onFunction(5, harmless)},
		{name: "asks by an Accept", rule: "C04", caughtBy: "sctp/active-accept", fromPeer: function(5, 6)},
		{name: "counts DDP-SSNs from 1 as the first to speak", rule: "C04", caughtBy: "sctp/active-accept",
			fromPeer: onMessages(laterSSN)},
		{name: "has private data in its last Terminate", rule: "C03", caughtBy: "sctp/active-accept",
			fromPeer: onFunction(4, func(m *sctp.Message) { m.Data = append(m.Data, 1) })},
		{name: "sends no RTR indication", rule: "C01", caughtBy: "sctp/active-ready",
			fromPeer: onSegments(first(asSend))},
		{name: "does not take 512 bytes in an Accept", rule: "C02", caughtBy: "sctp/active-private-data",
			toPeer: onMessages(lengthened)},
		{name: "does not mind a Reject", rule: "C01", caughtBy: "sctp/active-reject", toPeer: function(7, 6)},
		{name: "delivers in the order of arrival, asking", rule: "C06", caughtBy: "sctp/active-ssn-order",
			toPeer: onSegments(inOrder())},
		{name: "delivers a DDP-SSN twice, asking", rule: "C12", caughtBy: "sctp/active-ssn-twice",
			toPeer: onSegments(inOrder())},
		{name: "delivers a DDP-SSN that cannot be, asking", rule: "C12", caughtBy: "sctp/active-ssn-far",
			toPeer: onSegments(inOrder())},
		{name: "takes 513 bytes in an Accept", rule: "C02", caughtBy: "sctp/active-answer-accept-513",
			toPeer: onFunction(6, cut(512))},
		{name: "minds no Accept of the other kind", rule: "C01", caughtBy: "sctp/active-answer-accept-kind",
			plain: true, toPeer: function(6, 2)},
		{name: "minds no unknown function as an answer", rule: "C01", caughtBy: "sctp/active-answer-function-unknown",
			plain: true, toPeer: function(8, 2)},
		{name: "minds no Initiate as an answer", rule: "C04", caughtBy: "sctp/active-answer-initiate",
			plain: true, toPeer: function(1, 2)},
		{name: "minds no segment as an answer", rule: "C04", caughtBy: "sctp/active-answer-segment", plain: true,
			toPeer: onSegments(asAccept)},
		{name: "speaks before it is accepted", rule: "C04", caughtBy: "sctp/active-waits", early: true},
	}
	for _, v := range sctpVariants() {
		open := map[string]string{
			"sctp/ppid": "sctp/active-ppid", "sctp/accept-again": "sctp/active-accept-again",
			"sctp/reject-late":           "sctp/active-reject-late",
			"sctp/function-unknown-open": "sctp/active-function-unknown-open",
			"sctp/terminate-data":        "sctp/active-terminate-data",
			"sctp/control-short":         "sctp/active-control-short",
			"sctp/segment-short":         "sctp/active-segment-short",
		}
		if open[v.caughtBy] == "" {
			continue
		}
		v.name += ", asking"
		v.caughtBy = open[v.caughtBy]
		all = append(all, v)
	}
	for i := range all {
		all[i].active = true
	}
	return append(all, sctpVariant{
		name: "minds no Initiate of the other end's", rule: "C04", caughtBy: "sctp/active-initiate-again", active: true,
		toPeer: onFunction(1, harmless),
	})
}

// indicatedAck has an INIT ACK be one of DDP.
func indicatedAck(b []byte) []byte {
	s, _ := chunk.ParseSetup(b)
	s.Adaptation, s.HasAdaptation = sctp.AdaptationDDP, true
	return s.Append(nil)
}

// early has a DDP Segment come together with an Initiate, with a TSN that is far from those of the endpoint.
func early(p []byte) []byte {
	all, _ := chunk.In(p)
	for _, c := range all {
		d, ok := c.Data()
		if m := (sctp.Message{PPID: d.PPID, Data: d.Bytes}); ok && m.Function() == sctp.FunctionEnhancedInitiate {
			laterSSN(&m)
			harmless(&m)
			d = chunk.Data{TSN: d.TSN + 1<<20, PPID: m.PPID, Bytes: m.Data}
			also := d.Chunk(c.Flags)
			return also.Append(p)
		}
	}
	return p
}

// first has only the first message of a session changed.
func first(change func(*sctp.Message)) func(*sctp.Message) {
	return func(m *sctp.Message) {
		if binary.BigEndian.Uint16(m.Data) == 1 {
			change(m)
		}
	}
}

// asSend has a segment be a Send of a byte.
func asSend(m *sctp.Message) {
	m.PPID = sctp.PPIDSegment
	m.Data = []byte{m.Data[0], m.Data[1], 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}
}

// asAccept has a first segment be an Accept.
func asAccept(m *sctp.Message) {
	if m.Data[0] == 0 && m.Data[1] == 0 {
		m.PPID, m.Data = sctp.PPIDControl, []byte{0, 0, 0, 2}
	}
}
