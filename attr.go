package iwarp

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
)

// Errors of attributes that an RNIC or a connection does not have, as
// draft-carrier-rddp-rnic-interop-00, section 6.2, adds them to the RDMA verbs.
var (
	// ErrVersion: DDP/RDMAP version not supported, by the kind of the RNIC or as the
	// QP was set.
	ErrVersion = errors.New("DDP/RDMAP version not supported")
	// ErrMarkersRequired: disabling markers not supported, as RDMAC RNICs cannot do
	// without, or as the peer asks for them.
	ErrMarkersRequired = errors.New("disabling markers not supported")
)

// Version is the version of DDP and of RDMAP, which is the same for both and in
// both directions. [N02]
type Version uint8

// The versions of DDP and RDMAP.
const (
	// VersionAny is the one that the startup negotiates, of those that the RNIC has.
	VersionAny Version = iota
	// Version0 is the RDMA Consortium's. Set for a QP, it speaks as that of an RDMAC
	// RNIC: with markers and CRCs in both directions.
	Version0
	// Version1 is that of RFC 5040 and RFC 5041. Set for a QP, it does not come up
	// with an RDMAC RNIC.
	Version1
)

// versionOf returns the constant for a version as it stands in headers, 0 or 1.
func versionOf(onWire uint8) Version { return Version0 + Version(onWire) }

// String returns "any", "0" or "1".
func (v Version) String() string {
	names := [...]string{"any", "0", "1"}
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("version value %d", uint8(v))
}

// Markers says whether there are MPA markers in one direction of a connection.
type Markers uint8

// What can be said of markers.
const (
	// MarkersDefault leaves it to others: of what is received to the offer and to
	// the RNIC's preference, of what is sent to the peer.
	MarkersDefault Markers = iota
	// MarkersOff is without.
	MarkersOff
	// MarkersOn is with.
	MarkersOn
)

func markersOf(on bool) Markers {
	if on {
		return MarkersOn
	}
	return MarkersOff
}

// String returns "default", "off" or "on".
func (m Markers) String() string {
	names := [...]string{"default", "off", "on"}
	if int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("markers value %d", uint8(m))
}

// StreamAttr is what a QP can ask of MPA, DDP and RDMAP for its connection:
// draft-carrier-rddp-rnic-interop-00, sections 6.2.2, 6.2.4 and 6.2.5. The zero
// value leaves all to the startup.
type StreamAttr struct {
	// MarkersReceive is our M: whether the peer has to insert markers into what it
	// sends us.
	MarkersReceive Markers
	// MarkersSend is whether we insert them into what we send. The peer decides: with
	// MarkersOff there is no connection with one that asks for them, and with
	// MarkersOn there are none all the same if it does not ask. [Q04] [F11]
	MarkersSend Markers
	// Version is that of DDP and RDMAP.
	Version Version
}

// kind narrows a kind of RNIC to those that have the version.
func (a StreamAttr) kind(rnic mpa.Kind) mpa.Kind {
	switch a.Version {
	case Version0:
		return mpa.KindRDMAC
	case Version1:
		return mpa.KindNonPermissive
	}
	return rnic
}

// off reports whether markers are ruled out in a direction.
func (a StreamAttr) off() bool { return a.MarkersReceive == MarkersOff || a.MarkersSend == MarkersOff }

// check judges the attributes for an RNIC of a kind. [V02] [V04]
func (a StreamAttr) check(rnic mpa.Kind) error {
	switch {
	case a.Version > Version1:
		return fmt.Errorf("%w: there is no %v", ErrVersion, a.Version)
	case a.Version != VersionAny && !hasVersion(rnic, a.Version):
		return fmt.Errorf("%w: version %v by an RNIC of kind %v", ErrVersion, a.Version, rnic)
	case a.MarkersReceive > MarkersOn || a.MarkersSend > MarkersOn:
		return fmt.Errorf("%w: there is no %v, or no %v", ErrInvalid, a.MarkersReceive, a.MarkersSend)
	case a.kind(rnic) == mpa.KindRDMAC && a.off():
		return fmt.Errorf("%w: version 0 is that of RDMAC RNICs, which always have them", ErrMarkersRequired)
	}
	return nil
}

func hasVersion(k mpa.Kind, v Version) bool { return k.Version(uint8(v - Version0)) }

