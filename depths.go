package iwarp

import "github.com/goiwarp/iwarp/mpa"

// Default depths of RDMA Reads, where the consumer does not say: what RNICs commonly offer, and how far
// our IRD may grow at a peer's wish.
const (
	DefaultReadDepth = 32
	DefaultMaxIRD    = 128
)

// depths gives depths to an offer that has none, and keeps them within the RNIC's limit. [Z29]
func (r *RNIC) depths(o mpa.Offer, noReads bool) (mpa.Offer, error) {
	if err := r.checkIRD(o.IRD); err != nil {
		return o, err
	}
	most := mpa.MaxDepth // a larger one is no depth, and package mpa says so
	if r.limits.IRD > 0 {
		most = mpa.Depth(min(r.limits.IRD, int(most)))
	}
	if o.IRD == 0 && o.ORD == 0 && !noReads {
		o.IRD, o.ORD = min(DefaultReadDepth, most), DefaultReadDepth
	}
	if o.MaxIRD == 0 && !noReads {
		o.MaxIRD = DefaultMaxIRD
	}
	o.MaxIRD = min(o.MaxIRD, most)
	return o, nil
}

// checkIRD refuses an IRD beyond the limit of the RNIC.
func (r *RNIC) checkIRD(ird mpa.Depth) error {
	if limit := r.limits.IRD; limit > 0 && int(ird) > limit && ird != mpa.NoNegotiation {
		return &LimitError{Resource: "IRD of a connection", Limit: int64(limit), Wanted: int64(ird)}
	}
	return nil
}

// resolve puts numbers where 0x3FFF left the depths to the ULP: the default, or what is known of the
// peer.
func (r *RNIC) resolve(n *mpa.Negotiated) {
	if n.ORD == mpa.NoNegotiation {
		n.ORD = min(DefaultReadDepth, n.PeerIRD)
	}
	if n.IRD == mpa.NoNegotiation {
		n.IRD = DefaultReadDepth
		if n.PeerORD != mpa.NoNegotiation {
			n.IRD = max(n.IRD, min(n.PeerORD, DefaultMaxIRD))
		}
	}
	if r.limits.IRD > 0 {
		n.IRD = mpa.Depth(min(int(n.IRD), r.limits.IRD))
	}
}
