package stream

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rsockets"
)

// A Dialer connects to a Listener, or to an rsockets server.
type Dialer struct {
	// RDMA says how the QP is made and connected. This package sets its MPA.PrivateData and its Prepare. Of the QP it
	// sets the queues, the CQs, SRQ, MaxInline, Linger and HalfClose; Receives is ErrInvalid. If PD is nil, each
	// connection has an RNIC of its own. If MPA.IRD and MPA.ORD are zero, the connection carries no RDMA Reads.
	RDMA iwarp.Dialer
	// Config sets the limits of each connection.
	Config Config
}

// Dial connects with the defaults of a Dialer.
func Dial(ctx context.Context, network, addr string) (*Conn, error) {
	return new(Dialer).Dial(ctx, network, addr)
}

// Dial connects to addr. The networks are those of iwarp.Dialer.Dial. The error is a *net.OpError. It
// wraps an *iwarp.OpError, an *rsockets.Error if the peer does not speak the protocol, or ErrByteOrder.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (*Conn, error) {
	return d.connect(network, func(rd *iwarp.Dialer, qp *iwarp.QP) error { return rd.DialQP(ctx, qp, network, addr) })
}

// DialContext is Dial with the signature that net/http.Transport and others want.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d.Dial(ctx, network, addr)
	if err != nil {
		return nil, err // a nil *Conn would be a net.Conn that is not nil
	}
	return c, nil
}

// Initiate connects over a connection that is open already: see iwarp.Dialer.Initiate. If it fails, it closes the
// connection, unless the peer rejected the request.
func (d *Dialer) Initiate(ctx context.Context, conn net.Conn) (*Conn, error) {
	return d.connect("tcp", func(rd *iwarp.Dialer, qp *iwarp.QP) error { return rd.InitiateQP(ctx, qp, conn, nil) })
}

// connect allocates what a connection needs, and has dial connect its QP.
func (d *Dialer) connect(network string, dial func(*iwarp.Dialer, *iwarp.QP) error) (*Conn, error) {
	if d == nil {
		return nil, dialError(network, errNoDialer)
	}
	rd := d.RDMA
	r, err := allocate(nil, rd.PD, rd.QP, d.Config)
	if err != nil {
		return nil, dialError(network, err)
	}
	ours := r.hello(r.cfg.BigEndian)
	rd.MPA.PrivateData, _ = ours.AppendBinary(nil)
	rd.NoReads, rd.Prepare = true, nil // Depths that are set win over NoReads.
	if err := dial(&rd, r.qp); err != nil {
		_ = r.release()
		return nil, dialError(network, err)
	}
	peer, err := rsockets.ParseHello(r.qp.Negotiated().PrivateData)
	if err == nil && peer.Big != ours.Big {
		err = ErrByteOrder
	}
	if err != nil {
		return nil, dialError(network, errors.Join(err, r.abort()))
	}
	return r.newConn(network, ours, peer), nil
}

// A givenAddr is an address as the caller has given it.
type givenAddr struct{ network, address string }

func (a givenAddr) Network() string { return a.network }
func (a givenAddr) String() string  { return a.address }

// dialError is an error of Dial, with the address that iwarp's own error names.
func dialError(network string, err error) error {
	failed := &net.OpError{Op: "dial", Net: network, Err: brief("dial", err)}
	if of, ok := errors.AsType[*iwarp.OpError](err); ok && of.To != "" {
		failed.Addr = givenAddr{network, strings.TrimPrefix(of.To, network+" ")}
	}
	return failed
}

// abort ends a connection whose peer cannot be used, and frees everything.
func (r *resources) abort() error {
	return cmp.Or(r.qp.Abort(), r.release())
}
