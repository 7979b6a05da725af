package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
)

// dialSegments has a SegmentNetwork bring up a connection.
func (d *Dialer) dialSegments(ctx context.Context, qp *QP, network, addr string, a *attempt) error {
	if err := d.checkSegments(); err != nil {
		return err
	}
	// An RNIC may have markers, and no CRCs, by default: that is about MPA.
	offer := a.offer
	offer.Markers, offer.NoCRC = d.MPA.Markers, d.MPA.NoCRC
	counts := a.countStart(qp)
	s, n, err := d.Network.Dial(ctx, network, addr, &d.Net, offer)
	if s == nil {
		counts.failed(err)
		return badOffer("Dialer.MPA", err)
	}
	if err == nil {
		n = d.Preset.takeDepths(n)
		err = d.verifySession(s, n)
	}
	if err = a.conclude(qp, session{s}, n, counts, rejectedSession(s, err)); err != nil {
		part(ctx, s)
		_ = s.Close()
	}
	return err
}

// checkSegments refuses settings that are for TCP only. Without Wrap, what the consumer wanted encrypted would go out
// in clear.
func (d *Dialer) checkSegments() error {
	switch {
	case d.Wrap != nil:
		return fmt.Errorf("%w: Dialer.Wrap is for TCP connections, and a Dialer.Network has none to wrap", ErrInvalid)
	case d.Stack != nil:
		return noStack("Dialer")
	}
	return nil
}

// noStack refuses a Stack: who gave one does not want the operating system's network.
func noStack(in string) error {
	return fmt.Errorf("%w: %s.Stack is a TCP, and %s.Network does not run over it: set one of them", ErrInvalid, in, in)
}

// partingTime bounds how long a Dial that has failed waits for the peer to know that.
const partingTime = time.Second

// part waits until the peer knows that a session has ended: the program may end with the Dial, and its network with it.
func part(ctx context.Context, s SegmentSession) {
	ctx, cancel := context.WithTimeout(ctx, partingTime)
	defer cancel()
	select {
	case <-s.PeerAcked():
	case <-ctx.Done():
	}
}

// verifySession has the consumer look at an answer that accepts the session, and that we can accept.
func (d *Dialer) verifySession(s SegmentSession, n mpa.Negotiated) error {
	if d.Verify == nil || n.TerminateCode != 0 {
		return nil
	}
	err := unlessPanic(func() { _ = s.Cancel() }, func() error { return d.Verify(n) })
	if err != nil {
		_ = s.Cancel()
		return &VerifyError{Err: err, Conn: newNoConn(s, nil)}
	}
	return nil
}

// rejectedSession returns the error of a session that the peer's consumer did not want: a *RejectError, as over TCP.
func rejectedSession(s SegmentSession, err error) error {
	r, ok := errors.AsType[*mpa.RejectError](err)
	if !ok || connOf(err) != nil {
		return err
	}
	return &RejectError{RejectError: r, Conn: newNoConn(s, nil)}
}

// A session goes to RTS over a SegmentNetwork.
type session struct{ SegmentSession }

func (s session) start(qp *QP, n *Negotiated, t ticket) error {
	return newConnecting(qp, n, qp.stream(), t, s).overStream(s.SegmentSession)
}

// turnDown ends the session by a Terminate of RDMAP, in front of its own end.
func (s session) turnDown(n *mpa.Negotiated) *engine.Failure {
	segment, why := engine.TurnDownSegment(*n)
	_, _ = s.Send([][]byte{segment})
	_ = s.Close()
	return why
}

// listenSegments listens on a SegmentNetwork.
func (cfg *ListenConfig) listenSegments(ctx context.Context, network, addr string) (*Listener, error) {
	if err := cfg.consistent(); err != nil {
		return nil, err
	}
	if cfg.Stack != nil {
		return nil, noStack("ListenConfig")
	}
	unused := max(cmp.Or(cfg.RequestTimeout, mpa.DefaultRequestTimeout), -1)
	ln, err := cfg.Network.Listen(ctx, network, addr, &cfg.Net, unused)
	if err != nil {
		return nil, err
	}
	l := newListener(ln, *cfg)
	l.startAccepting(nil, func() { l.acceptPeers(ln) })
	return l, nil
}

