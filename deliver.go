package iwarp

import "github.com/goiwarp/iwarp/internal/engine"

// deliver hands completions to the CQs, or to the one-call form that waits for
// one, and notices to the RNIC.
func (qp *QP) deliver() {
	done, notices := qp.eng.Drain()
	for rest := done; len(rest) > 0; {
		rest = rest[qp.deliverRun(rest):]
	}
	clear(done)
	for i := range notices {
		qp.notice(&notices[i])
		notices[i] = engine.Notice{}
	}
}

// deliverRun delivers the first completion and those after it that go the same way, and
// returns how many. A CQ is locked once for all of them, and wakes its consumer once.
func (qp *QP) deliverRun(done []engine.Completion) int {
	cq := qp.cqOf(&done[0])
	if cq == nil {
		var wc WC
		qp.setWC(&wc, &done[0])
		done[0].Cookie.(*call).complete(wc)
		return 1
	}
	n := 1
	for n < len(done) && qp.cqOf(&done[n]) == cq {
		n++
	}
	cq.push(qp, done[:n])
	return n
}

// cqOf returns where a completion goes: nil for that of a one-call form.
func (qp *QP) cqOf(c *engine.Completion) *CQ {
	switch {
	case c.Cookie != nil:
		return nil
	case c.Op == engine.OpReceive:
		return qp.recvCQ
	}
	return qp.sendCQ
}

// setWC sets what a consumer is told of a completion, in place: a processor that copies in wide words what was just stored in narrow ones
// waits for all its stores.
func (qp *QP) setWC(w *WC, c *engine.Completion) {
	w.ID, w.Status, w.Op, w.Length, w.QP = c.ID, Status(c.Status), Op(c.Op), int(c.Length), qp
	w.Original, w.HasImmediate, w.Immediate, w.Written = c.Original, c.HasImmediate, c.Immediate, int(c.Written)
	w.Prefix, w.Invalidated, w.Solicited = c.Prefix, c.Invalidated, c.Solicited
	if w.Status != StatusSuccess {
		w.cause = publicError(qp.eng.Cause())
	}
	if w.Op == OpRecv && qp.cfg.SRQ != nil {
		w.connection = qp.srqHeld.connection()
	}
}

// unpolled counts completions that are about to be found in a CQ. An SRQ has counted its
// receives already.
func (qp *QP) unpolled(done []engine.Completion) {
	var recvs int64
	for i := range done {
		if done[i].Op == engine.OpReceive {
			recvs++
		}
	}
	if sends := int64(len(done)) - recvs; sends > 0 {
		qp.unpolledSends.Add(sends)
	}
	if recvs > 0 && qp.cfg.SRQ == nil {
		qp.unpolledRecvs.Add(recvs)
	}
}

var noticeEvents = [...]EventKind{
	engine.NoticeTerminateReceived: EventTerminateReceived,
	engine.NoticeTerminateSent:     EventTerminateSent,
	engine.NoticeConnectionLost:    EventConnectionLost,
	engine.NoticeBadClose:          EventBadClose,
	engine.NoticeHalfClosed:        EventHalfClosed,
	engine.NoticeCloseComplete:     EventCloseComplete,
	engine.NoticeNudge:             0,
}

// notice passes a notice on, or keeps it until the connection is closed: see farewell.
func (qp *QP) notice(n *engine.Notice) {
	if !qp.closedLLP && qp.farewell.keeps(n, qp.link) {
		return
	}
	if qp.closingLLP && n.Kind == engine.NoticeState && n.From == engine.Idle {
		n.From = engine.Closing // of which nobody was told
	}
	qp.logNotice(n)
	if k := noticeEvents[n.Kind]; k != 0 {
		qp.event(k, publicError(n.Err))
	}
	qp.fatal(n)
	qp.lastWQE(n)
}
