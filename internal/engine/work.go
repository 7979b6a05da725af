package engine

import (
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// MaxMessage is the longest message, in bytes: DDP lengths have 32 bits
// (RFC 5041, section 3).
const MaxMessage = 1<<32 - 1

// SendWork is one entry of a Send Queue.
type SendWork struct {
	ID            uint64
	Op            Op
	SGL           SGL
	Inline        []byte // copied when posted; instead of the SGL
	RemoteSTag    uint32
	RemoteTO      uint64
	HasInvalidate bool
	Invalidate    uint32 // Send with Invalidate: the peer's STag; OpLocalInvalidate: ours, if it is not 0
	// InvalidateLocal makes a Read invalidate the STag of its sink before it completes.
	InvalidateLocal bool
	Target          memory.Target // OpLocalInvalidate
	Bind            *Bind         // OpBind; copied when posted
	Register        *Register     // OpFastRegister; copied when posted
	Atomic          Atomic        // OpFetchAdd, OpCompareSwap; the result is for the SGL, if there is one
	Immediate       uint64        // OpWriteImm, OpImmediate
	Prefix          uint64        // OpSend: see prefix.go
	Unsignaled      bool
	Solicited       bool
	// waits for all earlier Reads and Atomic Operations; of local operations: for all earlier requests
	Fence  bool
	Cookie any // handed back in the completion
}

// Bind says what a window is bound to.
type Bind struct {
	Window *memory.Window
	memory.Binding
}

// Register says what a region is registered as.
type Register struct {
	Region *memory.Region
	memory.Registration
}

// Atomic holds what an Atomic Operation works with, as in [rdmap.AtomicRequest].
type Atomic struct {
	Data, Mask           uint64 // Add or Swap; Data is the result when it is complete
	Compare, CompareMask uint64 // OpCompareSwap
}

func (a *Atomic) request(op Op) rdmap.AtomicRequest {
	if op == OpFetchAdd {
		return rdmap.FetchAdd(a.Data, a.Mask)
	}
	return rdmap.CmpSwap(a.Compare, a.CompareMask, a.Data, a.Mask)
}

// RecvWork is one entry of a Receive Queue.
type RecvWork struct {
	ID     uint64
	SGL    SGL
	Cookie any
	prefix [prefixLen]byte // of the Send that it gets
	// It takes a message of any length, and forgets it: nobody has posted it.
	discards bool
}

// A ReceiveSource hands out receive work: a Shared Receive Queue.
type ReceiveSource interface {
	// Take moves the next entry to dst and reports whether there was one.
	Take(dst *RecvWork) bool
	// Refusal says, after Take found none, why.
	Refusal() string
	// Awaits reports, after Take found none, whether it may find one later; then it has QP.Ready called
	// when one was posted.
	Awaits() bool
}

// A Completion ends one work request.
type Completion struct {
	ID          uint64
	Op          Op
	Status      Status
	Length      uint32 // bytes received or read
	Invalidated uint32 // STag invalidated by the peer's Send
	HasInvalid  bool
	Solicited   bool
	// Immediate is the peer's Immediate Data, if HasImmediate, and Written how many bytes the
	// RDMA Write before it had.
	Immediate    uint64
	Written      uint32
	HasImmediate bool
	Prefix       uint64 // of the peer's Send
	Original     uint64 // of an Atomic Operation: what was in the peer's memory before
	Cookie       any
}

// Status is the outcome of a work request.
type Status uint8

const (
	StatusSuccess Status = iota
	StatusFlushed
	StatusLocalLength
	StatusLocalProtection
	StatusLocalAccess
	StatusRemoteAccess
	StatusRemoteOperation
	StatusRemoteInvalidate
	StatusNoReadResources
	StatusInvalidateFailed
	StatusFatal
	StatusUnsupported
	StatusBindFailed
	StatusRegisterFailed
)

var statusNames = [...]string{
	"success", "flushed", "local length error", "local protection error", "local access error",
	"remote access error", "remote operation error", "remote invalidation error",
	"zero RDMA Read resources", "local invalidation failed", "fatal error",
	"operation not supported", "Memory Window not bound", "registration failed",
}

// String names the status.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown status"
}
