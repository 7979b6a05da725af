package iwarp

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/engine"
)

// MaxSGE is how many scatter/gather elements a work request may have.
const MaxSGE = engine.MaxSGE

// Op is an operation.
type Op uint8

const (
	// OpSend sends a message to a receive that the peer has posted.
	OpSend = Op(engine.OpSend)
	// OpWrite places octets in the peer's memory.
	OpWrite = Op(engine.OpWrite)
	// OpRead fetches octets from the peer's memory.
	OpRead = Op(engine.OpRead)
	// OpLocalInvalidate makes an STag of ours unusable.
	OpLocalInvalidate = Op(engine.OpLocalInvalidate)
	// OpRecv is the completion of a receive.
	OpRecv = Op(engine.OpReceive)
)

var opNames = [...]string{"Send", "Write", "Read", "Local Invalidate", "Recv"}

// String names the operation.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// Status is the outcome of a work request.
type Status uint8

const (
	// StatusSuccess: done. For a Send or Write that the local TCP has taken it;
	// for a Read that the octets are here.
	StatusSuccess = Status(engine.StatusSuccess)
	// StatusFlushed: not carried out, or not known to be, as the connection ended.
	StatusFlushed = Status(engine.StatusFlushed)
	// StatusLocalLength: the message was longer than the receive.
	StatusLocalLength = Status(engine.StatusLocalLength)
	// StatusLocalProtection: an SGE is out of bounds, or its region is not valid
	// or of another Protection Domain.
	StatusLocalProtection = Status(engine.StatusLocalProtection)
	// StatusLocalAccess: an SGE's region lacks LocalWrite.
	StatusLocalAccess = Status(engine.StatusLocalAccess)
	// StatusRemoteAccess: the peer refused a Read (STag, bounds or rights).
	StatusRemoteAccess = Status(engine.StatusRemoteAccess)
	// StatusRemoteOperation: the peer could not carry out a Read.
	StatusRemoteOperation = Status(engine.StatusRemoteOperation)
	// StatusRemoteInvalidate: the peer's Send asked for an invalidation that is
	// not allowed.
	StatusRemoteInvalidate = Status(engine.StatusRemoteInvalidate)
	// StatusNoReadResources: a Read on a QP with an ORD of zero.
	StatusNoReadResources = Status(engine.StatusNoReadResources)
	// StatusInvalidateFailed: a local invalidation that is not allowed.
	StatusInvalidateFailed = Status(engine.StatusInvalidateFailed)
)

// String describes the status.
func (s Status) String() string { return engine.Status(s).String() }

// SendWR is a request for a Send Queue.
type SendWR struct {
	// ID comes back in the completion.
	ID uint64
	Op Op
	// SGL is the memory to send from, or of an OpRead the one place to read to.
	// It is copied; at most MaxSGE elements.
	SGL []SGE
	// Inline is sent instead of an SGL. It is copied: the slice may be used again
	// when PostSend returns. At most the QP's MaxInline octets.
	Inline []byte
	// Remote is the peer's memory, for OpWrite and OpRead.
	Remote Remote
	// Invalidate, if it is not 0, is an STag of the peer that an OpSend
	// invalidates when it is delivered; for OpLocalInvalidate see Target.
	Invalidate uint32
	// Target is the region that an OpLocalInvalidate invalidates, or an OpRead when
	// it is complete: then it must be its sink.
	Target *MR
	// Unsignaled: no completion if it succeeds.
	Unsignaled bool
	// Solicited: the peer's completion wakes up who waits for solicited ones.
	Solicited bool
	// Fence: not begun before all earlier Reads are complete.
	Fence bool
}

// RecvWR is a request for a Receive Queue.
type RecvWR struct {
	// ID comes back in the completion.
	ID uint64
	// SGL is the memory to receive into, filled in order; at most MaxSGE elements.
	SGL []SGE
}

// WC is a work completion.
type WC struct {
	ID     uint64
	Status Status
	Op     Op
	// Length is the octets that a successful request has moved.
	Length int
	// Invalidated is the STag of ours that the peer's Send has invalidated; 0 if
	// none.
	Invalidated uint32
	// Solicited: the peer's Send asked for attention.
	Solicited bool
	QP        *QP
}

// Err returns nil for StatusSuccess, and a *WCError otherwise.
func (w *WC) Err() error {
	if w.Status == StatusSuccess {
		return nil
	}
	e := &WCError{Status: w.Status, Op: w.Op, ID: w.ID}
	if w.QP != nil {
		e.Cause = w.QP.cause()
	}
	return e
}

// engine translates the request; inline is a copy of w.Inline.
func (w *SendWR) engine(dst *engine.SendWork, inline []byte) error {
	switch {
	case len(w.SGL) > MaxSGE || w.Op == OpRead && len(w.SGL) > 1:
		return fmt.Errorf("%w: %d scatter/gather elements", ErrInvalid, len(w.SGL))
	case len(w.SGL) > 0 && w.Inline != nil || w.Op == OpRead && w.Inline != nil:
		return fmt.Errorf("%w: inline data and scatter/gather elements, or a Read into inline data", ErrInvalid)
	case w.Op > OpLocalInvalidate:
		return fmt.Errorf("%w: %v cannot be posted to a Send Queue", ErrInvalid, w.Op)
	case w.Op == OpLocalInvalidate && w.Target == nil:
		return fmt.Errorf("%w: no region to invalidate", ErrInvalid)
	}
	*dst = engine.SendWork{
		ID: w.ID, Op: engine.Op(w.Op), NumSGE: len(w.SGL), Inline: inline,
		RemoteSTag: w.Remote.STag, RemoteTO: w.Remote.TO,
		HasInvalidate: w.Op == OpSend && w.Invalidate != 0, Invalidate: w.Invalidate,
		InvalidateLocal: w.Op == OpRead && w.Target != nil,
		Unsignaled:      w.Unsignaled, Solicited: w.Solicited, Fence: w.Fence,
	}
	if w.Target != nil {
		dst.Target = w.Target.region
	}
	return fillSGL(&dst.SGL, w.SGL)
}

func (w *RecvWR) engine(dst *engine.RecvWork) error {
	if len(w.SGL) > MaxSGE {
		return fmt.Errorf("%w: %d scatter/gather elements", ErrInvalid, len(w.SGL))
	}
	*dst = engine.RecvWork{ID: w.ID, NumSGE: len(w.SGL)}
	return fillSGL(&dst.SGL, w.SGL)
}

func fillSGL(dst *[MaxSGE]engine.SGE, sgl []SGE) error {
	for i := range sgl {
		if sgl[i].Length < 0 || sgl[i].Offset < 0 {
			return fmt.Errorf("%w: a scatter/gather element of %d octets at offset %d", ErrInvalid, sgl[i].Length, sgl[i].Offset)
		}
		dst[i] = sgl[i].engine()
	}
	return nil
}
