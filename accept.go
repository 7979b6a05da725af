package iwarp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// AcceptConfig says how to accept a Request. The zero value is usable.
type AcceptConfig struct {
	// PD is where the QP is created; the Listener's, if nil.
	PD *PD
	// QP configures the QP that Accept creates.
	QP QPConfig
	// Preset, if it is set, supplies what the peer needs wherever the settings here
	// are zero. If nil, the Listener's.
	Preset *Preset
	// MPA is what we answer: private data, IRD and ORD. If IRD and ORD are both zero, each becomes 32. IRD may grow to
	// MaxIRD as in Dialer.MPA.
	MPA mpa.Answer
	// NoReads leaves an IRD and ORD of zero as they are: the connection carries no RDMA Reads. An Initiator that offers
	// only a Read as its RTR indication still has an IRD of 1: see docs/settings.md.
	NoReads bool
	// Prepare, if it is set, gets the QP before the connection comes up: it is the
	// place to post receives, with PostRecv. It must not wait for the peer.
	Prepare func(*QP) error
	// AwaitRTR has Accept and AcceptQP wait for the RTR indication, where one is owed over MPA, for RTRTimeout at most.
	// A QP whose peer goes away before that stays in StateIdle, and keeps what is posted.
	AwaitRTR bool
}

// Accept creates a QP and brings up the connection. As with Dialer.Dial, the program must close the QP. In some
// dialects the peer owes a frame after our answer, and Accept waits for that. If the error wraps ErrLimit, ErrInvalid
// (as one of mpa.ErrOffer does), ErrVersion or ErrMarkersRequired, or is that of Prepare, the Request can still be
// answered: the peer waits for that until the Request is accepted, rejected or closed. (After a private data message,
// the peer's wish for markers comes with its Start Key, when our answer is already out: then another answer is
// ErrBadState.) When the RNIC was closed, an Accept that fails closes the Request.
func (r *Request) Accept(ctx context.Context, cfg AcceptConfig) (*QP, error) {
	if err := r.made(); err != nil {
		return nil, err
	}
	op := &OpError{Op: "accept", Addr: r.RemoteAddr()}
	if ctx == nil {
		return nil, op.with(errNoContext)
	}
	if cfg.PD != nil {
		if err := r.takes("AcceptConfig.PD", cfg.PD.rnic); err != nil {
			return nil, op.with(err)
		}
	}
	qp, err := newQP(cmp.Or(cfg.PD, r.pd), r.rnic, &cfg.QP, cfg.Prepare)
	if err != nil {
		r.giveUp()
		return nil, op.with(err)
	}
	up := false
	defer undoUnless(qp, &up)
	if err := r.connect(ctx, qp, &cfg); err != nil {
		return nil, op.with(err)
	}
	up = true
	return qp, nil
}

// giveUp closes a Request that cannot be accepted any more, as its RNIC was closed: its peer would wait in vain.
func (r *Request) giveUp() {
	if r.rnic.checkOpen() != nil {
		_ = r.Close() // or it has been answered
	}
}

// takes refuses an object of another RNIC than the one that the consumer has named.
func (r *Request) takes(what string, rnic *RNIC) error {
	if r.named == nil || r.named == rnic {
		return nil
	}
	return fmt.Errorf("%w: %s is of another RNIC than that of the ListenConfig", ErrInvalid, what)
}

// AcceptQP brings up the connection on a QP in StateIdle; PD, QP and Prepare of the AcceptConfig are not
// used. If AcceptQP fails it closes the connection, unless the QP or the offer was at fault: then the
// Request can still be answered.
func (r *Request) AcceptQP(ctx context.Context, qp *QP, cfg AcceptConfig) error {
	if err := r.made(); err != nil {
		return err
	}
	op := &OpError{Op: "accept", Addr: r.RemoteAddr()}
	if ctx == nil {
		return op.with(errNoContext)
	}
	if err := qp.made(); err != nil {
		return op.with(err)
	}
	if err := r.takes("the QP", qp.rnic); err != nil {
		return op.with(err)
	}
	return op.with(r.connect(ctx, qp, &cfg))
}

// connect brings up the connection as Responder.
func (r *Request) connect(ctx context.Context, qp *QP, cfg *AcceptConfig) (err error) {
	defer func() {
		if err != nil {
			r.giveUp()
		}
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return errAnswered
	}
	if err := qp.claimFor(); err != nil {
		return err
	}
	defer qp.unclaim()
	answer, err := r.answerFor(qp, cfg)
	if err != nil {
		return badOffer("AcceptConfig.MPA", err)
	}
	if r.over != nil {
		err = r.acceptSession(qp, answer)
	} else {
		err = r.acceptMPA(ctx, qp, answer, cfg.AwaitRTR)
	}
	if !r.answered {
		return badOffer("AcceptConfig.MPA", err)
	}
	return r.conclude(qp, err)
}

