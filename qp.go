package iwarp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/mpa"
)

// Negotiated is what the startup agreed on for a connection. Over SCTP, and any other SegmentStream, there is no MPA:
// Revision, PeerRevision, the markers and CRC are zero, and neither String nor JSON has them.
type Negotiated struct {
	mpa.Negotiated
	// EMSS is TCP's effective maximum segment size, 0 without TCP, and MULPDU the
	// largest ULPDU that is sent, both in bytes and as they were at the start.
	EMSS, MULPDU int
	// RTT is how long an Initiator waited for the answer to its startup frame: no less
	// than a round trip on the path. It is 0 where that is not known.
	RTT time.Duration
	// FellBack tells that the peer refused a revision 2 Request, and that this is a
	// second connection, with revision 1. FallbackReason is how the first one failed.
	FellBack       bool
	FallbackReason error
	// Opener is the kind of empty message that we sent first after a fallback, although
	// revision 1 negotiates none: it lets the peer send before our consumer does.
	Opener mpa.RTR

	noMPA bool // the connection is over a SegmentStream
}

// A QP is a Queue Pair: one end of a connection, with a Send Queue for Sends, Writes and
// Reads, and a Receive Queue. PD.CreateQP makes one; Dialer and Request also make one
// while they connect.
//
// A QP exists until its program calls Close or Abort, even if its connection has ended: Done
// is closed then.
type QP struct {
	rnic   *RNIC
	pd     *PD
	num    uint32
	memory uint32 // the number of the stream for memory: another one for each connection; guarded by mu
	cfg    QPConfig
	sendCQ *CQ
	recvCQ *CQ
	uses   [2]cqUse // of the Send Queue's CQ, and of the other's, if that is another

	unpolled driver.Unpolled
	srqHeld  srqHeld // with an SRQ, in place of unpolled.Recvs
	inbox    *inbox  // with QPConfig.Receives; else nil
	room     room    // who waits for room in the Send Queue

	preparing atomic.Pointer[chan struct{}] // closed when Prepare returns; nil: it is not running
	// conn is the connection, from RTS until all its requests have been given back; else nil. Guarded by mu for
	// writing.
	conn    atomic.Pointer[driver.Conn]
	journal *journal     // what is to be logged
	release sync.Once    // of what it holds of others
	callers atomic.Int32 // calls as Read that wait, and do not receive for themselves
	mute    atomic.Bool  // its completions are dropped: see emulation.Mute

	mu sync.Mutex // guards what follows; it comes before the lock of conn
	// that takes what is posted before there is a connection; nil while there is one, and after it
	machine   *engine.Machine
	prefixed  bool // Sends have a prefix
	claim     claim
	attr      StreamAttr      // for the next connection
	ends      *ends           // of the connection; nil: there is none, or the QP is ready for another
	neg       *Negotiated     // nil: there was no connection yet
	ended     *driver.End     // how the last connection has ended; nil: there may be another
	why       error           // the cause of ended, as Err has it
	past      *counters       // of connections that have ended; nil: none has
	ticket    ticket          // of the Listener that the connection came by
	listener  *Listener       // that the connection came by, if it did
	holds     holdings        // what it holds of others
	done      chan struct{}   // closed when the connection has ended
	ctx       context.Context // ends then; nil: nobody has asked for it
	endCtx    context.CancelCauseFunc
	fastMRs   *fastMRs       // of QP.At; nil: nothing was read or written yet
	abandoned abandonedRecvs // of this connection
}

// polled takes note that completions have left their CQ, so that their requests give up their entries. It counts those
// of one QP together, as each change of a shared counter costs time.
func polled(wc []WC) {
	for len(wc) > 0 {
		qp, n := wc[0].QP, 1
		for n < len(wc) && wc[n].QP == qp {
			n++
		}
		qp.polled(wc[:n])
		wc = wc[n:]
	}
}

