package iwarp

import (
	"cmp"
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
)

// Op is an operation.
type Op uint8

const (
	// OpSend sends a message to a receive that the peer has posted.
	OpSend Op = Op(engine.OpSend)
	// OpWrite places bytes in the peer's memory.
	OpWrite Op = Op(engine.OpWrite)
	// OpRead fetches bytes from the peer's memory.
	OpRead Op = Op(engine.OpRead)
	// OpLocalInvalidate makes an STag of ours unusable.
	OpLocalInvalidate Op = Op(engine.OpLocalInvalidate)
	// OpRecv is the completion of a receive.
	OpRecv Op = Op(engine.OpReceive)
	// OpFetchAdd adds to a word of 8 bytes in the peer's memory, and fetches what it was.
	OpFetchAdd Op = Op(engine.OpFetchAdd)
	// OpCompareSwap replaces a word of 8 bytes in the peer's memory if it has a certain
	// value, and fetches what it was.
	OpCompareSwap Op = Op(engine.OpCompareSwap)
	// OpWriteImm is an OpWrite and an OpImmediate after it, as one request.
	OpWriteImm Op = Op(engine.OpWriteImm)
	// OpImmediate completes a receive of the peer's with 8 bytes of Immediate Data, which are
	// in the completion, and not in the receive's memory.
	OpImmediate Op = Op(engine.OpImmediate)
	// OpBindMW binds a Memory Window.
	OpBindMW Op = Op(engine.OpBind)
	// OpFastRegister registers memory in an MR of PD.AllocMR.
	OpFastRegister Op = Op(engine.OpFastRegister)
)

// String names the operation.
func (o Op) String() string { return engine.Op(o).String() }

// call names the method of a QP that posts the operation and waits for it.
func (o Op) call() string { return cmp.Or(engine.Op(o).Info().Call, "send") }

// Status is the outcome of a work request.
type Status uint8

const (
	// StatusSuccess: done. For a Send or Write this means that what is below (TCP, or
	// SCTP) has taken it; for a Read, that the bytes are here.
	StatusSuccess Status = Status(engine.StatusSuccess)
	// StatusFlushed: the connection ended before the request was carried out, or was
	// known to be.
	StatusFlushed Status = Status(engine.StatusFlushed)
	// StatusLocalLength: the message was longer than the receive.
	StatusLocalLength Status = Status(engine.StatusLocalLength)
	// StatusLocalProtection: an SGE is out of bounds, or its region is invalid or
	// belongs to another Protection Domain.
	StatusLocalProtection Status = Status(engine.StatusLocalProtection)
	// StatusLocalAccess: an SGE's region lacks LocalWrite.
	StatusLocalAccess Status = Status(engine.StatusLocalAccess)
	// StatusRemoteAccess: the peer refused a Read or an Atomic Operation (STag, bounds or rights).
	StatusRemoteAccess Status = Status(engine.StatusRemoteAccess)
	// StatusRemoteOperation: the peer could not carry out a Read or an Atomic Operation.
	StatusRemoteOperation Status = Status(engine.StatusRemoteOperation)
	// StatusRemoteInvalidate: the peer's Send asked for an invalidation that is
	// not allowed.
	StatusRemoteInvalidate Status = Status(engine.StatusRemoteInvalidate)
	// StatusNoReadResources: a Read or an Atomic Operation that was posted in StateIdle, on a QP whose connection
	// then has an ORD of 0.
	StatusNoReadResources Status = Status(engine.StatusNoReadResources)
	// StatusInvalidateFailed: a local invalidation that is not allowed.
	StatusInvalidateFailed Status = Status(engine.StatusInvalidateFailed)
	// StatusUnsupported: an operation of RFC 7306 that was posted in StateIdle, on a QP whose connection then has
	// version 0; or a Send with a Prefix, where Sends then have none.
	StatusUnsupported Status = Status(engine.StatusUnsupported)
	// StatusBindFailed: a Memory Window that cannot be bound, as it is bound already, or the
	// region does not allow it.
	StatusBindFailed Status = Status(engine.StatusBindFailed)
	// StatusRegisterFailed: an MR whose STag is valid.
	StatusRegisterFailed Status = Status(engine.StatusRegisterFailed)
)

