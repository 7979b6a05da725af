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
	// PD is where Dial and Initiate create the QP. If nil, they make an RNIC and a PD for it; register
	// memory with qp.PD() then.
	PD *PD
	// QP configures the QP that Dial and Initiate create.
	QP QPConfig
	// Preset, if it is set, supplies what the peer needs wherever the settings here are zero.
	Preset *Preset
	// MPA is what we offer to the peer. Kind may narrow the QP's kind, which is the default; Markers
	// adds to what QP and RNIC ask for. If IRD and ORD are both zero, each becomes 32. IRD
	// may grow to MaxIRD, which becomes 128 if it is zero; a MaxIRD that is not above IRD, such
	// as 1, keeps IRD as it is.
	MPA mpa.Offer
	// NoReads leaves an IRD and ORD of zero as they are: the connection carries no RDMA Reads and no Atomic Operations.
	NoReads bool
	// NoFallback turns off the second attempt, with revision 1 and on a new connection, that Dial
	// makes when the peer refuses revision 2. That connection is peer-to-peer too, unless
	// MPA.ClientServer is set: an empty Write of ours opens the peer's direction. IRD and ORD stay as
	// offered, but revision 1 does not tell them to the peer; the two consumers must agree on them.
	NoFallback bool
	// Timeout bounds a whole call, in addition to the context. If zero, only the timeouts of TCP, or of Network, and
	// MPA.Timeout bound it; if negative, the call returns ErrInvalid. MPA.Timeout, which is about the
	// Reply alone, may be negative: then the Reply has no bound of its own.
	Timeout time.Duration
	// Prepare, if it is set, gets the QP that Dial or Initiate has created before the connection
	// comes up: it is the place to post receives, with PostRecv. It must not wait for the peer.
	Prepare func(*QP) error
	// Verify, if it is set, gets what the peer's accepting Reply says and what follows from it, before
	// anything more is sent: private data, depths, dialect. If it returns an error the connection does
	// not come up, and the error is a *VerifyError, which hands over the TCP connection (RFC 5044,
	// section 7.1.2, rule 3).
	Verify func(mpa.Negotiated) error
	// KeepRejected leaves the TCP connection of Dial and DialQP open where the peer rejects it, or Verify refuses its
	// Reply. The error hands it over: a *RejectError or a *VerifyError, whose Conn the caller must close. By default
	// a Dial that fails leaves nothing open. Initiate and InitiateQP always leave the connection that they were given
	// open in these cases.
	KeepRejected bool
	// Wrap, if it is set, gets each TCP connection that Dial and DialQP open, before the startup, and returns the
	// connection to use in its place: one that records or encrypts what passes, or spoils it for a test. Unless Wrap
	// returns the TCP connection itself, the QP uses the methods of net.Conn, and, where the connection has them,
	// CloseWrite, SetLinger and NetConn, as tls.Conn and net.TCPConn do, and those that a Stack names. The QP holds
	// no lock while it calls them: they may call the QP, except for Close, Abort and Shutdown, which wait for them.
	// If Wrap fails, Dial closes the TCP connection. A Network has none to wrap: a Dialer with both is ErrInvalid.
	Wrap func(net.Conn) (net.Conn, error)
	// Net dials TCP. The zero value is usable. A Network uses what it can of it, as it says.
	Net net.Dialer
	// Stack, if it is set, dials TCP in place of Net.
	Stack Stack
	// Network, if it is set, carries the connections of Dial and DialQP in place of TCP and MPA. With a Stack it is
	// ErrInvalid, and so is an MPA that asks for what only MPA has. KeepRejected has no effect.
	Network SegmentNetwork
}

// Dial creates a QP and connects it to a Responder at addr. network is "tcp", "tcp4" or "tcp6", or one that Network
// has: "sctp" is one of an iwarpsctp.Network, which is in a package of its own. The error is an *OpError. If the peer
// rejected the connection, it wraps a *RejectError. A Dial that fails leaves nothing open, unless KeepRejected is
// set.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (*QP, error) {
	op := &OpError{Op: "dial", To: network + " " + addr}
	qp, err := d.newQP()
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