// conclude tells the Listener what came of an answer. If the connection was evicted meanwhile, it is ended.
func (r *Request) conclude(qp *QP, err error) error {
	c, ln := qp.conn.Load(), r.ln // the QP may have another one when this has to give way; of r nothing is kept
	giveWay := func(why error) {
		ln.evicted(nil)
		if c != nil {
			c.Abort(why)
		}
	}
	if err == nil && !r.slot.Established(giveWay) {
		qp.abortAndWait(ErrEvicted)
		err = ErrEvicted
	}
	switch {
	case err != nil:
		r.slot.Leave()
	case r.ln != nil:
		r.ln.addQP(qp)
	}
	return r.counts.record(r.link(), err)
}

// acceptMPA answers over MPA, and puts the QP into RTS. An answer that cannot be given leaves the Request as it is.
func (r *Request) acceptMPA(ctx context.Context, qp *QP, answer mpa.Answer, await bool) error {
	reply, err := r.m.Accept(time.Now(), answer)
	if err != nil {
		return err
	}
	r.answered = true
	if err := r.unheard(); err != nil {
		return err
	}
	if err := r.sendAnswer(ctx, reply); err != nil {
		return err
	}
	n, conn := r.negotiated(), r.conn
	if await && n.TerminateCode == 0 && r.owesRTR() {
		if conn, err = r.awaitRTR(ctx); err != nil {
			return err
		}
	}
	return qp.enterRTS(&mpaConn{conn, ctx, qp.rnic, r.untouched}, n, r.ticket())
}

func (r *Request) negotiated() *Negotiated {
	return &Negotiated{Negotiated: r.preset.takeDepths(r.m.Negotiated())}
}

// ticket returns what the QP has to know of the Listener.
func (r *Request) ticket() ticket {
	t := ticket{slot: r.slot}
	if r.preset != nil {
		t.sendEarly = r.preset.SendEarly
	}
	if r.owesRTR() {
		t.rtr = max(r.rtrTimeout, 0)
	}
	return t
}

// owesRTR reports whether the peer has to send an RTR indication that its consumer does not see.
func (r *Request) owesRTR() bool { return r.over == nil && r.m.Done() && r.m.Negotiated().PeerToPeer }

// unheard returns an error if the peer has sent anything after its Request, unless the Listener
// tolerates that. RFC 5044, section 7.1.2: "Since the receiver's ability to deal with Markers is
// unknown until the Request and Reply Frames have been received, sending FPDUs before this
// occurs is not possible."
func (r *Request) unheard() error {
	if !r.tolerateEarly && tcp.Waiting(r.conn) {
		return ErrEarly
	}
	return nil
}

// answerFor returns what to answer, if the QP can have the connection at all.
func (r *Request) answerFor(qp *QP, cfg *AcceptConfig) (answer mpa.Answer, err error) {
	r.preset = cmp.Or(cfg.Preset, r.preset)
	offer, err := r.preset.offer(qp.rnic, r.MPA(), cfg.MPA.Offer(), cfg.NoReads)
	if err == nil {
		offer.Dialect = r.MPA().Dialect
		offer, err = narrow(qp, offer)
	}
	if err != nil {
		return answer, err
	}
	if err := qp.stream().answerable(r.MPA(), offer.Kind); err != nil {
		return answer, err
	}
	answer = offer.Answer()
	answer.AllRTR = cfg.MPA.AllRTR || r.preset != nil && r.preset.Accept.AllRTR
	if cfg.NoReads {
		answer.RTR = cmp.Or(answer.RTR, r.rtrWithoutReads())
	}
	return answer, nil
}

// rtrWithoutReads returns the kinds of RTR indication to take on a connection without RDMA Reads, or 0 for all of them:
// taking a Read raises the IRD to 1 (RFC 6581, section 9.1), and is only for those that have nothing better.
func (r *Request) rtrWithoutReads() mpa.RTR {
	if r.MPA().RTR&mpa.RTRWrite == 0 {
		return 0
	}
	return mpa.RTRWrite | mpa.RTRSend
}

