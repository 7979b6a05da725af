package iwarp

import (
	"slices"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/mpa/ulpdata"
)

// depthsInPrivateData reports whether frames of a dialect have IRD and ORD in front of the
// private data.
func (p *Preset) depthsInPrivateData(d mpa.Dialect) bool {
	return p != nil && p.SMBDirect && d == mpa.DialectRFC5044
}

// addDepths puts our IRD and ORD in front of the private data of a frame. In answer to a
// Request, our ORD is at most the peer's IRD.
func (p *Preset) addDepths(o mpa.Offer, d mpa.Dialect, q *mpa.Request) mpa.Offer {
	if !p.depthsInPrivateData(d) {
		return o
	}
	ours := ulpdata.SMBDirect{IRD: smbDepth(o.IRD), ORD: smbDepth(o.ORD)}
	if q != nil {
		if peer, _, err := ulpdata.ParseSMBDirect(q.PrivateData); err == nil {
			ours = ours.Meet(peer)
			o.ORD = min(o.ORD, mpa.Depth(ours.ORD))
		}
	}
	o.PrivateData = slices.Concat(ours.Append(nil), o.PrivateData)
	return o
}

// smbDepth returns a depth as MS-SMBD wants it: above 0, and not left to the ULP.
func smbDepth(depth mpa.Depth) uint32 {
	if depth == mpa.NoNegotiation {
		depth = DefaultReadDepth
	}
	return uint32(max(depth, 1))
}

// takeDepths takes the peer's IRD and ORD out of its private data and puts them into
// effect. If the peer sent none, nothing changes.
func (p *Preset) takeDepths(n mpa.Negotiated) mpa.Negotiated {
	if p.depthsInPrivateData(n.Dialect) {
		n, _ = ulpdata.WithSMBDirect(n)
	}
	return n
}
