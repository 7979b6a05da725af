package engine

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
)

// Requests that the peer confirms.
//
// A Send or a Write completes when the LLP has taken it, of which RFC 5041 asks no more, and whether the peer has
// carried it out is for the programs to tell each other. On InfiniBand and RoCE it completes when the peer has
// acknowledged it, and fails itself if the peer cannot carry it out; programs that were written for those count on
// both. With Config.Confirm an empty RDMA Read goes after such requests, and they complete with its response:
//
// RFC 5040, section 5.5, rule 12: RDMA Read Requests "MUST NOT start processing at the Remote Peer until they have
// been Delivered to RDMAP by DDP", and RFC 5041, section 5.4: a message is delivered when "each preceding DDP Message
// has been Delivered to the ULP". [P40] [D27]
//
// The peer needs to know nothing of it: an empty Read needs no memory and no rights. It counts in ORD and IRD as any
// other. One is outstanding at a time, and stands for all that was sent before it; a Read or an Atomic Operation of
// the consumer's tells as much.
//
// A peer that has closed its half answers no Reads: what was asked for by then is flushed, and all after it. If
// nothing was, what is sent after that completes as without Confirm.

// confirm is how far the peer has confirmed the Send Queue, by positions in it.
type confirm struct {
	last   uint64 // after the last request built that is to be confirmed
	asked  uint64 // what the responses that are outstanding will tell of ends here
	known  uint64 // the peer has carried out all before
	end    uint64 // stream offset after the last Read that asks
	asking bool   // an empty Read is outstanding
	lost   bool   // a request was flushed that the peer had not confirmed: none after it succeeds
}

// confirmRead marks the position of a Read that asks, which is that up to which it does.
const confirmRead = 1 << 63

// What is sent at most before it is asked for, while more can be sent.
const (
	confirmRequests = 64
	confirmBytes    = 256 << 10
)

// confirms reports whether the peer can be asked to confirm requests.
func (q *Machine) confirms() bool { return q.cfg.Confirm && q.ORD > 0 && !q.peerEnded() }

// AwaitsAnswer reports whether requests that the peer does not answer itself wait for an answer: to one before them, or
// to what confirms them.
func (q *Machine) AwaitsAnswer() bool { return q.orq.Len() > 0 || q.confirms() }

// awaitsConfirmation reports whether the entry at a position waits for the peer to confirm it: with one that has
// closed its half only what it was asked for before. After a Terminate nobody carries out the rest: it waits to be
// flushed.
func (q *Machine) awaitsConfirmation(pos uint64) bool {
	c := &q.confirm
	return q.cfg.Confirm && q.ORD > 0 && pos >= c.known && (pos < c.asked || !q.peerEnded() || q.state == Terminate)
}

// toConfirm notes that the entry before the next is built.
func (q *Machine) toConfirm() { q.confirm.last = q.sq.next }

// mayAsk reports whether an empty Read can be sent, and would tell something.
func (q *Machine) mayAsk() bool {
	c := &q.confirm
	return c.last > c.asked && !c.asking && q.confirms() && !q.orq.Full()
}

// mustAsk reports that so much was sent that it is not put off any longer.
func (q *Machine) mustAsk() bool {
	c := &q.confirm
	return c.last-c.asked >= confirmRequests || q.txBytes()-c.end >= confirmBytes
}

// askConfirmation sends the empty Read.
func (q *Machine) askConfirmation(g *Gather) bool {
	if !q.mayAsk() {
		return false
	}
	c := &q.confirm
	q.requestRead(g, rdmap.ReadRequest{SinkSTag: rtrSTag, SrcSTag: rtrSTag}, confirmRead|c.last)
	c.asked, c.end, c.asking = c.last, q.txBytes(), true
	g.drain = true
	return true
}

// asks notes that the response to the next entry, a Read or an Atomic Operation, will confirm all before it.
func (q *Machine) asks() { q.confirm.asked = max(q.confirm.asked, q.sq.next) }

// confirmed completes what the peer has carried out: all before a position.
func (q *Machine) confirmed(pos uint64) {
	q.confirm.known = max(q.confirm.known, pos)
	q.retire()
}

// asksAlone reports whether no response is outstanding but that to an empty Read of our own.
func (q *Machine) asksAlone() bool { return q.confirm.asking && q.orq.Len() == 1 }

// unconfirmed gives up what the peer was asked for, and has not answered when it closed its half in order: nobody knows
// whether it was carried out. The connection ends in order.
func (q *Machine) unconfirmed() {
	if !q.asksAlone() {
		return
	}
	_, _ = q.orq.Pop()
	q.confirm.asking = false
	for pos := q.sq.Head(); pos < q.confirm.asked; pos++ {
		if e := q.sq.At(pos); e.phase == phaseBuilt {
			e.phase, e.status = phaseDone, StatusFlushed
			q.confirm.lost = true
		}
	}
	q.retire()
}

// blameRequest completes the Send or Write that the peer names as the one in error, and before it those that the peer
// has carried out. If it names none, as of an error of its own, it is the oldest that it has not confirmed.
func (q *Machine) blameRequest(c rdmap.Code, h *ddp.Header) {
	if !q.cfg.Confirm {
		return
	}
	for pos := q.sq.Head(); pos < q.sq.Tail(); pos++ {
		if e := q.sq.At(pos); e.sentAs(h) {
			q.confirmed(pos)
			e.status = remoteStatus(c)
			return
		}
	}
}

// sentAs reports whether a segment of the entry may have had the header; any may, if there is none.
func (e *sendEntry) sentAs(h *ddp.Header) bool {
	switch {
	case e.phase != phaseSending && e.phase != phaseBuilt || e.status != StatusSuccess:
		return false
	case h == nil:
		return true
	case !h.Tagged:
		return h.QN == rdmap.QNSend && e.Op != OpWrite &&
			(e.Op != OpWriteImm || e.phase == phaseBuilt) && h.MSN == e.msn
	case e.Op != OpWrite && e.Op != OpWriteImm:
		return false
	}
	return h.STag == e.RemoteSTag && h.TO-e.RemoteTO < max(uint64(e.length), 1)
}

// remoteStatus is what a request completes with that the peer has refused with a code.
func remoteStatus(c rdmap.Code) Status {
	switch {
	case c.Layer() == rdmap.LayerRDMAP && c.EType() == rdmap.ETypeRemoteProtection,
		c.Layer() == rdmap.LayerDDP && c.EType() == rdmap.ETypeTaggedBuffer:
		return StatusRemoteAccess
	}
	return StatusRemoteOperation
}
