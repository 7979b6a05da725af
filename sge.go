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