// String describes the status.
func (s Status) String() string { return engine.Status(s).String() }

// SendWR is a request for a Send Queue.
type SendWR struct {
	// ID comes back in the completion.
	ID uint64
	// Op is OpSend, if it is left out.
	Op Op
	// SGL is the memory to send from, or for an OpRead to read into: at most MaxSGE elements. An
	// OpRead sends a Read Request for each of them that has bytes, and each counts toward the ORD;
	// with a Target it has one element. For an OpFetchAdd and OpCompareSwap the SGL is either empty
	// or one element of AtomicLen bytes, into which the result is written as an integer in the
	// byte order of this machine. The slice itself is copied.
	SGL []SGE
	// Inline is sent instead of an SGL: at most the QP's MaxInline bytes. It is
	// copied, so the slice may be reused when PostSend returns.
	Inline []byte
	// Remote is the peer's memory, for OpWrite, OpWriteImm, OpRead, OpFetchAdd and
	// OpCompareSwap. Any other operation refuses one that is not zero.
	Remote Remote
	// Invalidate, if it is not 0, is an STag of the peer that an OpSend
	// invalidates when it is delivered, if the peer has offered it for that. For an
	// OpLocalInvalidate, if it is not 0, it is the STag that Target or Window has to have when the
	// request is carried out: it fails if the key was changed meanwhile.
	Invalidate uint32
	// Target is the region that an OpLocalInvalidate invalidates, or an OpRead when
	// it is complete: then it must be its sink. It is of the QP's Protection Domain, not
	// deregistered, and not bound to another QP: any other is refused when it is posted. For an
	// OpFastRegister it is the MR in which Register is registered.
	Target *MR
	// Window is what an OpBindMW binds, or what an OpLocalInvalidate without a Target
	// invalidates, and Bind what an OpBindMW binds it to.
	Window *MW
	Bind   *Binding
	// Register is what an OpFastRegister registers.
	Register *Registration
	// Add is what an OpFetchAdd adds.
	Add uint64
	// Compare is the value with which an OpCompareSwap compares, and Swap that by which it
	// replaces.
	Compare, Swap uint64
	// Masks narrow an OpFetchAdd or OpCompareSwap to certain bits; nil means all 64.
	Masks *Masks
	// Immediate is the Immediate Data of an OpWriteImm or OpImmediate, in network order on the wire. What libibverbs
	// calls imm_data, four bytes, is the upper half.
	Immediate uint64
	// Prefix is sent in front of an OpSend's bytes, in network order, if those of the QP have one, as the emulation of
	// libibverbs asks for. Otherwise it is 0.
	Prefix uint64
	// Unsignaled asks for no completion if the request succeeds.
	Unsignaled bool
	// Solicited has the peer's completion wake up those who wait for solicited ones: of an OpSend,
	// OpWriteImm or OpImmediate.
	Solicited bool
	// Fence holds the request back until all earlier Reads and Atomic Operations are complete; an
	// OpLocalInvalidate, OpBindMW or OpFastRegister until all earlier requests are.
	Fence bool
}

// RecvWR is a request for a Receive Queue.
type RecvWR struct {
	// ID comes back in the completion.
	ID uint64
	// SGL is the memory to receive into, filled in order; at most MaxSGE elements.
	SGL []SGE
}

