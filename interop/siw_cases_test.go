package interop_test

import (
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// A siwCase is a way for iwarp and siw to start a connection, and what comes of
// it. It is a row of a table in docs/dev/interop.md.
type siwCase struct {
	// siw is what the driver's constants are set to, "name=value ..."; with each of
	// several values, "name=1,2", the same comes of it. All else is as in the
	// unchanged driver.
	siw string
	// iwarp is what iwarp is told, in words, and the settings follow.
	iwarp    string
	offer    mpa.Offer
	noReads  bool          // an IRD and ORD of zero are meant
	kind     mpa.Kind      // of RNIC
	dialects []mpa.Dialect // that a Responder serves
	// echo exchanges a message by Sends in place of rping's, for connections that
	// allow no Reads, and for siw's end to name an IRD and ORD of 1 whatever iwarp
	// asks for: rping -s takes over what that is.
	echo bool

	up      string // what iwarp says was negotiated, "name=value ...": the data are right
	refused string // otherwise, what its error says
	event   string // and the event that the guest's program gets
}

// outcome is the table's last column.
func (c *siwCase) outcome() string {
	switch {
	case c.up != "":
		return "up: " + c.up
	case c.event != "":
		return "refused: \"" + c.refused + "\"; the guest gets " + c.event
	}
	return "refused: \"" + c.refused + "\""
}

// What iwarp is told, in words.
const (
	asItIs        = "as it is"
	noCRC         = "no CRC"
	rtrWrite      = "RTR by Write"
	rtrRead       = "RTR by Read"
	rtrSend       = "RTR by Send"
	noDepths      = "IRD 0, ORD 0"
	notNegotiated = "IRD and ORD 0x3FFF"
	nonPermissive = "non-permissive RNIC"
)

// The events of librdmacm that the guest's programs show.
const (
	eventRejected = "RDMA_CM_EVENT_REJECTED"
	eventError    = "RDMA_CM_EVENT_CONNECT_ERROR"
)

// The texts of iwarp's errors.
const (
	errRejectedCRC   = "the Request asked for CRCs (C=1) and the rejection has C=0"
	errLeftCRC       = "we asked it for CRCs and it did not, which Linux's siw refuses if told so"
	errMarkers       = "the Request asked for markers (M=1), which some responders cannot send"
	errMarkersRDMAC  = "RDMAC RNICs always use markers, which some responders cannot send"
	errLeftMarkers   = "we asked it for markers, which not every peer has"
	errTerminateIRD  = "the peer asked for IRD 1 and ORD 1 and may not take our Reply's"
	errTerminateRTR  = "the peer offers RTR by "
	errSilence       = "closed the connection on a revision 2 Request; retried with revision 1: "
	errNoORD         = "rdma-core's rping then has no ORD to Read with: use revision 2"
	errRevision0     = "Request of revision 0, and this RNIC is a non-permissive one"
	errRtrFrame      = "it may be about our Rtr frame, as some responders repeat the Request's S=1 without knowing that frame"
	errNoStartKey    = "the responder does not know the Start Key"
	errRevision1Only = "revision 2 is not served"
	errRevision2Only = "revision 1 is not served"
)

// siwTables are the tables of docs/dev/interop.md, by name.
var siwTables = map[string][]siwCase{
	"parameters, siw as Responder": siwParametersResponder,
	"parameters, siw as Initiator": siwParametersInitiator,
	"dialects, siw as Responder":   siwDialectsResponder,
	"dialects, siw as Initiator":   siwDialectsInitiator,
}

// As a Responder siw follows the Request: its own revision, model and kind of RTR
// count for nothing. It never enforces a CRC, and refuses one only where strict says
// so and it does not require one itself.
var siwParametersResponder = []siwCase{
	{siw: "mpa_version=1,2 peer_to_peer=0,1 rtr_type=1,2,3", iwarp: asItIs,
		up: "revision=2 crc=on rtr=write ird=1 ord=1"},
	{siw: "mpa_crc_required=0,1 mpa_crc_strict=0,1", iwarp: noCRC, offer: mpa.Offer{NoCRC: true},
		up: "revision=2 crc=off rtr=write ird=1 ord=1"},
	{siw: "mpa_crc_required=1 mpa_crc_strict=0,1", iwarp: asItIs, up: "revision=2 crc=on rtr=write ird=1 ord=1"},
	{siw: "mpa_crc_required=0 mpa_crc_strict=1", iwarp: asItIs, refused: errRejectedCRC},
	{siw: "relaxed_ird_negotiation=0,1", iwarp: asItIs, up: "revision=2 crc=on rtr=write ird=1 ord=1"},
	{siw: "relaxed_ird_negotiation=1", iwarp: "IRD 1, ORD 200", offer: mpa.Offer{IRD: 1, ORD: 200}, echo: true,
		up: "revision=2 crc=on rtr=write ird=1 ord=128"},
	{siw: "relaxed_ird_negotiation=0", iwarp: "IRD 1, ORD 200", offer: mpa.Offer{IRD: 1, ORD: 200},
		echo: true, refused: errSilence},
	{siw: "relaxed_ird_negotiation=1", iwarp: noDepths, noReads: true, echo: true,
		up: "revision=2 crc=on rtr=write ird=0 ord=0"},
	{siw: "relaxed_ird_negotiation=0", iwarp: noDepths, noReads: true, echo: true, refused: errSilence},
}

// As an Initiator siw asks for a CRC if it requires one, so that iwarp uses CRCs
// even without wanting any: either side's wish is enough (RFC 5044, section 7.1).
var siwParametersInitiator = []siwCase{
	{siw: "mpa_version=1 peer_to_peer=0,1 rtr_type=1,2,3", iwarp: asItIs, up: "revision=1 crc=on rtr=none ird=1 ord=1"},
	{siw: "mpa_version=2 peer_to_peer=0 rtr_type=1,2,3", iwarp: asItIs, up: "revision=2 crc=on rtr=none ird=1 ord=1"},
	{siw: "peer_to_peer=1 rtr_type=1", iwarp: asItIs, up: "revision=2 crc=on rtr=write ird=1 ord=1"},
	{siw: "peer_to_peer=1 rtr_type=2", iwarp: asItIs, up: "revision=2 crc=on rtr=read ird=1 ord=1"},
	{siw: "peer_to_peer=1 rtr_type=3", iwarp: asItIs, up: "revision=2 crc=on rtr=write|read ird=1 ord=1"},
	{siw: "peer_to_peer=1 rtr_type=3", iwarp: rtrWrite, offer: mpa.Offer{RTR: mpa.RTRWrite},
		up: "revision=2 crc=on rtr=write ird=1 ord=1"},
	{siw: "peer_to_peer=1 rtr_type=3", iwarp: rtrRead, offer: mpa.Offer{RTR: mpa.RTRRead},
		up: "revision=2 crc=on rtr=read ird=1 ord=1"},
	{siw: "peer_to_peer=1 rtr_type=1", iwarp: rtrRead, offer: mpa.Offer{RTR: mpa.RTRRead},
		refused: errTerminateRTR + "write and we have read", event: eventError},
	{siw: "peer_to_peer=1 rtr_type=2", iwarp: rtrWrite, offer: mpa.Offer{RTR: mpa.RTRWrite},
		refused: errTerminateRTR + "read and we have write", event: eventError},
	{siw: "peer_to_peer=1 rtr_type=3", iwarp: rtrSend, offer: mpa.Offer{RTR: mpa.RTRSend},
		refused: errTerminateRTR + "write|read and we have send", event: eventError},
	{siw: "peer_to_peer=1 rtr_type=1", iwarp: rtrRead + ", no CRC", offer: mpa.Offer{RTR: mpa.RTRRead, NoCRC: true},
		refused: errTerminateRTR + "write and we have read", event: eventError},
	{siw: "mpa_crc_required=0 mpa_crc_strict=0,1", iwarp: noCRC, offer: mpa.Offer{NoCRC: true},
		up: "revision=2 crc=off rtr=none ird=1 ord=1"},
	{siw: "mpa_crc_required=1 mpa_crc_strict=0,1", iwarp: noCRC, offer: mpa.Offer{NoCRC: true},
		up: "revision=2 crc=on rtr=none ird=1 ord=1"},
	{siw: "mpa_crc_required=1 mpa_crc_strict=0,1", iwarp: asItIs, up: "revision=2 crc=on rtr=none ird=1 ord=1"},
	{siw: "mpa_crc_required=0 mpa_crc_strict=1", iwarp: asItIs, refused: errLeftCRC, event: eventRejected},
	{siw: "relaxed_ird_negotiation=0,1", iwarp: asItIs, up: "revision=2 crc=on rtr=none ird=1 ord=1"},
	{siw: "relaxed_ird_negotiation=1", iwarp: noDepths, noReads: true, echo: true,
		up: "revision=2 crc=on rtr=none ird=0 ord=0"},
	{siw: "relaxed_ird_negotiation=0", iwarp: noDepths, noReads: true, echo: true,
		refused: errTerminateIRD, event: eventError},
}

// iwarp's dialects as an Initiator. RTR by Send alone is not among them: siw names
// Write, iwarp has to send a Terminate then, and siw's kernel does not survive one
// in front of the RTR indication.
var siwDialectsResponder = []siwCase{
	{iwarp: "rfc6581, client-server (A=0)", offer: mpa.Offer{ClientServer: true},
		up: "revision=2 crc=on rtr=none ird=1 ord=1"},
	{iwarp: "rfc6581, " + rtrWrite, offer: mpa.Offer{RTR: mpa.RTRWrite}, up: "revision=2 crc=on rtr=write ird=1 ord=1"},
	{iwarp: "rfc6581, " + rtrRead, offer: mpa.Offer{RTR: mpa.RTRRead}, up: "revision=2 crc=on rtr=read ird=1 ord=1"},
	{iwarp: "rfc6581, RTR by any", offer: mpa.Offer{RTR: mpa.RTRWrite | mpa.RTRRead | mpa.RTRSend},
		up: "revision=2 crc=on rtr=write ird=1 ord=1"},
	{iwarp: "rfc6581, IRD 200, ORD 200", offer: mpa.Offer{IRD: 200, ORD: 200},
		up: "revision=2 crc=on rtr=write ird=200 ord=128"},
	{iwarp: "rfc6581, " + notNegotiated, offer: mpa.Offer{IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation},
		up: "revision=2 crc=on rtr=write ird=128 ord=128"},
	{iwarp: "rfc6581, markers", offer: mpa.Offer{Markers: true}, refused: errMarkers},
	{iwarp: "rfc5044, Sends alone", offer: mpa.Offer{Dialect: mpa.DialectRFC5044}, echo: true,
		up: "revision=1 crc=on rtr=none ird=32 ord=32"},
	{iwarp: "rfc5044, rping", offer: mpa.Offer{Dialect: mpa.DialectRFC5044}, refused: errNoORD},
	{iwarp: "rtr2007", offer: mpa.Offer{Dialect: mpa.DialectRtr}, echo: true, refused: errRtrFrame},
	{iwarp: "revision0", offer: mpa.Offer{Dialect: mpa.DialectRevision0}, refused: errMarkersRDMAC},
	{iwarp: "startkey", offer: mpa.Offer{Dialect: mpa.DialectStartKey, Timeout: time.Minute}, refused: errNoStartKey},
}

// What iwarp can be as a Responder. siw's Initiator never falls back.
var siwDialectsInitiator = []siwCase{
	{siw: "mpa_version=1", iwarp: "all dialects are served", dialects: mpa.Dialects(),
		up: "revision=1 crc=on rtr=none ird=1 ord=1"},
	{siw: "mpa_version=2", iwarp: "all dialects are served", dialects: mpa.Dialects(),
		up: "revision=2 crc=on rtr=none ird=1 ord=1"},
	{siw: "mpa_version=1", iwarp: nonPermissive, kind: mpa.KindNonPermissive,
		up: "revision=1 crc=on rtr=none ird=1 ord=1"},
	{siw: "mpa_version=2", iwarp: nonPermissive, kind: mpa.KindNonPermissive,
		up: "revision=2 crc=on rtr=none ird=1 ord=1"},
	{siw: "mpa_version=2", iwarp: "rfc5044 alone is served", dialects: []mpa.Dialect{mpa.DialectRFC5044},
		refused: errRevision1Only, event: eventRejected},
	{siw: "mpa_version=1", iwarp: "rfc6581 alone is served", dialects: []mpa.Dialect{mpa.DialectRFC6581},
		refused: errRevision2Only, event: eventRejected},
	{siw: "mpa_version=1", iwarp: "RDMAC RNIC", kind: mpa.KindRDMAC,
		refused: "its startup frame was of revision 1 and ours of revision 0", event: eventRejected},
	{siw: "mpa_version=2", iwarp: "RDMAC RNIC", kind: mpa.KindRDMAC,
		refused: "its startup frame was of revision 2 and ours of revision 0", event: eventRejected},
	{siw: "mpa_version=0", iwarp: asItIs, refused: errLeftMarkers, event: eventRejected},
	{siw: "mpa_version=0", iwarp: nonPermissive, kind: mpa.KindNonPermissive, refused: errRevision0},
	{siw: "mpa_version=2", iwarp: "markers", offer: mpa.Offer{Markers: true},
		refused: errLeftMarkers, event: eventRejected},
	{siw: "mpa_version=2", iwarp: notNegotiated, offer: mpa.Offer{IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation},
		refused: errTerminateIRD, event: eventError},
}
