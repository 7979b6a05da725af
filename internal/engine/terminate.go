package engine

import (
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
)

// onTerminate acts on the peer's Terminate. It is not answered with another:
// what was queued is dropped, the connection closed.
func (q *QP) onTerminate(s *ddp.Segment) {
	t, err := rdmap.ParseTerminate(s.Payload)
	f := &Failure{Code: t.Code, Peer: true, Layout: t.Layout, Err: err}
	if err != nil {
		f.Reason = "and its Terminate cannot be read: " + err.Error()
	}
	if t.Layout == rdmap.LayoutSIW {
		f.Reason = "laid out as Linux's siw does, Layer and EType swapped"
	}
	if h, ok := terminatedHeader(&t); ok {
		f.Op, f.HasOp = rdmap.OpcodeOf(&h), true
		q.blameRead(&t, &h)
	}
	count(&q.stats.TerminatesRecv, t.Code)
	q.cause = f
	q.nudgeAt = time.Time{}
	q.notice(Notice{Kind: NoticeTerminateReceived, Err: f})
	q.setState(Terminate)
}

// terminatedHeader reads the DDP header that a Terminate gives back.
func terminatedHeader(t *rdmap.Terminate) (ddp.Header, bool) {
	s, err := ddp.Parse(t.DDPHeader)
	return s.Header, err == nil
}

// blameRead completes the Read that the peer names as the one in error, so that
// its poster learns more than that it was flushed.
func (q *QP) blameRead(t *rdmap.Terminate, h *ddp.Header) {
	if h.Tagged || h.QN != rdmap.QNRead {
		return
	}
	for pos := q.sq.head; pos < q.sq.next; pos++ {
		e := q.sq.at(pos)
		if e.phase == phaseReading && e.msn == h.MSN {
			e.status = StatusRemoteOperation
			if t.Code.Layer() == rdmap.LayerRDMAP && t.Code.EType() == rdmap.ETypeRemoteProtection {
				e.status = StatusRemoteAccess
			}
			return
		}
	}
}
