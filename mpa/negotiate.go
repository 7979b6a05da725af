package mpa

// Negotiated is what the two ends agreed on.
type Negotiated struct {
	// Role is the one of this end.
	Role    Role
	Dialect Dialect
	// Revision is the one that we sent, and PeerRevision the one that we received. The
	// ULP is to be told of the latter: RFC 5044, section 7.1.1.
	Revision, PeerRevision uint8
	// DDPVersion and RDMAPVersion are for DDP and RDMAP to put into their headers.
	DDPVersion, RDMAPVersion uint8

	// MarkersReceive is whether the peer inserts markers, MarkersSend whether we
	// must, and CRC whether both ends generate and check CRCs.
	MarkersReceive, MarkersSend, CRC bool

	// Enhanced is whether IRD and ORD were exchanged.
	Enhanced bool
	// IRD and ORD are the depths that this end has to use. Where the dialect negotiates
	// nothing they are those of the Offer or Answer. NoNegotiation leaves them to the
	// ULP.
	IRD, ORD Depth
	// PeerIRD and PeerORD are what the peer sent, for the ULP. They are NoNegotiation if
	// it sent none.
	PeerIRD, PeerORD Depth

	// PeerToPeer is whether an RTR indication opens the connection.
	PeerToPeer bool
	// RTR is, for an initiator, the one kind that it must send before any other FPDU,
	// even a Read if its ORD is 0. For a responder it is the set that the Reply named,
	// any of which may arrive.
	RTR RTR
	// OfferedRTR is the set that the Request named, and AnsweredRTR that of the Reply.
	OfferedRTR, AnsweredRTR RTR

	// PrivateData is the peer's, without the enhanced data.
	PrivateData []byte

	// SendFirst is whether we may send an FPDU before we have received one: as an
	// Initiator, and as a Responder that has received an Rtr frame.
	//
	// RFC 5044, section 7.1.2: "MPA Responder mode implementations MUST receive and
	// validate at least one FPDU before sending any FPDUs or Markers."
	SendFirst bool

	// TerminateCode is 6 or 7 if the negotiation failed: Full Operation then begins only
	// to send a Terminate of Layer 2, Error Type 0 and this code, and the connection is
	// closed after that. Otherwise it is 0.
	TerminateCode Code
}

// terms is what every startup frame says.
type terms struct {
	rev  uint8
	m, c bool
}

func (f *StartupFields) terms() terms { return terms{f.Rev, f.M, f.C} }
func (f StartupFrame) terms() terms   { return terms{f.Rev(), f.M(), f.C()} }
func (k StartKey) terms() terms       { return terms{k.Rev(), k.M(), k.C()} }

// agree fills in what the two startup frames say in every dialect.
func agree(role Role, d Dialect, ours, peer terms) Negotiated {
	row := d.row()
	return Negotiated{
		Role: role, Dialect: d, Revision: ours.rev, PeerRevision: peer.rev,
		// CARRIER, section 5.1: "Between DDP and RDMAP, no mixing of versions is
		// allowed. Moreover, the DDP and RDMAP version MUST be identical in the two
		// directions." [N02] [N06]
		DDPVersion: row.version, RDMAPVersion: row.version,
		// RFC 5044, section 7.1.1: "When in a received MPA Request Frame or MPA
		// Reply Frame and the value is '0', Markers MUST NOT be added to the data
		// stream by that endpoint. When '1' Markers MUST be added". [Q04] [F11]
		// With RDMAC RNICs they are "regardless of the value of the M bit":
		// CARRIER, section 5.3.2. [N05]
		MarkersReceive: ours.m || row.always, MarkersSend: peer.m || row.always,
		// "When this bit is '1' in either the MPA Request Frame or MPA Reply Frame,
		// CRCs MUST be generated and checked by both endpoints." [F14]
		CRC:     ours.c || peer.c || row.always,
		PeerIRD: NoNegotiation,
		PeerORD: NoNegotiation,
		// The 2007 proposal: the Rtr frame lets the Responder send. [T03]
		SendFirst: role == RoleInitiator || row.free,
	}
}