// acceptPeers takes the paths that peers open.
func (l *Listener) acceptPeers(ln SegmentListener) {
	for {
		p, err := ln.Accept(l.ctx)
		if err != nil {
			l.stop(err)
			return
		}
		l.tasks.Go(func() { l.serve(p) })
	}
}

// An opened path has a slot until there is a request.
type opened struct{ SegmentPeer }

// Close ends it.
func (o opened) Close() error {
	go o.Abort("closed to make room")
	return nil
}

// serve offers the requests of one peer to Accept. Until there is one its path is half-open. [Z04]
func (l *Listener) serve(peer SegmentPeer) {
	slot := l.enter(opened{peer})
	if slot == nil {
		l.evicted(opened{peer})
		peer.Abort("no room")
		return
	}
	for {
		s, err := peer.Accept(l.ctx)
		slot.Leave()
		if err != nil {
			return
		}
		l.request(s)
	}
}

// request offers one request to Accept, if there is room for it.
func (l *Listener) request(s SegmentRequest) {
	slot := l.enter(s)
	if slot == nil {
		l.evicted(s)
		_ = s.Cancel()
		return
	}
	req := &Request{
		ln: l, slot: slot, rnic: l.rnic, named: l.cfg.named(), pd: l.cfg.PD, over: s,
		counts: l.startupCounters(), preset: l.cfg.Preset,
	}
	req.counts.count(func(s *StartupStats) { s.Started++ })
	l.tasks.Go(func() {
		if !slot.Arrived(func() {}) || !l.offer(req) { // it was closed to make room
			_ = s.Cancel()
			slot.Leave()
		}
	})
}

// acceptSession answers over a SegmentNetwork, and puts the QP into RTS. An answer that cannot be given leaves the
// Request as it is.
func (r *Request) acceptSession(qp *QP, answer mpa.Answer) error {
	n, err := r.over.Accept(answer)
	if errors.Is(err, mpa.ErrOffer) {
		return err
	}
	r.answered = true
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConnectionLost, err)
	}
	return qp.enterRTS(session{r.over}, &Negotiated{Negotiated: r.preset.takeDepths(n)}, r.ticket())
}

// rejectSession rejects the peer's request for a session.
func (r *Request) rejectSession(privateData []byte, ird, ord mpa.Depth) error {
	err := r.over.Reject(privateData, ird, ord)
	if errors.Is(err, mpa.ErrOffer) {
		return err
	}
	r.answered = true
	r.slot.Leave()
	if err != nil {
		r.counts.failed(err)
		return err
	}
	r.counts.count(func(s *StartupStats) { s.Rejected++ })
	return nil
}

// A noConn stands for the connection that an error or a call hands over where there is none: over a SegmentNetwork
// nothing is left of a session that was refused. It is closed; if it was refused here, Read returns when the peer
// knows.
type noConn struct {
	local, remote net.Addr
	told          <-chan struct{}
}

func newNoConn(s addressed, told <-chan struct{}) noConn {
	return noConn{s.LocalAddr(), s.RemoteAddr(), told}
}

// isNoConn reports whether a connection is a noConn.
func isNoConn(c net.Conn) bool {
	_, none := c.(noConn)
	return none
}

// Read has nothing to read.
func (c noConn) Read([]byte) (int, error) {
	if c.told != nil {
		<-c.told
	}
	return 0, net.ErrClosed
}

func (noConn) Write([]byte) (int, error)        { return 0, net.ErrClosed }
func (noConn) Close() error                     { return net.ErrClosed }
func (noConn) CloseWrite() error                { return nil } // a rejection has ended it
func (noConn) SetDeadline(time.Time) error      { return net.ErrClosed }
func (noConn) SetReadDeadline(time.Time) error  { return net.ErrClosed }
func (noConn) SetWriteDeadline(time.Time) error { return net.ErrClosed }
func (c noConn) LocalAddr() net.Addr            { return c.local }
func (c noConn) RemoteAddr() net.Addr           { return c.remote }
