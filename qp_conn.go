package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// A ticket is what a QP knows of the Listener that its connection came by.
type ticket struct {
	rtr  time.Duration   // how long the peer may owe its RTR indication; 0: it owes none
	slot *admission.Slot // of the connection at the Listener
	// sendEarly is the preset's QPConfig.SendEarly, for a QP that has none.
	sendEarly time.Duration
}

// newMachine returns a Machine for the next connection.
func (qp *QP) newMachine() *engine.Machine { return engine.New(engineConfig(qp)) }

// engineConfig returns the configuration of a QP's Machines.
func engineConfig(qp *QP) engine.Config {
	c := engine.Config{
		SendDepth: qp.cfg.SendDepth, RecvDepth: qp.cfg.RecvDepth,
		Memory: memory.Domain{
			Table: qp.rnic.table, PD: qp.pd.num, Stream: qp.memory, Denied: memory.Access(qp.cfg.Deny),
		},
		CloseTimeout: qp.cfg.CloseTimeout, CloseLimit: qp.cfg.CloseLimit,
		Linger:    orDefault(qp.cfg.Linger, 100*time.Millisecond),
		StrictRTR: qp.cfg.StrictRTR, HalfClose: qp.cfg.HalfClose, GapTimeout: qp.cfg.GapTimeout,
		RNR: engine.RNR(qp.cfg.RNR), Discard: qp.cfg.Receives.Count > 0, Confirm: qp.cfg.Confirm,
		Prefixed: qp.prefixed, Trace: qp.journal.tracer(),
	}
	if qp.cfg.Linger == 0 {
		c.Unwatched = qp.rnic.events.unwatched
	}
	if qp.cfg.SRQ != nil {
		c.Source, c.SendTimeout = srqSource{qp.cfg.SRQ, qp}, max(qp.cfg.SRQ.sendTimeout, 0)
	}
	return c
}

// A connecting is a QP on its way to RTS, on a connection whose startup phase is over.
type connecting struct {
	qp     *QP
	n      *Negotiated
	attr   StreamAttr
	ticket ticket
	ends   ends
	params engine.Params
	// untouched tells that the connection is as package net has opened it.
	untouched bool
}

// newConnecting returns what puts the QP into RTS, with what was negotiated, over a lower layer.
func newConnecting(qp *QP, n *Negotiated, attr StreamAttr, t ticket, over addressed) *connecting {
	return &connecting{
		qp: qp, n: n, attr: attr, ticket: t, ends: endsOf(over, qp.rnic.logs()),
		params: engine.Params{Negotiated: n.Negotiated, RTT: n.RTT, Opener: n.Opener, ORD: int(n.ORD), IRD: int(n.IRD)},
	}
}

// config returns what the QP asks of the connection.
func (u *connecting) config() *driver.Config {
	qp := u.qp
	c := &driver.Config{
		Owner: upcalls{qp}, SendDepth: qp.cfg.SendDepth, RecvDepth: qp.cfg.RecvDepth, FPDUs: driver.FPDUs(qp.cfg.FPDUs),
		RNR: qp.cfg.RNR != (RNRPolicy{}), IdleTimeout: qp.cfg.IdleTimeout, RTRTimeout: u.ticket.rtr,
		CloseTimeout: qp.cfg.CloseTimeout, CloseLimit: qp.cfg.CloseLimit, ErrNoRTR: ErrNoRTR, ErrIdle: ErrIdle,
		Spin: cmp.Or(qp.cfg.Spin, qp.rnic.spin), Unpolled: &qp.unpolled, Waiters: &qp.room.waiting,
		Born: &qp.rnic.born, Reclaimer: &qp.rnic.reclaimer,
	}
	if qp.cfg.SRQ != nil {
		c.RecvDepth = 0
	}
	return c
}

