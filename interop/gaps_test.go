//go:build interop

package interop_test

import (
	"slices"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/rdmap"
)

// What tshark 4.0 complains of without cause. It checks against RFC 5044, which
// knows one revision and five reserved bits, where RFC 6581 has revision 2 and
// the S bit. A rejection it merely mentions.
var known = map[string]func(event) bool{
	"IWARP_MPA: Res field is NOT set to zero as required by RFC 5044": func(e event) bool {
		return e.startup != nil && (e.startup.S() || e.startup.Res() != 0)
	},
	"IWARP_MPA: Rev field is NOT set to one as required by RFC 5044": func(e event) bool {
		return e.startup != nil && e.startup.Rev() != 1
	},
	"IWARP_MPA: Reject bit set by Responder": func(e event) bool {
		return e.startup != nil && e.startup.R()
	},
	"IWARP_DDP_RDMAP: Malformed Packet (Exception occurred)": func(e event) bool {
		t := e.fpdu.Terminate
		return t != nil && t.DDPHeader != nil && misreads(t) && taggedHeader(t)
	},
}

// knownComplaints returns those to be expected for these events.
func knownComplaints(events []event) []string {
	var want []string
	for complaint, about := range known {
		if slices.ContainsFunc(events, about) {
			want = append(want, complaint)
		}
	}
	slices.Sort(want)
	return want
}

// blindSpot says why tshark 4.0 cannot find a direction's FPDUs, if it cannot.
func blindSpot(c *connection, dir capture.Dir) string {
	own := only(c.events, dir)
	markers, back := c.iwarp.Markers[dir], c.iwarp.Markers[dir.Peer()]
	switch {
	case back && !markers:
		return "with markers in the other direction, it looks for them in this one too"
	case markers && slices.ContainsFunc(own, func(e event) bool { return !c.isSegment(e) }):
		return "with markers, it takes each segment for one FPDU"
	case markers && slices.ContainsFunc(own, func(e event) bool { return endsAtMarker(e, own[0]) }):
		return "it counts a marker due right after an FPDU as part of that"
	case !markers && slices.ContainsFunc(own, func(e event) bool { return c.firstPart(e) < smallestFPDU }):
		return "a segment ends so soon after an FPDU's beginning that it does not take that for one"
	}
	return ""
}

// smallestFPDU is how many bytes tshark must see of an FPDU at first.
const smallestFPDU = 8

// isSegment says whether an event came as one segment.
func (c *connection) isSegment(e event) bool {
	return slices.Contains(c.segments[e.dir], capture.Span{Offset: e.offset, Length: len(e.bytes)})
}

// endsAtMarker says whether a marker is due right after an FPDU. It belongs to
// the next: RFC 5044, section 4.3.
func endsAtMarker(e, startup event) bool {
	end := e.offset + uint64(len(e.bytes)) - uint64(len(startup.bytes))
	return e.startup == nil && end%512 == 0
}

// firstPart returns how many bytes of an event were in its first segment.
func (c *connection) firstPart(e event) int {
	for _, s := range c.segments[e.dir] {
		if end := s.Offset + uint64(s.Length); end > e.offset {
			return min(len(e.bytes), int(end-e.offset))
		}
	}
	return 0
}

// blur takes out of a Terminate, ours or tshark's, what tshark gets wrong in
// ours.
func blur(term, ours *rdmap.Terminate) *rdmap.Terminate {
	switch {
	case term == nil || ours == nil:
		return term
	case ours.Layout == rdmap.LayoutSIW:
		return nil // fields where no RFC has them: our decoder knows siw, tshark does not
	case misreads(ours):
		return &rdmap.Terminate{Code: term.Code, HasLength: term.HasLength, SegmentLength: term.SegmentLength}
	}
	return term
}

// misreads says whether tshark goes wrong over the headers in a Terminate: it
// takes a header for a tagged one if the error type is 1, be that DDP's Tagged
// Buffer or RDMAP's Remote Protection, and never looks at the T bit.
func misreads(t *rdmap.Terminate) bool {
	return t.DDPHeader != nil && taggedHeader(t) != (t.Code.EType() == 1)
}

func taggedHeader(t *rdmap.Terminate) bool {
	h, _ := t.Header()
	return h.Tagged
}
