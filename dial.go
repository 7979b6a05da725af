package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// Dial connects to a Responder with the defaults of a [Dialer], in a Protection Domain of its own:
// register memory with qp.PD().
func Dial(ctx context.Context, network, addr string) (*QP, error) {
	return new(Dialer).Dial(ctx, network, addr)
}

// A Dialer connects QPs as the Initiator: Dial and DialQP open a TCP connection, or a session over SCTP;
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
	// adds to what QP and RNIC ask for. If IRD and ORD are both zero, each becomes DefaultReadDepth. IRD
	// may grow to MaxIRD, which becomes DefaultMaxIRD if it is zero; a MaxIRD that is not above IRD, such
	// as 1, keeps IRD as it is.
	MPA mpa.Offer
	// NoReads leaves an IRD and ORD of zero as they are: the connection carries no RDMA Reads and no Atomic Operations.
	NoReads bool
	// NoFallback turns off the second attempt, with revision 1 and on a new connection, that Dial
	// makes when the peer refuses revision 2. That connection is peer-to-peer too, unless
	// MPA.ClientServer is set: an empty Write of ours opens the peer's direction. IRD and ORD stay as
	// offered, but revision 1 does not tell them to the peer; the two consumers must agree on them.
	NoFallback bool
	// Timeout bounds a whole call, in addition to the context. If zero, only TCP's own timeouts, 10 s for the handshake
	// of SCTP, and MPA.Timeout bound it; if negative, the call returns ErrInvalid. MPA.Timeout, which is about the
	// Reply alone, may be negative: then the Reply has no bound of its own.
	Timeout time.Duration
	// Prepare, if it is set, gets the QP that Dial or Initiate has created before the connection
	// comes up: it is the place to post receives.
	Prepare func(*QP) error
	// Verify, if it is set, gets what the peer's accepting Reply says and what follows from it, before
	// anything more is sent: private data, depths, dialect. If it returns an error the connection does
	// not come up, and the error is a *VerifyError, which hands over the TCP connection (RFC 5044,
	// section 7.1.2, rule 3).
	Verify func(mpa.Negotiated) error
	// Wrap, if it is set, gets each TCP connection that Dial and DialQP open, before the startup, and returns the
	// connection to use in its place: one that records or encrypts what passes, or spoils it for a test. Unless Wrap
	// returns the TCP connection itself, the QP uses the methods of net.Conn, and, where the connection has them,
	// CloseWrite, SetLinger and NetConn, as tls.Conn and net.TCPConn do, and those that EndTeller and SegmentedConn
	// name. The QP holds no lock while it calls them: they may call the QP, except for Close, Abort and Shutdown, which
	// wait for them. If Wrap fails, Dial closes the TCP connection. Over SCTP there is none to wrap, and a Dialer with
	// Wrap is ErrInvalid.
	Wrap func(net.Conn) (net.Conn, error)
	// With ShareAssociation, Dials over SCTP share associations if they have the same network, address and Net.LocalAddr, and
	// their Dialers have PDs of the same RNIC: each QP is a DDP Stream Session of its own, on a stream of its own (RFC 5043,
	// section 6), and there is one handshake, one congestion control and one window for all. What ends the association ends all
	// of its QPs. It lasts as long as any QP uses it. In user space an association has room for 32 QPs, and for 8 where either
	// end is "sctp:kernel"; further Dials open another. MPA.Timeout, Net.Control and Net.Resolver are those of the Dial that has
	// opened it. By default each Dial has an association of its own. Dial without a PD, and Dial and DialQP over TCP, share
	// nothing: there ShareAssociation is ErrInvalid.
	ShareAssociation bool
	// WrapUDP, if it is set, gets the UDP socket of each association over SCTP in user space, and returns the one to
	// use in its place: one that records what passes, or spoils it for a test. If it fails, Dial closes the socket.
	// Over TCP and Linux's SCTP, which have no such socket, a Dialer with WrapUDP is ErrInvalid.
	WrapUDP func(UDPSocket) (UDPSocket, error)
	// MTU is that of the path over SCTP in user space: the largest IP packet to be sent, in octets, from 592 to 8220. It is
	// not discovered (RFC 6951, section 5.6); if zero, it is 1500. Stats.MULPDU follows from it. An association whose peer sends
	// more than 8164 octets of data in one chunk ends, as that is more than this carrier can take. Over TCP and Linux's
	// SCTP, which find their own, an MTU is ErrInvalid.
	MTU int
	// Net dials TCP. The zero value is usable. Over SCTP, LocalAddr, Resolver and Control are used;
	// LocalAddr may be a *net.UDPAddr, *net.TCPAddr or *net.IPAddr.
	Net net.Dialer
	// Stack, if it is set, dials TCP in place of Net. SCTP does not run over it: a Dialer with a Stack is ErrInvalid there.
	Stack Stack
}