// overTCP puts the QP into RTS over TCP.
func (u *connecting) overTCP(nc net.Conn) error {
	qp, p := u.qp, &u.params
	t := tcp.New(nc)
	if !u.untouched {
		t.SendAtOnce()
	}
	u.setTimeouts(t, nc)
	c := driver.New(t, isLoopback(u.ends.remote), u.config())
	l := c.Limits(u.n.MarkersSend)
	u.n.EMSS, u.n.MULPDU = l.EMSS, l.MULPDU
	p.MULPDU, p.EMSS, p.Record = l.MULPDU, l.AlignedTo, l.Record
	if early := cmp.Or(qp.cfg.SendEarly, u.ticket.sendEarly); early > 0 && !u.n.SendFirst && !u.n.PeerToPeer {
		p.SendFrom = time.Now().Add(early)
	}
	p.Nudge, p.Silence = u.nudging()
	p.TellsEnd = t.TellsEnd()
	p.Ahead = engine.Ahead{Segments: driver.EarlySegments, Bytes: driver.EarlyBytes, Budget: qp.rnic.early.Budget()}
	if qp.cfg.RNR != (RNRPolicy{}) {
		p.Waiting = qp.rnic.ahead.Share(u.ends.remote, c.HoldsTooMuch)
	}
	return u.enter(c)
}

// setTimeouts sets the timeouts that TCP itself watches over.
func (u *connecting) setTimeouts(t *tcp.Conn, nc net.Conn) {
	cfg := &u.qp.cfg
	var keepAlive, userTimeout error
	if cfg.KeepAlive.Enable {
		keepAlive = t.SetKeepAlive(cfg.KeepAlive)
	}
	if cfg.UserTimeout > 0 {
		userTimeout = t.SetUserTimeout(cfg.UserTimeout)
	}
	if err := cmp.Or(keepAlive, userTimeout); err != nil {
		u.qp.rnic.log.Log(context.Background(), levelConnection, "iwarp: timeouts of TCP were not set",
			append(logEnds(nc), "qp", u.qp.num, "cause", errors.Join(keepAlive, userTimeout).Error())...)
	}
}

// overStream puts the QP into RTS over a stream that carries whole segments.
func (u *connecting) overStream(s SegmentStream) error {
	b, p := s.Bounds(), &u.params
	c := driver.NewWhole(whole{s}, s, u.config())
	u.n.MULPDU, u.n.noMPA = c.Limits(false).MULPDU, true
	p.MULPDU, p.Layer, p.First = u.n.MULPDU, engine.LayerMessages, b.First
	p.Ahead = engine.Ahead{
		Segments: b.Segments, Bytes: b.Bytes, Budget: u.qp.rnic.ahead.Share(u.ends.remote, c.HoldsTooMuch),
	}
	p.Waiting = p.Ahead.Budget
	return u.enter(c)
}

// whole is a SegmentStream for the driver.
type whole struct{ SegmentStream }

// Recv gives the driver an arrival in its own type.
func (w whole) Recv() (lowerlayer.Arrival, error) {
	a, err := w.SegmentStream.Recv()
	return lowerlayer.Arrival(a), err
}

// enter puts the QP into RTS on a connection, which gets the Machine with what was posted.
func (u *connecting) enter(c *driver.Conn) error {
	qp := u.qp
	defer qp.journal.flush(false)
	qp.mu.Lock()
	defer qp.mu.Unlock()
	m, err := u.machine()
	if err == nil {
		err = m.Connect(&u.params)
	}
	if err != nil {
		return err
	}
	qp.srqHeld.next()
	qp.listener.forget(qp)
	qp.ends, qp.neg, qp.attr, qp.ticket, qp.ended, qp.machine = u.ends.clone(), u.n, u.attr, u.ticket, nil, nil
	if isClosed(qp.done) { // of an earlier connection
		qp.done, qp.ctx, qp.endCtx, qp.abandoned = make(chan struct{}), nil, nil, abandonedRecvs{}
		qp.sendCQ.revive(qp)
		qp.recvCQ.revive(qp)
	}
	qp.journal.start(&u.ends, u.n)
	c.Start(m)
	qp.conn.Store(c) // from now on others use it without qp.mu
	return nil
}

