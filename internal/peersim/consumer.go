package peersim

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/mpa"
)

// A Consumer is what runs on top of a peer.
type Consumer struct {
	PrivateData []byte
	// IRD and ORD are its depths, at most those of the peer. If both are zero, they are
	// the peer's. NoReads leaves them zero.
	IRD, ORD mpa.Depth
	NoReads  bool
	// Reject has a Responder reject, with PrivateData, what it could accept.
	Reject bool
}

// depths returns the depths of the consumer on a peer.
func (c *Consumer) depths(b *peers.Behavior) (ird, ord mpa.Depth) {
	if c.IRD == 0 && c.ORD == 0 && !c.NoReads {
		return b.MaxIRD, b.MaxORD
	}
	return min(c.IRD, b.MaxIRD), min(c.ORD, b.MaxORD)
}

// A Refusal is a connection that the peer does not want.
type Refusal struct {
	Peer string   // its name
	Role mpa.Role // the peer's
	Why  string
	End  peers.End
	Err  error // of the connection, if that is the reason
}

// Error says who did what, and why.
func (r *Refusal) Error() string {
	s := fmt.Sprintf("peersim: %s as %v %v: %s", r.Peer, r.Role, r.End, r.Why)
	if r.Err != nil {
		s += ": " + r.Err.Error()
	}
	return s
}

// Unwrap returns the connection's error.
func (r *Refusal) Unwrap() error { return r.Err }