// checkNegotiated judges whether a connection is one that the attributes allow, on
// an RNIC of a kind.
func (a StreamAttr) checkNegotiated(rnic mpa.Kind, n *mpa.Negotiated) error {
	switch {
	case n.DDPVersion > 1 || !a.kind(rnic).Version(n.DDPVersion):
		return fmt.Errorf("%w: version %d was negotiated (revision %d sent, %d received), the RNIC is of kind %v and the QP is set to version %v",
			ErrVersion, n.DDPVersion, n.Revision, n.PeerRevision, rnic, a.Version)
	case a.MarkersReceive == MarkersOff && n.MarkersReceive, a.MarkersSend == MarkersOff && n.MarkersSend:
		return fmt.Errorf("%w: they were negotiated (to be received %t, to be sent %t), and the QP is set to %v and %v",
			ErrMarkersRequired, n.MarkersReceive, n.MarkersSend, a.MarkersReceive, a.MarkersSend)
	}
	return nil
}

// negotiatedAttr is what a connection has.
func negotiatedAttr(n *mpa.Negotiated) StreamAttr {
	return StreamAttr{
		MarkersReceive: markersOf(n.MarkersReceive), MarkersSend: markersOf(n.MarkersSend), Version: versionOf(n.DDPVersion),
	}
}

// chosen fills in what is certain of a QP's attributes before it is connected.
func (r *RNIC) chosen(a StreamAttr) StreamAttr {
	rdmac := a.kind(r.kind) == mpa.KindRDMAC
	if a.MarkersReceive == MarkersDefault {
		a.MarkersReceive = markersOf(r.markers || rdmac)
	}
	if a.MarkersSend == MarkersDefault && rdmac {
		a.MarkersSend = MarkersOn
	}
	if versions := r.versions(); len(versions) == 1 {
		a.Version = versions[0]
	}
	return a
}

// narrow puts the QP's attributes and the RNIC's preference into an offer, which may
// narrow the kind further. [N01]
func (qp *QP) narrow(o mpa.Offer) (mpa.Offer, error) {
	a := qp.stream()
	kind := a.kind(qp.rnic.kind)
	switch {
	case o.Kind == 0:
		o.Kind = kind
	case o.Kind != kind && kind != mpa.KindPermissive:
		return o, fmt.Errorf("%w: a connection of kind %v by a QP of kind %v", ErrVersion, o.Kind, kind)
	}
	rdmac := o.Kind == mpa.KindRDMAC
	switch {
	case a.MarkersReceive == MarkersOff && o.Markers:
		return o, fmt.Errorf("%w: the offer asks for markers, and the QP is set to receive none", ErrInvalid)
	case a.off() && (rdmac || o.Dialect == mpa.DialectRevision0):
		return o, fmt.Errorf("%w: revision 0 is that of RDMAC RNICs, which always have them", ErrMarkersRequired)
	case a.MarkersReceive != MarkersOff:
		o.Markers = o.Markers || a.MarkersReceive == MarkersOn || qp.rnic.markers || rdmac
	}
	return o, nil
}

// answerable reports why a QP of the attributes cannot take a Request at all, as one
// of a kind. The Request can still be answered in another way.
func (a StreamAttr) answerable(q *mpa.Request, kind mpa.Kind) error {
	version0 := q.Dialect == mpa.DialectRevision0 || q.Dialect == mpa.DialectStartKey
	switch {
	case version0 && !kind.Version(0):
		return fmt.Errorf("%w: the peer starts with %v, which takes version 0: not of a QP of kind %v", ErrVersion, q.Dialect, kind)
	case a.MarkersSend == MarkersOff && q.Markers:
		return fmt.Errorf("%w: the peer asks for them (M=1), and the QP is set to send none", ErrMarkersRequired)
	}
	return nil
}

// A QPAttr is what QP.Query returns.
type QPAttr struct {
	State State
	// IRD and ORD are in force: how many RDMA Reads may be outstanding inbound and
	// outbound. They are 0 before there is a connection. [P45]
	IRD, ORD int
	// Stream is what the connection has; before there is one, what was chosen, by
	// the QP or the RNIC. [V03]
	Stream StreamAttr
	// Kind is the RNIC's, narrowed by the version that the QP is set to. [N01]
	Kind mpa.Kind
	// MULPDU is the largest ULPDU sent, in octets: it follows TCP's EMSS.
	MULPDU int
	// Sends and Receives are the requests that are not complete.
	Sends, Receives int
	// Terminate is what was sent to the peer or received from it; nil if neither.
	Terminate *TerminateError
}

// Query returns the QP's present attributes.
func (qp *QP) Query() QPAttr {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	p := qp.eng.Negotiated()
	a := QPAttr{State: State(qp.eng.State()), IRD: p.IRD, ORD: p.ORD, MULPDU: p.MULPDU, Kind: qp.attr.kind(qp.rnic.kind)}
	a.Stream = qp.rnic.chosen(qp.attr)
	if qp.conn != nil {
		a.Stream = negotiatedAttr(&qp.neg.Negotiated)
	}
	a.Sends, a.Receives = qp.eng.Outstanding()
	_ = errors.As(publicError(qp.eng.Cause()), &a.Terminate)
	return a
}
