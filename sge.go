package iwarp

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/wording"
)

// An SGE is a scatter/gather element: a range of a region. Its Length may be 0, and then
// it needs no MR.
type SGE struct {
	MR     *MR
	Offset int // bytes from the region's start
	Length int // bytes
}

// An sgeValidator validates elements of requests for a queue of a Protection Domain.
type sgeValidator struct {
	pd   *PD
	late bool // QPConfig.CheckLate
}

// validatorFor validates elements of a QP's own requests.
func validatorFor(qp *QP) sgeValidator { return sgeValidator{qp.pd, qp.cfg.CheckLate} }

func (v sgeValidator) checkSGL(sgl []SGE, write bool) error {
	for i := range sgl {
		if err := v.check(&sgl[i], write); err != nil {
			return err
		}
	}
	return nil
}

// check judges an element: of a request to read its bytes, or to write them. No bytes are no mistake, whatever they
// are of, unless the region is another RNIC's (RDMA verbs 8).
func (v sgeValidator) check(s *SGE, write bool) error {
	switch {
	case s.Length < 0 || s.Offset < 0:
		return fmt.Errorf("%w: a scatter/gather element of %s at offset %d",
			ErrInvalid, wording.Bytes(s.Length), s.Offset)
	case s.MR != nil && s.MR.made() != nil:
		return s.MR.made()
	case s.MR != nil && s.MR.pd.rnic != v.pd.rnic:
		return fmt.Errorf("%w: an MR of another RNIC: register the memory with the Protection Domain of the queue",
			ErrInvalid)
	case v.late:
		return nil
	case s.MR == nil && s.Length > 0:
		return fmt.Errorf("%w: a scatter/gather element of %s without an MR", ErrInvalid, wording.Bytes(s.Length))
	case s.MR == nil:
		return nil
	}
	d := memory.Domain{Table: v.pd.rnic.table, PD: v.pd.num}
	f := d.LocalMay(s.MR.region, s.Offset, s.Length, write)
	if f == memory.None {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrInvalid, s.mistake(f))
}

// mistake says what is wrong with the element, and what to do about it.
func (s *SGE) mistake(f memory.Fault) string {
	switch f {
	case memory.InvalidSTag:
		return "an MR that was deregistered: register the memory again, and keep it until the completion"
	case memory.Invalidated:
		return "an MR whose STag has been invalidated: register the memory again"
	case memory.Bounds:
		return fmt.Sprintf("%s at offset %d of an MR of %s",
			wording.Bytes(s.Length), s.Offset, wording.Bytes(s.MR.Len()))
	case memory.NoLocalWrite:
		return "an MR without LocalWrite, which receives and Reads write to: register it with LocalWrite"
	case memory.OtherDomain:
		return "an MR of another Protection Domain: register the memory with that of the queue"
	}
	return f.String()
}

func (s *SGE) engine() engine.SGE {
	e := engine.SGE{Offset: s.Offset, Length: s.Length}
	if s.MR != nil {
		e.Region, e.Term = s.MR.region, s.MR.region.Term()
	}
	return e
}

// A Uint64 is a word of AtomicLen bytes in registered memory. Peers reach it by Atomic Operations (RFC 7306, section
// 5), and the program by these methods. It is an integer in the byte order of this machine (RFC 7306, section 5.1.1): a
// peer's FetchAdd of 1 adds 1 to what Load returns.
//
// The methods are atomic against each other, against the Atomic Operations of all peers, and against sync/atomic,
// whichever MRs have the word. They are atomic against Writes, Reads and other requests only through the same MR. They
// need no rights.
//
// The error wraps ErrClosed after Deregister. It wraps ErrBadState if an MR of AllocMR has no memory, or the memory has
// vanished. After another OpFastRegister the word may lie outside, or not aligned: then it wraps ErrInvalid.
type Uint64 struct {
	mr  *MR
	off int
}

// Uint64 returns the word at offset off, in bytes. Its address must be a multiple of AtomicLen; Go aligns memory so if
// its size is one. Otherwise, and where the memory ends before the word, the error wraps ErrInvalid, or ErrClosed or
// ErrBadState as for Load.
func (m *MR) Uint64(off int) (Uint64, error) {
	w := Uint64{m, off}
	_, err := w.Load()
	return w, err
}

// Load returns the word.
func (w Uint64) Load() (uint64, error) {
	if err := w.mr.made(); err != nil {
		return 0, err
	}
	word, f := w.mr.region.Load64(w.off)
	return word, w.failed(f)
}

// Store sets the word.
func (w Uint64) Store(word uint64) error {
	_, err := w.change(func(uint64) uint64 { return word })
	return err
}

// Add adds to the word, and returns the sum, which wraps at 64 bits.
func (w Uint64) Add(delta uint64) (sum uint64, err error) {
	old, err := w.change(func(old uint64) uint64 { return old + delta })
	if err != nil {
		return 0, err
	}
	return old + delta, nil
}

// CompareAndSwap replaces the word by swap if it is compare, and reports whether it did.
func (w Uint64) CompareAndSwap(compare, swap uint64) (swapped bool, err error) {
	old, err := w.change(func(old uint64) uint64 {
		if old == compare {
			return swap
		}
		return old
	})
	return err == nil && old == compare, err
}

func (w Uint64) change(to func(old uint64) uint64) (old uint64, err error) {
	if err := w.mr.made(); err != nil {
		return 0, err
	}
	old, f := w.mr.region.Change64(w.off, to)
	return old, w.failed(f)
}

func (w Uint64) failed(f memory.Fault) error {
	var err error
	switch f {
	case memory.None:
		return nil
	case memory.Bounds:
		err = fmt.Errorf("%w: a word of %d bytes at offset %d of a region of %d", ErrInvalid, AtomicLen, w.off, w.mr.Len())
	case memory.Unaligned:
		err = fmt.Errorf("%w: a word at offset %d, whose address is no multiple of %d", ErrInvalid, w.off, AtomicLen)
	default:
		err = w.mr.lost(f)
	}
	return &OpError{Op: "access a word of memory", Err: err}
}
