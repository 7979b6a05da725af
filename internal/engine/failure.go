package engine

import (
	"fmt"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A Failure ends a connection: an error found here, or one that the peer
// reported with a Terminate.
type Failure struct {
	Code   rdmap.Code
	Peer   bool         // the peer found it
	Op     rdmap.Opcode // of the message in error, if HasOp
	HasOp  bool
	Offset uint64 // of the FPDU in error in its half connection, bytes; with LayerMessages the segment's number
	Layer  Layer
	Reason string
	Layout rdmap.Layout // of a received Terminate
	Err    error        // the layer's own error
}

// Error says what was found, by whom and where.
func (f *Failure) Error() string {
	who := "found here"
	if f.Peer {
		who = "reported by the peer"
	}
	s := fmt.Sprintf("%v, %s", f.Code, who)
	if f.HasOp {
		s += ", in " + f.Op.WithArticle()
	}
	if !f.Peer {
		s += f.where()
	}
	if f.Reason != "" {
		s += ": " + f.Reason
	}
	return s
}

func (f *Failure) where() string {
	if f.Layer == LayerMessages {
		return fmt.Sprintf(" at segment %d", f.Offset)
	}
	return fmt.Sprintf(" at stream offset %d", f.Offset)
}

// Unwrap returns the layer's own error.
func (f *Failure) Unwrap() error { return f.Err }

// Codes for a refused access, by what was attempted. DDP has one code for an STag
// of another Protection Domain and for missing rights.
var (
	placeCodes = [...]rdmap.Code{
		memory.InvalidSTag:   rdmap.Code(ddp.CodeInvalidSTag),
		memory.Invalidated:   rdmap.Code(ddp.CodeInvalidSTag),
		memory.Bounds:        rdmap.Code(ddp.CodeBaseOrBounds),
		memory.NoRemoteWrite: rdmap.Code(ddp.CodeSTagNotAssociated),
		memory.NoLocalWrite:  rdmap.Code(ddp.CodeSTagNotAssociated),
		memory.Denied:        rdmap.Code(ddp.CodeSTagNotAssociated),
		memory.OtherDomain:   rdmap.Code(ddp.CodeSTagNotAssociated),
		memory.OtherStream:   rdmap.Code(ddp.CodeSTagNotAssociated),
		memory.Wrap:          rdmap.Code(ddp.CodeTOWrap),
		memory.Vanished:      rdmap.CodeLocalCatastrophic,
	}
	readCodes = [...]rdmap.Code{
		memory.InvalidSTag:  rdmap.CodeInvalidSTag,
		memory.Invalidated:  rdmap.CodeInvalidSTag,
		memory.Bounds:       rdmap.CodeBaseOrBounds,
		memory.NoRemoteRead: rdmap.CodeAccessRights,
		memory.Denied:       rdmap.Code(ddp.CodeInvalidQN), // RDMA verbs 6.4: Reads that are not enabled
		memory.OtherDomain:  rdmap.CodeSTagNotAssociated,
		memory.OtherStream:  rdmap.CodeSTagNotAssociated,
		memory.Wrap:         rdmap.CodeTOWrap,
		memory.Vanished:     rdmap.CodeLocalCatastrophic,
	}
	// RFC 7306 has none for Atomic Operations but that of an address that is not aligned, in section 8.2: the others
	// are those of the Read Requests, which go the same way. [A40]
	atomicCodes = [...]rdmap.Code{
		memory.InvalidSTag:    rdmap.CodeInvalidSTag,
		memory.Invalidated:    rdmap.CodeInvalidSTag,
		memory.Bounds:         rdmap.CodeBaseOrBounds,
		memory.NoRemoteAtomic: rdmap.CodeAccessRights,
		memory.Denied:         rdmap.Code(ddp.CodeInvalidQN),
		memory.Unaligned:      rdmap.CodeCatastrophicStream,
		memory.OtherDomain:    rdmap.CodeSTagNotAssociated,
		memory.OtherStream:    rdmap.CodeSTagNotAssociated,
		memory.Wrap:           rdmap.CodeTOWrap,
		memory.Vanished:       rdmap.CodeLocalCatastrophic,
	}
	// RFC 5040, section 5.3: an STag "not associated with the RDMAP Stream" is
	// reported as one that cannot be invalidated. [P35]
	invalidateCodes = [...]rdmap.Code{
		memory.InvalidSTag:  rdmap.CodeInvalidSTag,
		memory.Invalidated:  rdmap.CodeInvalidSTag,
		memory.OtherDomain:  rdmap.CodeProtectionCannotInvalidate,
		memory.OtherStream:  rdmap.CodeProtectionCannotInvalidate,
		memory.NeverOffered: rdmap.CodeAccessRights,
		memory.NotOffered:   rdmap.CodeProtectionCannotInvalidate,
		memory.Shared:       rdmap.CodeProtectionCannotInvalidate,
		memory.HasWindows:   rdmap.CodeProtectionCannotInvalidate,
		memory.FirstType:    rdmap.CodeProtectionCannotInvalidate,
	}
)

// fail acts on an error found here: the QP goes to Terminate and the Terminate
// is the last thing sent (RFC 5040, section 7.1). seg is the segment in error,
// or nil when there is none.
func (q *Machine) fail(f *Failure, seg *ddp.Segment) {
	if q.state != RTS {
		return
	}
	if seg != nil {
		_, f.Op = rdmap.ParseControl(seg.RsvdULP)
		f.HasOp = true
	}
	t := rdmap.TerminateFor(f.Code, seg)
	q.terminate(f, &t)
}

func (q *Machine) terminate(f *Failure, t *rdmap.Terminate) {
	f.Layer = q.Layer
	q.cause = f
	// RDMA verbs 6.2: when "the Terminate cannot be sent", as our half is closed, the connection is reset. And so it
	// is where RFC 5044, section 7.1.2, forbids a Terminate: the Responder MUST "receive and validate at least one
	// FPDU" before it sends any. A FIN would look like an orderly end. [Q11]
	if !q.mayTransmit() {
		q.abort(f)
		return
	}
	q.term = t
	count(&q.stats.TerminatesSent, f.Code)
	q.notice(Notice{Kind: NoticeTerminateSent, Err: f})
	q.setState(Terminate)
}

// mpaError acts on an error that the MPA reader reported.
//
// RFC 5044, section 8: "For Error codes 2 and 3, MPA MUST NOT close the TCP
// connection"; the other half connection carries the Terminate. [Q16]
func (q *Machine) mpaError(err *mpa.Error) {
	reason := err.Reason
	if err.Hint != "" {
		reason += "; " + err.Hint
	}
	if dislike := q.dislike(); dislike != "" && !q.heard && err.Code == mpa.CodeCRC {
		reason += "; or it is a Terminate without a CRC, as Linux's siw sends it: " + dislike
	}
	at := q.rxOffset()
	if err.Field != "" {
		reason = fmt.Sprintf("bad %s at byte %d of the FPDU: %s", err.Field, err.Offset-at, reason)
	}
	q.fail(&Failure{Code: rdmap.CodeOfMPA(err.Code), Offset: at, Reason: reason, Err: err}, nil)
}

// dislike says what about our Reply may be the reason of an Initiator that ends the
// connection in place of a first message, or is empty.
func (q *Machine) dislike() string {
	switch {
	case q.Role != mpa.RoleResponder || !q.Enhanced:
		return ""
	case q.PeerToPeer && q.OfferedRTR&q.RTR == 0:
		return fmt.Sprintf("the peer offers RTR by %v and we have %v", q.OfferedRTR, q.RTR)
	}
	return fmt.Sprintf("the peer asked for IRD %v and ORD %v and may not take our Reply's", q.PeerIRD, q.PeerORD)
}

// workError completes a Send Queue entry in error and ends the connection:
// "errors creating Writes/Sends/Reads: Terminate 0x0000, no headers" (RDMA
// verbs 6.4).
func (q *Machine) workError(e *sendEntry, s Status, reason string) {
	e.status, e.phase = s, phaseDone
	q.busy = sourceNone
	q.fail(&Failure{Code: rdmap.CodeLocalCatastrophic, Offset: q.txOffset(), Reason: reason}, nil)
}

// localStatus is what the consumer's own work completes with when its memory
// does not allow it.
func localStatus(f memory.Fault) Status {
	if f == memory.NoLocalWrite {
		return StatusLocalAccess
	}
	return StatusLocalProtection
}

// accessReason says why a peer may not reach n bytes of a region.
func accessReason(f memory.Fault, n uint32, to uint64, stag uint32) string {
	return fmt.Sprintf("%s: %s at %#x of STag %#08x", f.Mistake(), wording.Bytes(n), to, stag)
}

func invalidateReason(stag uint32, f memory.Fault) string {
	return fmt.Sprintf("%s: STag %#08x", f.Mistake(), stag)
}