// machine returns the Machine for the connection, if the QP may be put into RTS with what was negotiated. The caller
// holds qp.mu.
func (u *connecting) machine() (*engine.Machine, error) {
	qp := u.qp
	switch {
	case qp.claim == released:
		return nil, qp.endedError()
	case qp.conn.Load() != nil || qp.ended != nil && qp.ended.State != engine.Idle:
		return nil, cmp.Or(qp.endedError(), fmt.Errorf("connect in state %v: %w", qp.status().state, ErrBadState))
	}
	m := qp.machine
	if m == nil {
		m = qp.newMachine()
	}
	return m, u.attr.checkNegotiated(qp.rnic.kind, &u.n.Negotiated)
}

// silence is how long a peer that may be siw may say nothing until that is logged.
const silence = 3 * time.Second

// nudging returns after how long a silent peer of a new connection is nudged, and after how long its silence is logged;
// zero: never.
func (u *connecting) nudging() (nudge, tell time.Duration) {
	switch {
	case u.qp.cfg.Nudge != 0:
		return max(u.qp.cfg.Nudge, 0), 0
	case peers.LikeSIW(&u.n.Negotiated):
		return peers.Nudge, 0
	case u.qp.rnic.logs() && !u.n.FellBack && peers.MayBeSIW(&u.n.Negotiated):
		return 0, silence
	}
	return 0, 0
}

// addressed is a connection that says its addresses.
type addressed interface {
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// ends has the addresses of a connection. It was asked for them when it came up: its methods may be the consumer's
// code, which must not run under a lock.
type ends struct {
	local, remote net.Addr
	logged        []any // the same, for log records; nil if nothing is logged
}

// clone returns a copy for the QP, which is not to keep all that took part in connecting it.
func (e ends) clone() *ends { return &e }

// endsOf asks a connection for its addresses, and for those to be logged.
func endsOf(c addressed, logs bool) ends {
	e := ends{local: c.LocalAddr(), remote: c.RemoteAddr()}
	if logs {
		e.logged = logEnds(c)
	}
	return e
}

// ModifyRTSOver is ModifyRTS for a connection over a SegmentStream. n has the roles, what was
// agreed on about depths and Ready-to-Receive indications, and the DDP and RDMAP version, which
// is 1; of MPA there are neither markers nor CRCs, and either side may send first.
//
// Payload of Writes, Read Responses and Sends is placed as it arrives, and completions come in
// the order in which the peer has sent (RFC 5041, section 5.3). Sends to a Shared Receive
// Queue wait for those before them.
//
// From then on s belongs to the QP, which calls its Close or Reset in the end. After an error
// it still belongs to the caller.
func (qp *QP) ModifyRTSOver(s SegmentStream, n mpa.Negotiated, attr *StreamAttr) error {
	if err := qp.made(); err != nil {
		return err
	}
	if s == nil {
		return &OpError{Op: "modify QP", Err: errNoConnGiven}
	}
	if err := qp.claimFor(); err != nil {
		return &OpError{Op: "modify QP", Addr: s.RemoteAddr(), Err: err}
	}
	defer qp.unclaim()
	n.SendFirst, n.MarkersSend, n.MarkersReceive, n.CRC = true, false, false, false
	n.Revision, n.PeerRevision = 0, 0
	a, err := checkModify(qp, &n, attr)
	switch {
	case n.DDPVersion != 1:
		err = fmt.Errorf("%w: DDP version %d over a SegmentStream", ErrVersion, n.DDPVersion)
	case err == nil:
		qp.rnic.resolve(&n)
		err = newConnecting(qp, &Negotiated{Negotiated: n}, a, ticket{}, s).overStream(s)
	}
	if err != nil {
		return &OpError{Op: "modify QP", Addr: s.RemoteAddr(), Err: err}
	}
	return nil
}
