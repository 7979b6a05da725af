package iwarp

import (
	"context"
	"fmt"
	"math"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/wording"
)

// AtomicLen is how many octets an Atomic Operation works on: one word, at an address that is a
// multiple of it.
const AtomicLen = 8

// Masks narrow an Atomic Operation to bits of the word (RFC 7306, section 5.1).
type Masks struct {
	// Add is for an OpFetchAdd: each bit that is set is the most significant one of a field, and each field is added by
	// itself, without a carry from one into the next. 0 is one field of 64 bits.
	Add uint64
	// Compare and Swap are for an OpCompareSwap: the bits that are compared, and those that are replaced if these are
	// equal. With a Compare of 0 they always are.
	Compare, Swap uint64
}

// FetchAdd adds to the word of AtomicLen octets at a place in the peer's memory, which needs
// RemoteAtomic there, and returns what the word was before. The sum wraps at 64 bits.
//
// The word is an integer in the byte order of the peer's machine. No Atomic Operation of another
// QP of the peer's RNIC comes in between. Where the peer is this package, no operation of
// sync/atomic by its program does either: see docs/memory.md. A peer that does not know RFC 7306,
// as most RNICs do not, ends the connection; adding 0 is a way to find out.
func (qp *QP) FetchAdd(ctx context.Context, at Remote, add uint64) (old uint64, err error) {
	wc, err := qp.do(ctx, SGE{}, SendWR{Op: OpFetchAdd, Remote: at, Add: add})
	return wc.Original, err
}

// CompareSwap replaces the word at a place in the peer's memory by swap if it is compare, and
// returns what it was before: it was replaced if that is compare. All else is as with FetchAdd.
func (qp *QP) CompareSwap(ctx context.Context, at Remote, compare, swap uint64) (old uint64, err error) {
	wc, err := qp.do(ctx, SGE{}, SendWR{Op: OpCompareSwap, Remote: at, Compare: compare, Swap: swap})
	return wc.Original, err
}

// WriteImm is Write, and tells the peer: the Write completes one of its receives, with the
// Immediate Data in the completion, and the memory of the receive stays as it is. On the
// wire it is an RDMA Write and an Immediate Data message directly after it (RFC 7306, section
// 6). A peer that does not know RFC 7306 ends the connection.
func (qp *QP) WriteImm(ctx context.Context, s SGE, to Remote, immediate uint64) (int, error) {
	wc, err := qp.do(ctx, s, SendWR{Op: OpWriteImm, Remote: to, Immediate: immediate})
	return wc.Length, err
}

// atomic reports whether the operation is an Atomic Operation.
func (o Op) atomic() bool { return o == OpFetchAdd || o == OpCompareSwap }

// tells reports whether the operation completes a receive of the peer's.
func (o Op) tells() bool { return o == OpSend || o.immediate() }

// immediate reports whether the operation has Immediate Data.
func (o Op) immediate() bool { return o == OpWriteImm || o == OpImmediate }

// checkExtension refuses what an operation of RFC 7306 has not, or another has of it.
func (w *SendWR) checkExtension() error {
	switch {
	case (w.Op.atomic() || w.Op == OpImmediate) && w.Inline != nil:
		return fmt.Errorf("%w: inline data on %v, which has no payload", ErrInvalid, w.Op)
	case w.Op.atomic() && len(w.SGL) == 1 && w.SGL[0].Length != AtomicLen:
		return fmt.Errorf("%w: %s for the result of %v, which has %d", ErrInvalid, wording.Octets(w.SGL[0].Length), w.Op, AtomicLen)
	case !w.Op.immediate() && w.Immediate != 0:
		return fmt.Errorf("%w: Immediate, which is for OpWriteImm and OpImmediate, on %v", ErrInvalid, w.Op)
	case w.Op != OpFetchAdd && w.Add != 0:
		return fmt.Errorf("%w: Add, which is for OpFetchAdd, on %v", ErrInvalid, w.Op)
	case w.Op != OpCompareSwap && (w.Compare != 0 || w.Swap != 0):
		return fmt.Errorf("%w: Compare or Swap, which are for OpCompareSwap, on %v", ErrInvalid, w.Op)
	case !w.Op.atomic() && w.Masks != nil:
		return fmt.Errorf("%w: Masks, which are for OpFetchAdd and OpCompareSwap, on %v", ErrInvalid, w.Op)
	}
	return nil
}

// atomicWork is what the engine works with.
func (w *SendWR) atomicWork() (a engine.Atomic) {
	switch w.Op {
	case OpFetchAdd:
		a.Data = w.Add
		if w.Masks != nil {
			a.Mask = w.Masks.Add
		}
	case OpCompareSwap:
		a = engine.Atomic{Data: w.Swap, Mask: math.MaxUint64, Compare: w.Compare, CompareMask: math.MaxUint64}
		if w.Masks != nil {
			a.Mask, a.CompareMask = w.Masks.Swap, w.Masks.Compare
		}
	}
	return a
}