// Dial creates a QP and connects it to a Responder at addr. network is "tcp", "tcp4" or "tcp6", or "sctp", "sctp4" or
// "sctp6": then DDP runs over SCTP (RFC 5043), in UDP (RFC 6951), with an association of its own, or one that several
// QPs share by ShareAssociation, and the SCTP port that is UDP's. This SCTP is in user space, and there on every system;
// "sctp:udp" names it, too. "sctp:kernel", "sctp4:kernel" and "sctp6:kernel" are the SCTP of Linux's kernel, if it has
// that (module sctp): if not, and elsewhere, the error wraps errors.ErrUnsupported. Over SCTP, Wrap, Stack, and an MPA
// that asks for markers, no CRCs, or a dialect or kind that only MPA has, are ErrInvalid; the rest of Net has no effect.
// The error is an *OpError. If the peer rejected the connection, a *RejectError in it hands over the TCP connection.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (*QP, error) {
	return d.connectNew(&OpError{Op: "dial", To: network + " " + addr}, func(qp *QP) error {
		if d.ShareAssociation && d.PD == nil {
			return fmt.Errorf("%w: Dialer.ShareAssociation without a PD: each Dial has an RNIC of its own then, and nothing is shared", ErrInvalid)
		}
		return d.dial(ctx, qp, network, addr)
	})
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
	return d.claimed(qp, func(offer mpa.Offer) error {
		a := attempt{offer: offer, ends: new([]any)}
		err := d.dialOnce(ctx, qp, network, addr, a)
		if err == nil || d.NoFallback || !d.Preset.fallsBack() || !advisesFallback(err) || ctx.Err() != nil {
			return err
		}
		return d.fallBack(ctx, qp, network, addr, a, err)
	})
}

// dialOnce is one connection, or session, and one startup.
func (d *Dialer) dialOnce(ctx context.Context, qp *QP, network, addr string, a attempt) error {
	if isSCTP(network) {
		return d.dialSCTP(ctx, qp, network, addr, a)
	}
	conn, err := d.openTCP(ctx, network, addr, qp.cfg.FPDUs)
	if err != nil {
		return err
	}
	return d.connect(ctx, qp, conn, nil, a)
}

// openTCP opens a TCP connection and passes it through Wrap.
func (d *Dialer) openTCP(ctx context.Context, network, addr string, fpdus FPDUs) (net.Conn, error) {
	if err := cmp.Or(checkNetwork(network), checkUDP(network, d.MTU, d.WrapUDP != nil)); err != nil {
		return nil, err
	}
	if d.ShareAssociation {
		return nil, fmt.Errorf("%w: Dialer.ShareAssociation is for SCTP, and a QP over %q has a connection of its own", ErrInvalid, network)
	}
	c, err := d.dialTCP(ctx, network, addr, fpdus)
	switch {
	case err != nil:
		return nil, lapsed(err)
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

// lapsed is an error of package net, as one of the context if that is what it is: where the socket's deadline, which is
// that of the context, passes before the context notices, it is an "i/o timeout" and no more.
func lapsed(err error) error {
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

// fallBack makes the second attempt, with revision 1. What was offered holds there too, although revision 1 has
// no words for all of it: if the connection was to be peer-to-peer, an empty Write or Read of ours opens the
// peer's direction.
//
// RFC 6581, section 10: "the initiator MAY attempt to establish an RDMA connection using the unenhanced
// MPA protocol". [E13]
func (d *Dialer) fallBack(ctx context.Context, qp *QP, network, addr string, was attempt, first error) error {
	a, err := d.plain(was.offer)
	if err != nil {
		return &fallbackError{first: first, second: err}
	}
	a.after = first
	qp.rnic.startup.count(func(s *StartupStats) { s.Fallbacks++ })
	qp.rnic.log.Log(ctx, LevelConnection, "iwarp: trying again with "+plainer(first), append([]any{"qp", qp.num, "cause", first.Error()}, *was.ends...)...)
	closeRejected(first)
	if err := d.dialOnce(ctx, qp, network, addr, a); err != nil {
		return &fallbackError{first: first, second: err}
	}
	return nil
}

// plain returns what an offer becomes in revision 1. What cannot be kept there is an error, before there is a connection.
func (d *Dialer) plain(o mpa.Offer) (a attempt, err error) {
	if !o.ClientServer {
		if a.opener = opener(o.RTR); a.opener == 0 {
			return a, errSendOpener
		}
	}
	o.Dialect = mpa.DialectRFC5044
	a.offer = d.Preset.addDepths(o, o.Dialect, nil)
	return a, badOffer("Dialer.MPA", sendable(a.offer))
}

var errSendOpener = fmt.Errorf("%w: only a Send is offered as RTR indication, and in revision 1 it would take a receive of the peer's consumer", errors.ErrUnsupported)

// opener returns the kind of RTR indication to send where none is negotiated, of those that are offered: one
// that the peer's consumer does not see, or none.
func opener(offered mpa.RTR) mpa.RTR {
	switch {
	case offered == 0, offered&mpa.RTRWrite != 0:
		return mpa.RTRWrite
	}
	return offered & mpa.RTRRead
}

// advisesFallback reports whether the peer seems not to know RFC 6581.
func advisesFallback(err error) bool {
	var s *mpa.StartupError
	var r *mpa.RejectError
	var c *sctp.Refusal
	return errors.As(err, &s) && s.Fallback || errors.As(err, &r) && r.Fallback || errors.As(err, &c) && c.Fallback
}

// closeRejected closes the connection that a rejection has left open, and that nobody will get.
func closeRejected(err error) {
	if c := connOf(err); c != nil {
		_ = c.Close()
	}
}