// A WC is a work completion. The request may have failed: Err says so.
type WC struct {
	ID     uint64
	Status Status
	Op     Op
	// Length is how many bytes a successful request has moved. Of a receive it is the length
	// of the message in its memory: 0 if HasImmediate.
	Length int
	// Original is what was in the peer's memory before an OpFetchAdd or OpCompareSwap.
	Original uint64
	// HasImmediate tells that a receive was completed by Immediate Data, and not by a Send.
	HasImmediate bool
	// Immediate is the Immediate Data, and Written the length of the RDMA Write that the peer sent before them and that
	// no other message has announced: for a Write with Immediate, its own.
	Immediate uint64
	Written   int
	// Prefix is what the peer's Send began with, if Sends on the connection do.
	Prefix uint64
	// Invalidated is our STag that the peer's Send has invalidated, or 0.
	Invalidated uint32
	// Solicited tells that the peer's message asked for attention.
	Solicited bool
	QP        *QP

	cause      error  // why the connection ended, of a request that did not succeed
	connection uint32 // of the QP's, by number, of a receive of an SRQ
}

// Err returns nil for StatusSuccess, and a *WCError otherwise, which says why the
// connection ended if it did.
func (w WC) Err() error {
	if w.Status == StatusSuccess {
		return nil
	}
	return &WCError{Status: w.Status, Op: w.Op, ID: w.ID, Cause: w.cause}
}

// check judges a request as it is written, before anything is done about it: its form by the table of operations, then
// what it refers to.
func (w *SendWR) check(qp *QP) error {
	if w == nil {
		return errNoRequest
	}
	has := w.parts()
	shape := engine.Shape{Op: engine.Op(w.Op), Has: has, SGEs: len(w.SGL), Length: w.length(), Inline: len(w.Inline)}
	if err := shape.Check(qp.cfg.MaxInline); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if has&engine.PartsOfMemory != 0 || w.Op == OpLocalInvalidate {
		if err := w.checkMemory(qp); err != nil {
			return err
		}
	}
	return validatorFor(qp).checkSGL(w.SGL, w.Op.fetches())
}

// checkMemory judges the regions and windows that a request names beside its SGL.
func (w *SendWR) checkMemory(qp *QP) error {
	switch {
	case w.Op == OpLocalInvalidate && (w.Target == nil) == (w.Window == nil):
		return fmt.Errorf("%w: a Local Invalidate is of a Target, or of a Window: name one of them", ErrInvalid)
	case w.Op == OpRead && w.Target != nil && len(w.SGL) > 0 && w.SGL[0].MR != w.Target:
		return fmt.Errorf("%w: Target of an OpRead that is not its sink", ErrInvalid)
	}
	if err := w.checkTarget(qp); err != nil {
		return err
	}
	return cmp.Or(w.checkWindow(qp), w.checkRegister(qp))
}

// parts returns which fields are set.
func (w *SendWR) parts() engine.Parts {
	p := given(w.Inline != nil, engine.PartInline) |
		given(w.Solicited, engine.PartSolicited) |
		given(w.Remote != Remote{}, engine.PartRemote)
	if w.Prefix|w.Immediate|w.Add|w.Compare|w.Swap|uint64(w.Invalidate) == 0 &&
		w.Target == nil && w.Window == nil && w.Masks == nil && w.Bind == nil && w.Register == nil {
		return p // as most requests
	}
	return p | w.rareParts()
}

func (w *SendWR) rareParts() engine.Parts {
	return given(w.Prefix != 0, engine.PartPrefix) |
		given(w.Invalidate != 0, engine.PartInvalidate) |
		given(w.Target != nil, engine.PartTarget) |
		given(w.Immediate != 0, engine.PartImmediate) |
		given(w.Add != 0, engine.PartAdd) |
		given(w.Compare != 0 || w.Swap != 0, engine.PartSwap) |
		given(w.Masks != nil, engine.PartMasks) |
		given(w.Bind != nil, engine.PartBind) |
		given(w.Window != nil, engine.PartWindow) |
		given(w.Register != nil, engine.PartRegister)
}

func given(set bool, p engine.Parts) engine.Parts {
	if set {
		return p
	}
	return 0
}

