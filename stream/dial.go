package stream

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stream/rsockets"
)

// A Dialer connects to a Listener, or to a server of rsockets.
type Dialer struct {
	// RDMA says how the QP is made and connected. This package sets its MPA.PrivateData, its Prepare, and the queues and CQs of its QP. If its
	// PD is nil, each connection has an RNIC of its own. If MPA.IRD and MPA.ORD are zero, the connection carries no RDMA Reads.
	RDMA iwarp.Dialer
	// Config says what each connection takes.
	Config Config
}

// Dial connects as a Dialer without settings does.
func Dial(ctx context.Context, network, addr string) (*Conn, error) {
	return new(Dialer).Dial(ctx, network, addr)
}

// Dial connects to addr. The networks are those of iwarp.Dialer.Dial: "tcp", "sctp" and their kin. The error is a *net.OpError; it
// wraps iwarp's own, an *rsockets.Error where the other end does not speak the protocol, or ErrByteOrder.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (*Conn, error) {
	return d.connect(network, func(rd *iwarp.Dialer, qp *iwarp.QP) error { return rd.DialQP(ctx, qp, network, addr) })
}

// DialContext is Dial, as net/http.Transport and others take it.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d.Dial(ctx, network, addr)
	if err != nil {
		return nil, err // and no Conn in the interface
	}
	return c, nil
}

// Initiate connects over a connection that is open already: see iwarp.Dialer.Initiate. If it fails it closes the connection, unless
// the peer rejected it.
func (d *Dialer) Initiate(ctx context.Context, conn net.Conn) (*Conn, error) {
	return d.connect("tcp", func(rd *iwarp.Dialer, qp *iwarp.QP) error { return rd.InitiateQP(ctx, qp, conn, nil) })
}

// connect acquires what a connection takes, and has dial connect its QP.
func (d *Dialer) connect(network string, dial func(*iwarp.Dialer, *iwarp.QP) error) (*Conn, error) {
	rd := d.RDMA
	r, err := acquire(rd.PD, rd.QP, d.Config)
	if err != nil {
		return nil, dialError(network, err)
	}
	ours := r.hello(r.cfg.BigEndian)
	rd.MPA.PrivateData, _ = ours.AppendBinary(nil)
	rd.NoReads, rd.Prepare = true, nil // but for depths that are set
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
	return r.begin(network, ours, peer), nil
}

// A target is an address as the caller has given it.
type target struct{ network, address string }

func (t target) Network() string { return t.network }
func (t target) String() string  { return t.address }

// dialError names the address that was dialed, as iwarp's error does.
func dialError(network string, err error) error {
	failed := &net.OpError{Op: "dial", Net: network, Err: brief("dial", err)}
	if of, ok := errors.AsType[*iwarp.OpError](err); ok && of.To != "" {
		failed.Addr = target{network, strings.TrimPrefix(of.To, network+" ")}
	}
	return failed
}

// abort ends a connection that is of no use, and gives everything back.
func (r *resources) abort() error {
	return cmp.Or(r.qp.Abort(), r.release())
}
