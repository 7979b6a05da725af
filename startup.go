package iwarp

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// Default depths of RDMA Reads, where the consumer does not say: what RNICs
// commonly offer, and what a peer may have them grown to.
const (
	DefaultReadDepth = 32
	DefaultMaxIRD    = 128
)

// startupMachine is an mpa.Initiator or mpa.Responder.
type startupMachine interface {
	Input(now time.Time, b []byte) (n int, err error)
	Want() int
	Deadline() time.Time
	HandleTimeout(now time.Time) error
	PeerClosed(cause error) error
}

// exchange feeds a machine from the connection until it wants no more. Not one
// octet beyond the startup frame is read: what follows is the first FPDU's, or
// the consumer's.
func exchange(ctx context.Context, c net.Conn, m startupMachine) error {
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var buf [mpa.StartupHeaderLen + mpa.MaxPrivateData]byte
	for m.Want() > 0 {
		if err := c.SetReadDeadline(m.Deadline()); err != nil {
			return m.PeerClosed(err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := c.Read(buf[:m.Want()])
		if n > 0 {
			_, err = m.Input(time.Now(), buf[:n])
		} else if err != nil {
			err = startupReadError(ctx, m, err)
		}
		if err != nil {
			return err
		}
	}
	return c.SetReadDeadline(time.Time{})
}

// startupReadError says what a failed read means to the startup.
func startupReadError(ctx context.Context, m startupMachine, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// The system's clock for deadlines may be a little ahead of ours.
		return m.HandleTimeout(maxTime(time.Now(), m.Deadline()))
	}
	return m.PeerClosed(err)
}

func maxTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// withDefaults gives depths to an offer that has none. To offer no Reads at
// all, set NoReads.
func withDefaults(o mpa.Offer, noReads bool) mpa.Offer {
	if o.IRD == 0 && o.ORD == 0 && !noReads {
		o.IRD, o.ORD = DefaultReadDepth, DefaultReadDepth
	}
	if o.MaxIRD == 0 && !noReads {
		o.MaxIRD = DefaultMaxIRD
	}
	return o
}

// resolveDepths puts numbers where 0x3FFF left the depths to the ULP.
func resolveDepths(n *mpa.Negotiated) {
	if n.IRD == mpa.NoNegotiation {
		n.IRD = DefaultReadDepth
	}
	if n.ORD == mpa.NoNegotiation {
		n.ORD = DefaultReadDepth
	}
}

// countFailure counts a startup that did not end in a connection.
func (r *RNIC) countFailure(err error) {
	var s *mpa.StartupError
	var j *mpa.RejectError
	r.countStartup(func(t *StartupStats) {
		if errors.As(err, &j) {
			t.Rejected++
			return
		}
		if t.Failed == nil {
			t.Failed = make(map[string]uint64)
		}
		if errors.As(err, &s) {
			t.Failed[s.Failure.String()]++
		} else {
			t.Failed["other"]++
		}
	})
}