// checkTarget refuses a region that the QP may not invalidate.
func (w *SendWR) checkTarget(qp *QP) error {
	m := w.Target
	if m == nil {
		return nil
	}
	if err := m.made(); err != nil {
		return err
	}
	if m.pd.rnic != qp.rnic {
		return fmt.Errorf("%w: the region to invalidate is of another RNIC", ErrInvalid)
	}
	d := memory.Domain{Table: qp.rnic.table, PD: qp.pd.num}
	switch d.CheckInvalidate(m.region) {
	case memory.None:
	case memory.OtherDomain:
		return fmt.Errorf("%w: the region to invalidate is of another Protection Domain than the QP", ErrInvalid)
	default:
		return fmt.Errorf("%w: the region to invalidate was deregistered: its STag is invalid already", ErrInvalid)
	}
	if m.bound != 0 && m.bound != qp.num {
		return fmt.Errorf("%w: the region to invalidate is bound to another QP (number %d): post the request to that",
			ErrInvalid, m.bound)
	}
	return nil
}

// errNoRequest is the error of a nil request.
var errNoRequest = fmt.Errorf("%w: no request (nil)", ErrInvalid)

// fetches reports whether the SGL is memory that the operation writes to.
func (o Op) fetches() bool { return engine.Op(o).Info().Fetches }

// length adds up the SGL, in bytes. An element of a negative length counts nothing: it is refused as such.
func (w *SendWR) length() (sum uint64) {
	for i := range w.SGL {
		n := uint64(max(w.SGL[i].Length, 0))
		if sum += n; sum < n {
			return math.MaxUint64
		}
	}
	return sum
}

// size is how many bytes of the consumer's the request sends.
func (w *SendWR) size() int {
	if w.Op.fetches() {
		return len(w.Inline)
	}
	return len(w.Inline) + int(min(w.length(), math.MaxInt/2)) // as of lengths that no memory has
}

// engine translates the request, which was checked; dst is zero, and inline a copy of w.Inline. What an OpBindMW or
// OpFastRegister refers to is for keepLocal.
func (w *SendWR) engine(dst *engine.SendWork, inline []byte) {
	dst.ID, dst.Op, dst.Inline = w.ID, engine.Op(w.Op), inline
	dst.RemoteSTag, dst.RemoteTO = w.Remote.STag, w.Remote.TO
	dst.HasInvalidate, dst.Invalidate = w.Op == OpSend && w.Invalidate != 0, w.Invalidate
	dst.InvalidateLocal = w.Op == OpRead && w.Target != nil
	dst.Immediate, dst.Prefix = w.Immediate, w.Prefix
	dst.Unsignaled, dst.Solicited, dst.Fence = w.Unsignaled, w.Solicited, w.Fence
	if w.Op.atomic() {
		dst.Atomic = w.atomicWork()
	}
	switch {
	case w.Op == OpFastRegister || w.Op == OpBindMW:
	case w.Target != nil:
		dst.Target = w.Target.region
	case w.Window != nil:
		dst.Target = w.Window.window
	}
	fillSGL(&dst.SGL, w.SGL)
}

// engine checks and translates the request, for a queue whose elements are judged so; dst is zero.
func (w *RecvWR) engine(dst *engine.RecvWork, elements sgeValidator) error {
	switch {
	case w == nil:
		return errNoRequest
	case len(w.SGL) > MaxSGE:
		return fmt.Errorf("%w: %d scatter/gather elements, at most %d can be given", ErrInvalid, len(w.SGL), MaxSGE)
	}
	if err := elements.checkSGL(w.SGL, true); err != nil {
		return err
	}
	dst.ID = w.ID
	fillSGL(&dst.SGL, w.SGL)
	return nil
}

func fillSGL(dst *engine.SGL, sgl []SGE) {
	for i, to := 0, dst.Make(len(sgl)); i < len(sgl); i++ {
		to[i] = sgl[i].engine()
	}
}