// responderIRD returns the responder's IRD, and what its Reply says of it.
//
// RFC 6581, section 9.1: "This value is greater than or equal to the initiator ORD
// for successful negotiations." It grows up to a bound of ours [E14]; above that
// the initiator "MUST set [...] its ORD at most to the responder IRD". "The
// responder MUST respond to an initiator ORD value of 0x3FFF by leaving its local
// endpoint IRD value unchanged and setting the IRD to 0x3FFF in its reply message." [E03] [E04] [E06]
func responderIRD(own, most, initiatorORD Depth) (effective, sent Depth) {
	if initiatorORD == NoNegotiation {
		return own, NoNegotiation
	}
	effective = max(own, min(initiatorORD, most))
	return effective, effective
}

// responderORD returns the responder's ORD, and what its Reply says of it.
//
// RFC 6581, section 9.1: "The responder MUST set its ORD at most to the initiator
// IRD." "The responder MUST respond to an initiator IRD value of 0x3FFF by leaving
// its local endpoint ORD value unchanged, and setting ORD to 0x3FFF in its reply
// message." [E04] [E06]
func responderORD(own, initiatorIRD Depth) (effective, sent Depth) {
	if initiatorIRD == NoNegotiation || own == NoNegotiation {
		return own, NoNegotiation
	}
	effective = min(own, initiatorIRD)
	return effective, effective
}

// initiatorORD returns the initiator's ORD after the Reply.
//
// RFC 6581, section 9.1: "the initiator MUST set [...] its ORD at most to the
// responder IRD", and "MUST leave its local endpoint ORD value unchanged upon
// receiving a responder IRD value of 0x3FFF", which is above any of ours. [E04] [E06]
func initiatorORD(own, responderIRD Depth) Depth { return min(own, responderIRD) }

// initiatorIRD returns the initiator's IRD after the Reply, and false if we do not
// have the resources.
//
// RFC 6581, section 9.1: "the initiator MUST set its IRD at least to the responder
// ORD", and "MUST leave its local endpoint IRD value unchanged upon receiving a
// responder ORD value of 0x3FFF." [E04] [E06]
func initiatorIRD(own, most, responderORD Depth) (effective Depth, ok bool) {
	if responderORD == NoNegotiation || responderORD <= own {
		return own, true
	}
	if responderORD <= most {
		return responderORD, true
	}
	// "If the initiator does not have sufficient resources for the required IRD,
	// it MUST send a TERM message to the responder". [E05]
	return own, false
}

// answerRTR returns the kinds that a responder's Reply names.
//
// RFC 6581, section 9.2: "For each initiator-supported RTR indication option, the
// responder SHOULD set the corresponding Control Flag if the responder can support
// that option in an MPA reply." [E15] "The responder MAY include additional RTR
// indication options it supports", and "If the responder does not support any of the
// initiator-specified RTR indication options, then the responder MUST set at least one
// RTR indication type option it supports." [E08]
func answerRTR(offered, supported RTR, all bool) RTR {
	common := offered & supported
	if all || common == 0 {
		return supported
	}
	return common
}

// chooseRTR returns the kind that an initiator sends, of those that both ends named, or
// none.
//
// RFC 6581, section 9.2: "Upon receiving the MPA Accept Frame with Control Flag A
// set to 1, the initiator MUST generate one of the negotiated RTR indications." A
// Write is first choice, as it takes nothing of the responder. A Send comes last: it
// is the one kind that shows on a queue that consumers use. [E09]
func chooseRTR(common RTR) RTR {
	for _, kind := range [...]RTR{RTRWrite, RTRRead, RTRSend} {
		if common&kind != 0 {
			return kind
		}
	}
	return 0
}
