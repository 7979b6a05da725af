package decode

import "github.com/goiwarp/iwarp/capture"

// A suspicion is a finding that may be due to a packet of the other direction that the
// capture lacks.
type suspicion struct {
	kind         finding
	dir          capture.Dir
	offset       uint64
	packet       capture.Stamp
	text, advice string
}

// A doubted is a suspicion, and what was known of the other direction then.
type doubted struct {
	suspicion
	chunks uint32
	acks   uint64
}

// maxDoubts bounds the suspicions of a session.
const maxDoubts = 64

// twoSided are the findings that depend on what the other end has sent.
var twoSided = map[string]bool{
	findResponse.name: true, findReadOrder.name: true, findDepth.name: true, findSequence.name: true,
	findSegmentEarly.name: true,
}

// missed reports whether something of a direction is missing up to now.
func (x *session) missed(d capture.Dir) bool {
	return len(x.sides[d].ahead) > 0 || x.on.of.Ends[d].Lags()
}

// suspects keeps a finding until it is known whether the other direction was captured up to
// it, and reports whether it does. The sender of a TCP segment says with it what it has
// received; one of a DATA chunk may say so later.
func (x *session) suspects(s suspicion) bool {
	if !twoSided[s.kind.name] || x.sure {
		return false
	}
	if len(x.doubts) < maxDoubts {
		chunks, acks := x.on.of.Ends[s.dir.Peer()].Known()
		x.doubts = append(x.doubts, doubted{s, chunks, acks})
		x.on.doubts++
	}
	return true
}

// resolve tells of the suspicions that have turned out true, or with last of all that have
// not turned out wrong.
func (x *session) resolve(last bool) {
	left := x.doubts[:0]
	for _, s := range x.doubts {
		peer := s.dir.Peer()
		chunks, acks := x.on.of.Ends[peer].Known()
		switch {
		case x.missed(peer):
			x.on.doubts--
			if !x.begun {
				x.unknown(s.dir, s.packet)
			}
		case last || chunks != s.chunks || acks != s.acks:
			x.on.doubts--
			x.sure = true
			x.c.report(s.kind, s.dir, s.offset, s.packet, s.text, s.advice)
			x.sure = false
		default:
			left = append(left, s)
		}
	}
	x.doubts = left
}
