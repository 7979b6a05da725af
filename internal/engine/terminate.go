package engine

import (
	"math"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// onTerminate acts on the peer's Terminate. It is not answered with another:
// what was queued is dropped, the connection closed. One with faults says at
// least that the peer has given up, and is surfaced with what is wrong with it.
func (q *Machine) onTerminate(s *ddp.Segment) {
	t, err := rdmap.ParseTerminate(s.Payload)
	f := &Failure{Code: t.Code, Peer: true, Layout: t.Layout, Err: err}
	switch {
	case err != nil:
		f.Reason = "its Terminate cannot be read: " + err.Error()
	case t.Layout == rdmap.LayoutSIW:
		f.Reason = "laid out as Linux's siw does, Layer and EType swapped"
	case q.stats.RecvFPDUs == 1:
		f.Reason = q.firstTerminate(t.Code)
	}
	if err == nil {
		f.Reason = advised(f.Reason, hint(&t, q.stats.extended()))
	}
	// RFC 5040, section 7.2: "The DDP layer MUST validate all DDP Segment
	// fields", of Terminates too. [P56]
	queue := &q.queues[rdmap.QNTerminate]
	if err := queue.Check(s, 1, math.MaxUint32); err != nil && f.Err == nil {
		f.Err, f.Reason = err, "its Terminate is not in order: "+err.Error()
	}
	if h, ok := terminatedHeader(&t); ok {
		f.Op, f.HasOp = rdmap.OpcodeOf(&h), true
		q.blameRead(&t, &h)
		q.blameRequest(t.Code, &h)
	} else {
		q.blameRequest(t.Code, nil)
	}
	count(&q.stats.TerminatesRecv, t.Code)
	q.cause = f
	q.notice(Notice{Kind: NoticeTerminateReceived, Err: f})
	q.setState(Terminate)
}

// firstTerminate says what about the startup may be the reason of a Terminate that
// comes in place of a first message. That siw swaps Layer and EType does not show in
// those that it sends then.
func (q *Machine) firstTerminate(code rdmap.Code) string {
	if q.Dialect == mpa.DialectRtr && q.Role == mpa.RoleInitiator {
		return "it may be about our Rtr frame, as some responders repeat the Request's S=1 without knowing that frame, Linux's siw for one: use another dialect"
	}
	if code == rdmap.CodeLocalCatastrophic && q.PeerIRD == mpa.Depth(q.ORD) && q.PeerORD == mpa.Depth(q.IRD) {
		return "" // the Reply had what the peer asked for
	}
	return q.dislike()
}

// terminatedHeader reads the DDP header that a Terminate gives back.
func terminatedHeader(t *rdmap.Terminate) (ddp.Header, bool) {
	s, err := ddp.Parse(t.DDPHeader)
	return s.Header, err == nil
}

// blameRead completes the Read that the peer names as the one in error, so that
// its poster learns more than that it was flushed.
func (q *Machine) blameRead(t *rdmap.Terminate, h *ddp.Header) {
	if h.Tagged || h.QN != rdmap.QNRead {
		return
	}
	pos, ok := q.readOf(h.MSN)
	if !ok {
		return
	}
	e := q.sq.At(pos)
	if e.status = remoteStatus(t.Code); e.msn == h.MSN && q.cfg.Confirm {
		q.confirmed(pos)
	}
}

// readOf finds the outstanding Read whose request had an MSN. Linux's siw gives
// back another MSN; if no Read has it, the oldest is meant.
func (q *Machine) readOf(msn uint32) (oldest uint64, ok bool) {
	for pos := q.sq.Head(); pos < q.sq.next; pos++ {
		e := q.sq.At(pos)
		switch {
		case e.phase != phaseReading:
			continue
		case msn-e.msn < e.sinks():
			return pos, true
		case !ok:
			oldest, ok = pos, true
		}
	}
	return oldest, ok
}
