package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// Dial connects to a Responder with the defaults of a [Dialer], in a Protection Domain of its own:
// register memory with qp.PD().
func Dial(ctx context.Context, network, addr string) (*QP, error) {
	return new(Dialer).Dial(ctx, network, addr)
}

// A Dialer connects QPs as the Initiator: Dial and DialQP open a TCP connection, or one over a SegmentNetwork;
// Initiate and InitiateQP take a TCP connection that is open already.
type Dialer struct {
	// The QP.
	//
	// PD is where Dial and Initiate create the QP. If nil, they make an RNIC and a PD for it; register
	// memory with qp.PD() then.
	PD *PD
	// QP configures the QP that Dial and Initiate create.
	QP QPConfig
	// Prepare, if it is set, gets that QP before the connection comes up: it is the place to post receives, with
	// PostRecv. It must not wait for the peer.
	Prepare func(*QP) error

	// The startup.
	//
	// Preset, if it is set, supplies what the peer needs wherever the settings here are zero.
	Preset *Preset
	// MPA is what we offer to the peer: private data, IRD and ORD, dialect. If IRD and ORD are both zero, each becomes
	// 32; IRD may grow to MaxIRD, which becomes 128 if it is zero. See docs/settings.md.
	MPA mpa.Offer
	// NoReads leaves an IRD and ORD of zero as they are: the connection carries no RDMA Reads and no Atomic Operations.
	NoReads bool
	// NoFallback turns off the second attempt of Dial, with revision 1 and on a new connection, when the peer refuses
	// revision 2. Revision 1 does not tell the peer IRD and ORD: the two programs must agree on them.
	NoFallback bool
	// Timeout bounds a whole call, in addition to the context; it cannot be negative. If zero, only the timeouts of
	// TCP, or of Network, and MPA.Timeout, for the Reply alone, bound it.
	Timeout time.Duration
	// Verify, if it is set, gets the peer's accepting Reply before anything more is sent. If it returns an error, the
	// connection does not come up, and the call fails with a *VerifyError (RFC 5044, section 7.1.2, rule 3).
	Verify func(mpa.Negotiated) error
	// KeepRejected leaves the TCP connection of Dial and DialQP open where the peer rejects it, or Verify does. The
	// caller must close the Conn of the *RejectError or *VerifyError. Initiate and InitiateQP always leave it open.
	KeepRejected bool

	// The lower layer.
	//
	// Net dials TCP. The zero value is usable. A Network uses what it can of it, as it says.
	Net net.Dialer
	// Wrap, if it is set, gets each TCP connection that Dial and DialQP open, before the startup, and returns the one to
	// use in its place, such as a tls.Conn. It may not be set with a Network. See docs/settings.md.
	Wrap func(net.Conn) (net.Conn, error)
	// Stack, if it is set, dials TCP in place of Net.
	Stack Stack
	// Network, if it is set, carries the connections of Dial and DialQP in place of TCP and MPA. With a Stack it is
	// ErrInvalid, and so is an MPA that asks for what only MPA has. KeepRejected has no effect.
	Network SegmentNetwork
}

// Dial creates a QP and connects it to a Responder at addr. network is "tcp", "tcp4" or "tcp6", or one that Network
// has: "sctp" is one of an iwarpsctp.Network, which is in a package of its own. The error is an *OpError. If the peer
// rejected the connection, it wraps a *RejectError. A Dial that fails leaves nothing open, unless KeepRejected is
// set. The context bounds this call, and not the connection.
//
// The program must call Close, Shutdown or Abort of the QP. One that nobody refers to any more is not collected: its
// connection, a goroutine and its memory stay until its RNIC is closed, as the peer may still reach the memory. A Dial
// without a PD makes an RNIC, which qp.PD().RNIC returns. After the end of the connection (Done), its goroutine and
// its descriptor are gone.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (*QP, error) {
	op := &OpError{Op: "dial", To: network + " " + addr}
	qp, err := d.newQP(ctx)
	if err != nil {
		return nil, op.with(err)
	}
	up := false
	defer undoUnless(qp, &up)
	if err := d.dial(ctx, qp, network, addr); err != nil {
		return nil, op.with(err)
	}
	up = true
	return qp, nil
}

// DialQP is Dial for a QP in StateIdle. If it fails, the QP stays in StateIdle.
func (d *Dialer) DialQP(ctx context.Context, qp *QP, network, addr string) error {
	return (&OpError{Op: "dial", To: network + " " + addr}).with(d.dial(ctx, qp, network, addr))
}

// dial connects the QP over a connection of its own. If the peer turns out not to know revision 2,
// it does so once more with revision 1.
func (d *Dialer) dial(ctx context.Context, qp *QP, network, addr string) error {
	if err := d.given(ctx); err != nil {
		return err
	}
	ctx, cancel := d.bound(ctx)
	defer cancel()
	offer, err := d.claim(qp)
	if err != nil {
		return err
	}
	defer qp.unclaim()
	a := &attempt{offer: offer}
	err = d.dialOnce(ctx, qp, network, addr, a)
	if err == nil || d.NoFallback || !d.Preset.fallsBack() || !advisesFallback(err) || ctx.Err() != nil {
		return err
	}
	return d.fallBack(ctx, qp, network, addr, a, err)
}

// dialOnce opens one connection, and makes one attempt at the startup.
func (d *Dialer) dialOnce(ctx context.Context, qp *QP, network, addr string, a *attempt) error {
	if d.Network != nil {
		return d.dialSegments(ctx, qp, network, addr, a)
	}
	conn, err := d.openTCP(ctx, network, addr, qp.cfg.FPDUs)
	if err != nil {
		return err
	}
	a.untouched = d.Stack == nil && d.Wrap == nil
	err = d.connect(ctx, qp, conn, nil, a)
	if !d.KeepRejected {
		closeRejected(err)
	}
	return err
}

// openTCP opens a TCP connection and passes it through Wrap.
func (d *Dialer) openTCP(ctx context.Context, network, addr string, fpdus FPDUs) (net.Conn, error) {
	if err := checkNetwork("Dialer", network); err != nil {
		return nil, err
	}
	c, err := d.dialTCP(ctx, network, addr, fpdus)
	switch {
	case err != nil:
		return nil, lapsed(ctx, err)
	case d.Wrap == nil:
		return c, nil
	}
	return d.wrap(c)
}

func (d *Dialer) dialTCP(ctx context.Context, network, addr string, fpdus FPDUs) (net.Conn, error) {
	if d.Stack != nil {
		return d.Stack.DialContext(ctx, network, addr)
	}
	dialer := d.Net
	if fpdus.mayAlign() {
		dialer = tcp.WholeWords(dialer)
	}
	return dialer.DialContext(ctx, network, addr)
}

// lapsed adds the context's error to one of package net that the end of the context has brought about. The socket has
// the context's deadline. If it passes there first, package net only says "i/o timeout". It also drops the cause of the
// context's end.
func lapsed(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", err, context.DeadlineExceeded)
	}
	return err
}

// wrap passes a TCP connection through Wrap.
func (d *Dialer) wrap(c net.Conn) (wrapped net.Conn, err error) {
	drop := func() { _ = c.Close() }
	err = unlessPanic(drop, func() (err error) {
		wrapped, err = d.Wrap(c)
		return err
	})
	if err == nil && wrapped == nil {
		err = fmt.Errorf("%w: Wrap returned neither a connection nor an error", ErrInvalid)
	}
	if err != nil {
		drop()
		return nil, fmt.Errorf("Dialer.Wrap: %w", err)
	}
	return wrapped, nil
}