func (qp *QP) polled(wc []WC) {
	var sends, recvs int64
	for i := range wc {
		switch {
		case wc[i].Op != OpRecv:
			sends++
		case qp.cfg.SRQ == nil:
			recvs++
		case qp.srqHeld.giveBack(wc[i].connection):
			qp.cfg.SRQ.out.Add(-1)
		}
	}
	if sends > 0 {
		qp.unpolled.Sends.Add(-sends)
		qp.room.notify()
	}
	if recvs > 0 {
		qp.unpolled.Recvs.Add(-recvs)
	}
}

// Negotiated returns what was agreed on for the present or last connection.
func (qp *QP) Negotiated() Negotiated {
	if qp.made() != nil {
		return Negotiated{}
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.neg == nil {
		return Negotiated{}
	}
	return *qp.neg
}

// stream returns the attributes for the next connection.
func (qp *QP) stream() StreamAttr {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.attr
}

// CreateQP returns a QP in state Idle. Receives may be posted to it before it
// is connected, and must be if the peer sends first.
func (pd *PD) CreateQP(cfg QPConfig) (*QP, error) {
	if err := pd.made(); err != nil {
		return nil, err
	}
	qp := &QP{rnic: pd.rnic, pd: pd, cfg: cfg, attr: cfg.Stream, done: make(chan struct{})}
	qp.holds.qp = qp
	if err := qp.holds.acquire(); err != nil {
		return nil, &OpError{Op: "create QP", Err: err}
	}
	return qp, nil
}

// holdings says what a QP holds of others. It has no lock: one goroutine creates the QP, and one releases it.
type holdings struct {
	qp *QP
	of holding
}

// holding tells what a QP holds of others.
type holding uint16

const (
	holdsPD holding = 1 << iota
	holdsShares
	holdsOwnCQ
	holdsSendCQ
	holdsRecvCQ
	holdsSRQ
	holdsRNIC
	holdsOwnRecvCQ
	holdsInbox
)

// acquire takes everything that the QP needs from others, or nothing.
func (h *holdings) acquire() error {
	qp := h.qp
	if err := qp.cfg.fill(); err != nil {
		return err
	}
	if err := qp.attr.check(qp.rnic.kind); err != nil {
		return err
	}
	for _, take := range h.takes() {
		if err := take(); err != nil {
			h.release()
			return err
		}
	}
	return nil
}

// takes are the steps of acquire, in their order. From takeCQs on others may end the QP: a CQ that overflows does. So
// its Machine is made before.
func (h *holdings) takes() []func() error {
	return []func() error{h.enterPD, h.takeShares, h.makeMachine, h.takeCQs, h.takeSRQ, h.makeInbox, h.enroll}
}

// giveUp ends a QP that has no connection. Nothing that it calls is the user's code, which might close the QP in its
// turn.
func (h *holdings) giveUp() {
	qp := h.qp
	qp.mu.Lock()
	if !isClosed(qp.done) {
		qp.endStream()
	}
	qp.listener.forget(qp)
	mrs := qp.fastMRs
	qp.mu.Unlock()
	mrs.close()
	qp.inbox.drop() // while the QP counts it
	h.release()
}

// release gives back what the QP holds, the last that it took first.
func (h *holdings) release() {
	qp := h.qp
	h.giveBack(holdsRNIC, func() { qp.rnic.remove(qp) })
	h.giveBack(holdsInbox, func() { qp.inbox.close() })
	h.giveBack(holdsSRQ, func() { qp.cfg.SRQ.detach(qp) })
	h.giveBack(holdsRecvCQ, func() { qp.recvCQ.detach(qp) })
	h.giveBack(holdsSendCQ, func() { qp.sendCQ.detach(qp) })
	h.giveBack(holdsOwnRecvCQ, func() { _ = qp.recvCQ.Close() })
	h.giveBack(holdsOwnCQ, func() { _ = qp.sendCQ.Close() })
	h.giveBack(holdsShares, func() { qp.rnic.ledger.release(h.shares()...) })
	h.giveBack(holdsPD, func() {
		qp.rnic.table.RemoveStream(qp.pd.num)
		qp.pd.detach(userQP)
	})
}

func (h *holdings) giveBack(what holding, f func()) {
	if h.of&what != 0 {
		f()
		h.of &^= what
	}
}

func (h *holdings) enterPD() error {
	qp := h.qp
	if err := qp.pd.attach(userQP); err != nil {
		return err
	}
	qp.num = qp.rnic.number()
	qp.rnic.table.AddStream(qp.pd.num)
	h.of |= holdsPD
	return nil
}

// shares returns what the QP takes of its RNIC's limits.
func (h *holdings) shares() []share {
	entries := h.qp.cfg.SendDepth
	if h.qp.cfg.SRQ == nil {
		entries += h.qp.cfg.RecvDepth
	}
	return []share{{resQP, 1}, {resWR, entries}}
}

func (h *holdings) takeShares() error {
	err := h.qp.rnic.ledger.reserve(h.shares()...)
	if err == nil {
		h.of |= holdsShares
	}
	return err
}

// takeCQs settles which CQs the QP uses.
func (h *holdings) takeCQs() (err error) {
	qp := h.qp
	qp.sendCQ, qp.recvCQ = qp.cfg.SendCQ, qp.cfg.RecvCQ
	if n := qp.cfg.Receives.Count; n > 0 {
		if qp.recvCQ, err = h.ownCQ(n, holdsOwnRecvCQ); err != nil {
			return err
		}
	}
	switch {
	case qp.sendCQ == nil && qp.recvCQ == nil:
		if qp.sendCQ, err = h.ownCQ(h.outstanding(), holdsOwnCQ); err != nil {
			return err
		}
		qp.recvCQ = qp.sendCQ
	case qp.sendCQ == nil && qp.cfg.Receives.Count > 0:
		if qp.sendCQ, err = h.ownCQ(qp.cfg.SendDepth, holdsOwnCQ); err != nil {
			return err
		}
	case qp.sendCQ == nil:
		qp.sendCQ = qp.recvCQ
	case qp.recvCQ == nil:
		qp.recvCQ = qp.sendCQ
	}
	if err := h.tie(qp.sendCQ, holdsSendCQ); err != nil {
		return err
	}
	return h.tie(qp.recvCQ, holdsRecvCQ)
}

// outstanding is how many requests may be outstanding in both queues.
func (h *holdings) outstanding() int {
	cfg := &h.qp.cfg
	if cfg.SRQ != nil {
		return cfg.SendDepth + cfg.SRQ.depth()
	}
	return cfg.SendDepth + cfg.RecvDepth
}

// ownCQ creates a CQ for a QP that was not given one. It ends with the QP, unless the
// consumer has given it to other QPs.
func (h *holdings) ownCQ(depth int, what holding) (*CQ, error) {
	cq, err := h.qp.rnic.CreateCQ(depth)
	if err == nil {
		cq.auto = true
		h.of |= what
	}
	return cq, err
}

func (h *holdings) tie(cq *CQ, what holding) error {
	err := cq.attach(h.qp)
	if err == nil {
		h.of |= what
	}
	return err
}

func (h *holdings) takeSRQ() error {
	srq := h.qp.cfg.SRQ
	if srq == nil {
		return nil
	}
	err := srq.attach(h.qp)
	if err == nil {
		h.of |= holdsSRQ
	}
	return err
}

func (h *holdings) makeMachine() error {
	qp := h.qp
	if qp.rnic.logs() {
		qp.journal = &journal{of: qp}
	}
	qp.memory = qp.rnic.table.NewStream()
	qp.machine = qp.newMachine()
	return nil
}

// enroll makes the QP known to its RNIC.
func (h *holdings) enroll() error { return h.qp.rnic.enroll(h.qp) }

func (h *holdings) makeInbox() (err error) {
	if h.qp.cfg.Receives.Count == 0 {
		return nil
	}
	if h.qp.inbox, err = newInbox(h.qp); err == nil {
		h.of |= holdsInbox
	}
	return err
}
