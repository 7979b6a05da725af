package iwarp

import (
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// Version is the version of DDP and of RDMAP, which is the same for both and in
// both directions (draft-carrier-rddp-rnic-interop-00, section 5.1).
type Version uint8

// The versions of DDP and RDMAP.
const (
	// VersionAny leaves the choice to the startup, among those that the RNIC has.
	VersionAny Version = iota
	// Version0 is the RDMA Consortium's. A QP that is set to it behaves as that of an
	// RDMAC RNIC, with markers and CRCs in both directions.
	Version0
	// Version1 is that of RFC 5040 and RFC 5041. A QP that is set to it does not
	// connect with an RDMAC RNIC.
	Version1
)

// versionOf returns the constant for a version as it stands in headers, 0 or 1.
func versionOf(onWire uint8) Version { return Version0 + Version(onWire) }

// String returns "any", "0" or "1".
func (v Version) String() string { return wording.Name(v, "version value", []string{"any", "0", "1"}) }

// Markers says whether there are MPA markers in one direction of a connection.
type Markers uint8

// The settings for markers.
const (
	// MarkersDefault leaves the decision on what we receive to the offer and the
	// RNIC's preference, and that on what we send to the peer.
	MarkersDefault Markers = iota
	// MarkersOff means no markers.
	MarkersOff
	// MarkersOn means markers.
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
	return wording.Name(m, "markers value", []string{"default", "off", "on"})
}

// CRCPolicy says who decides whether connections use CRCs. Whatever it is, a connection uses
// them if the peer wants them, and version 0 always does.
type CRCPolicy uint8

// The policies on CRCs.
const (
	// CRCByOffer leaves the decision to the NoCRC of each connection's offer, which is
	// then the administrator's interface.
	CRCByOffer CRCPolicy = iota
	// CRCAlways uses CRCs on all connections, also where an offer has NoCRC.
	CRCAlways
	// CRCUnwanted tells all peers that we prefer to do without CRCs. Choose it only
	// where something as strong protects the TCP connections, such as IPsec between
	// the ends.
	CRCUnwanted
)

// String returns "by offer", "always" or "unwanted".
func (p CRCPolicy) String() string {
	return wording.Name(p, "CRC policy value", []string{"by offer", "always", "unwanted"})
}

// noCRC applies the policy to what an offer says.
//
// RFC 5044, section 4.4: an implementation may "only indicate a preference not to use CRCs on
// the explicit request of the system administrator". [F13]
func (p CRCPolicy) noCRC(offered bool) bool {
	return p == CRCUnwanted || p == CRCByOffer && offered
}

// StreamAttr is what a QP can ask of MPA, DDP and RDMAP for its connection
// (draft-carrier-rddp-rnic-interop-00, sections 6.2.2, 6.2.4 and 6.2.5). The zero
// value leaves everything to the startup.
type StreamAttr struct {
	// MarkersReceive is our M: whether the peer must insert markers into what it
	// sends us.
	MarkersReceive Markers
	// MarkersSend is whether we insert markers into what we send. The peer decides
	// this (RFC 5044, section 7.1.1): with MarkersOff a QP does not connect with a
	// peer that asks for markers, and even with MarkersOn it sends none to a peer that
	// does not ask.
	MarkersSend Markers
	// Version is the version of DDP and RDMAP.
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

// check returns why an RNIC of a kind cannot have the attributes. [V02] [V04]
func (a StreamAttr) check(rnic mpa.Kind) error {
	switch {
	case checkKind(rnic) != nil:
		return badOffer("RNICConfig.Kind", checkKind(rnic))
	case a.Version > Version1:
		return fmt.Errorf("%w: there is no %v", ErrVersion, a.Version)
	case a.Version != VersionAny && !hasVersion(rnic, a.Version):
		return fmt.Errorf("%w: version %v by an RNIC of kind %v", ErrVersion, a.Version, rnic)
	case a.MarkersReceive > MarkersOn || a.MarkersSend > MarkersOn:
		return fmt.Errorf("%w: markers to be received %v, to be sent %v", ErrInvalid, a.MarkersReceive, a.MarkersSend)
	case a.kind(rnic) == mpa.KindRDMAC && a.off():
		return fmt.Errorf("%w: version 0 is that of RDMAC RNICs, which always use markers", ErrMarkersRequired)
	}
	return nil
}

func hasVersion(k mpa.Kind, v Version) bool { return k.Version(uint8(v - Version0)) }

// checkNegotiated returns why the attributes do not allow a connection, on an RNIC of a
// kind.
func (a StreamAttr) checkNegotiated(rnic mpa.Kind, n *mpa.Negotiated) error {
	switch {
	case n.DDPVersion > 1 || !a.kind(rnic).Version(n.DDPVersion):
		return fmt.Errorf("%w: version %d was negotiated (revision %d sent, %d received), the RNIC is of kind %v and the "+
			"QP is set to version %v",
			ErrVersion, n.DDPVersion, n.Revision, n.PeerRevision, rnic, a.Version)
	case a.MarkersReceive == MarkersOff && n.MarkersReceive, a.MarkersSend == MarkersOff && n.MarkersSend:
		return fmt.Errorf("%w: markers were negotiated (to be received %t, to be sent %t), and the QP is set to %v and %v",
			ErrMarkersRequired, n.MarkersReceive, n.MarkersSend, a.MarkersReceive, a.MarkersSend)
	}
	return nil
}

// negotiatedAttr returns the attributes of a connection.
func negotiatedAttr(n *mpa.Negotiated) StreamAttr {
	return StreamAttr{
		MarkersReceive: markersOf(n.MarkersReceive), MarkersSend: markersOf(n.MarkersSend),
		Version: versionOf(n.DDPVersion),
	}
}

// chosen fills in what is certain of a QP's attributes before the QP is connected.
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

// narrow puts the QP's attributes and the RNIC's preferences into an offer, which may
// narrow the kind further. [N01]
func narrow(qp *QP, o mpa.Offer) (mpa.Offer, error) {
	a := qp.stream()
	kind := a.kind(qp.rnic.kind)
	switch {
	case o.Kind == 0:
		o.Kind = kind
	case checkKind(o.Kind) != nil:
		return o, checkKind(o.Kind)
	case o.Kind != kind && kind != mpa.KindPermissive:
		return o, fmt.Errorf("%w: a connection of kind %v by a QP of kind %v", ErrVersion, o.Kind, kind)
	}
	o.NoCRC = qp.rnic.crc.noCRC(o.NoCRC)
	rdmac := o.Kind == mpa.KindRDMAC
	switch {
	case a.MarkersReceive == MarkersOff && o.Markers:
		return o, fmt.Errorf("%w: the offer asks for markers, and the QP is set to receive none", ErrInvalid)
	case a.off() && (rdmac || o.Dialect == mpa.DialectRevision0):
		return o, fmt.Errorf("%w: revision 0 is that of RDMAC RNICs, which always use markers", ErrMarkersRequired)
	case a.MarkersReceive != MarkersOff:
		o.Markers = o.Markers || a.MarkersReceive == MarkersOn || qp.rnic.markers || rdmac
	}
	return o, nil
}

// answerable returns why a QP with these attributes, on an RNIC of a kind, cannot accept a
// Request at all. The Request can still be answered in another way.
func (a StreamAttr) answerable(q *mpa.Request, kind mpa.Kind) error {
	version0 := q.Dialect == mpa.DialectRevision0 || q.Dialect == mpa.DialectStartKey
	switch {
	case version0 && !kind.Version(0):
		return fmt.Errorf("%w: the peer starts with %v, which needs version 0, and a QP of kind %v does not have that",
			ErrVersion, q.Dialect, kind)
	case a.MarkersSend == MarkersOff && q.Markers:
		return fmt.Errorf("%w: the peer asks for markers (M=1), and the QP is set to send none", ErrMarkersRequired)
	}
	return nil
}

// A QPAttr is what QP.Query returns.
type QPAttr struct {
	State State
	// IRD and ORD are how many RDMA Reads and Atomic Operations may be outstanding inbound and outbound.
	// They are 0 before there is a connection.
	IRD, ORD int
	// Stream has the attributes of the connection or, before there is one, those that
	// QP and RNIC have settled.
	Stream StreamAttr
	// Kind is the RNIC's, narrowed by the version that the QP is set to.
	Kind mpa.Kind
	// MULPDU is the largest ULPDU that is sent, in bytes. It follows TCP's EMSS.
	MULPDU int
	// Sends and Receives count the requests that are not complete, and those whose completions are not in their CQs
	// yet.
	Sends, Receives int
	// UnpolledSends and UnpolledReceives count the completions that are in their CQs, as their requests keep an entry
	// of their queue until they are polled. UnpolledReceives is 0 with an SRQ.
	UnpolledSends, UnpolledReceives int
	// Num is the QP's number, and SRQ its Shared Receive Queue, nil if it has none.
	Num uint32
	SRQ *SRQ
	// SendDepth and RecvDepth are the entries of the queues; RecvDepth is 0 with an SRQ. MaxSGE are the
	// elements that a request may have, and MaxInline the bytes of its inline data.
	SendDepth, RecvDepth, MaxSGE, MaxInline int
	// Terminate was sent to the peer or received from it; it is nil if there was none.
	Terminate *TerminateError
}

// Query returns the QP's present attributes.
func (qp *QP) Query() QPAttr {
	if qp.made() != nil {
		return QPAttr{}
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	s, f := qp.status(), qp.figures()
	p := &f.Params
	a := QPAttr{State: s.state, IRD: p.IRD, ORD: p.ORD, MULPDU: p.MULPDU, Kind: qp.attr.kind(qp.rnic.kind)}
	a.Num, a.SRQ, a.SendDepth, a.RecvDepth = qp.num, qp.cfg.SRQ, qp.cfg.SendDepth, qp.cfg.RecvDepth
	a.MaxSGE, a.MaxInline = MaxSGE, qp.cfg.MaxInline
	if a.SRQ != nil {
		a.RecvDepth = 0
	}
	a.Stream = qp.rnic.chosen(qp.attr)
	if qp.neg != nil && !qp.neg.noMPA && s.state != StateIdle {
		a.Stream = negotiatedAttr(&qp.neg.Negotiated)
	}
	a.Sends, a.Receives = f.Sends, f.Recvs
	a.UnpolledSends = max(int(qp.unpolled.Sends.Load())-f.ArrivingSends, 0)
	a.UnpolledReceives = max(int(qp.unpolled.Recvs.Load())-f.ArrivingRecvs, 0)
	_ = errors.As(publicError(s.cause), &a.Terminate)
	return a
}

// figures returns the figures of the connection, or what is left of them after its end. The caller holds qp.mu.
func (qp *QP) figures() (f driver.Figures) {
	switch c := qp.conn.Load(); {
	case c != nil:
		return c.Figures()
	case qp.ended != nil:
		f.Params, f.EMSS = qp.ended.Params, qp.ended.EMSS
	case qp.machine != nil:
		f.Stats = qp.machine.Stats()
		f.Sends, f.Recvs = qp.machine.Outstanding()
	}
	return f
}