// sendAnswer sends the accepting answer, and waits for the Rtr frame or Start Key that the peer may owe after
// it. Until that is here, or the RTR indication of a peer-to-peer connection, the connection is half-open
// again. [Z04]
func (r *Request) sendAnswer(ctx context.Context, reply []byte) error {
	if !r.m.Done() || r.owesRTR() {
		r.slot.AwaitPeer()
	}
	err := r.exchange(ctx, reply)
	if !r.owesRTR() && !r.slot.Heard() {
		return ErrEvicted
	}
	return err
}

// awaitRTR waits for the peer's RTR indication, whose first bytes are in front of the connection that it returns.
func (r *Request) awaitRTR(ctx context.Context) (net.Conn, error) {
	conn, err := r.rnic.phase(r.conn).Await(ctx, max(r.rtrTimeout, 0))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRTR, err)
	}
	return conn, nil
}

var errAnswered = fmt.Errorf("%w: the Request has been answered already", ErrBadState)

// Reject refuses the connection, with private data for the peer's consumer, and returns when the Reply is sent. It then
// closes our half of TCP and drops what the peer sends, in the background, until the peer has closed its own: for 5 s,
// or 1 MiB. So no reset overtakes the Reply. At most 64 peers are waited for at a time. A peer that gets private data
// has a second to close first. The end of the Listener, or of the RNIC, ends the wait; their Shutdown waits for it
// within its context. Dismissed tells when it is over.
//
// With mpa.DialectStartKey closing TCP is the rejection. There is no room for private data: if there are any, Reject
// only returns an error, and the Request waits for another answer.
func (r *Request) Reject(privateData []byte) error {
	return r.RejectDepths(privateData, 0, 0)
}

// RejectDepths is Reject with the IRD and ORD that would have been acceptable:
// the peer's IRD must be at least ord (RFC 6581, section 9.1).
func (r *Request) RejectDepths(privateData []byte, ird, ord mpa.Depth) error {
	conn, err := r.RejectKeep(privateData, ird, ord)
	if err != nil {
		return err
	}
	if r.dismiss(conn, len(privateData) > 0) == nil {
		_ = conn.Close() // the RNIC was closed
	}
	return nil
}

// dismiss waits in the background for a peer that was rejected. It returns nil if the RNIC was closed.
func (r *Request) dismiss(conn net.Conn, told bool) (over <-chan struct{}) {
	if r.ln != nil {
		over = r.ln.dismissed.Add(conn, told)
	}
	if over == nil {
		over = r.rnic.dismissed.Add(conn, told)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dismissed = over
	return over
}

// Dismissed is closed when the wait for the rejected peer is over. A program that exits earlier may lose the Reply. It
// is closed, too, where Reject was not called.
func (r *Request) Dismissed() <-chan struct{} {
	if r.made() == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.dismissed != nil {
			return r.dismissed
		}
	}
	over := make(chan struct{})
	close(over)
	return over
}

// RejectKeep is RejectDepths for a program that goes on with TCP (RFC 5044, section 7.1.2): the Conn is the
// caller's, who must close it. With mpa.DialectStartKey it is closed already. So it is over a SegmentNetwork, where its
// Read returns when the peer has the rejection, or is gone.
func (r *Request) RejectKeep(privateData []byte, ird, ord mpa.Depth) (net.Conn, error) {
	if err := r.made(); err != nil {
		return nil, err
	}
	if err := r.reject(privateData, ird, ord); err != nil {
		return nil, &OpError{Op: "reject", Addr: r.RemoteAddr(), Err: badOffer("the rejection", err)}
	}
	if r.over != nil {
		return newNoConn(r.over, r.over.PeerAcked()), nil
	}
	return r.conn, nil
}

func (r *Request) reject(privateData []byte, ird, ord mpa.Depth) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return errAnswered
	}
	if err := r.preset.checkPrivateData(r.MPA().Dialect, len(privateData)); err != nil {
		return err
	}
	if r.over != nil {
		return r.rejectSession(privateData, ird, ord)
	}
	reply, err := r.m.Reject(privateData, ird, ord)
	if err != nil {
		return err
	}
	r.answered = true
	r.slot.Leave()
	if err := r.exchange(context.Background(), reply); err != nil {
		_ = r.conn.Close()
		r.counts.failed(err)
		return err
	}
	r.counts.count(func(s *StartupStats) { s.Rejected++ })
	if !r.m.KeepsTCP() {
		return r.conn.Close()
	}
	return nil
}

// Close closes the connection without an answer. An Initiator may take that for a peer that
// does not know revision 2, and try again.
func (r *Request) Close() error {
	if err := r.made(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return &OpError{Op: "close request", Addr: r.RemoteAddr(), Err: errAnswered}
	}
	r.answered = true
	r.slot.Leave()
	return r.link().Close()
}
