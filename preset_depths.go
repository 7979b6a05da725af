package iwarp

import (
	"slices"

	"github.com/goiwarp/iwarp/mpa"
)

// saysDepths reports whether frames of a dialect have depths in front of the private
// data.
func (p *Preset) saysDepths(d mpa.Dialect) bool {
	return p != nil && p.SMBDirect && d == mpa.DialectRFC5044
}

// sayDepths puts our depths in front of the private data of a frame, in answer to a
// Request if there is one: our ORD is at most the peer's IRD then.
func (p *Preset) sayDepths(o mpa.Offer, d mpa.Dialect, q *mpa.Request) mpa.Offer {
	if !p.saysDepths(d) {
		return o
	}
	ours := mpa.SMBDirect{IRD: sayable(o.IRD), ORD: sayable(o.ORD)}
	if q != nil {
		if peer, _, err := mpa.ParseSMBDirect(q.PrivateData); err == nil {
			ours = ours.Meet(peer)
			o.ORD = min(o.ORD, uint16(ours.ORD))
		}
	}
	o.PrivateData = slices.Concat(ours.Append(nil), o.PrivateData)
	return o
}

// sayable is a depth as MS-SMBD wants it: above 0, and not left to the ULP.
func sayable(depth uint16) uint32 {
	if depth == mpa.NoNegotiation {
		depth = DefaultReadDepth
	}
	return uint32(max(depth, 1))
}

// heed has the peer's depths, if there are such, taken from its private data and put
// into effect. A peer that sends none is taken as it is.
func (p *Preset) heed(n mpa.Negotiated) mpa.Negotiated {
	if p.saysDepths(n.Dialect) {
		n, _ = n.WithSMBDirect()
	}
	return n
}
