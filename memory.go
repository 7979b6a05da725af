package iwarp

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/memory"
)

// Access is a set of rights over registered memory. Reading it in the owner's
// own operations needs none.
type Access uint8

const (
	// LocalWrite lets the owner's own operations write: receives, and RDMA Reads
	// into the region.
	LocalWrite = Access(memory.LocalWrite)
	// RemoteWrite lets peers place octets with RDMA Writes. It includes LocalWrite.
	RemoteWrite = Access(memory.RemoteWrite)
	// RemoteRead lets peers fetch octets with RDMA Reads.
	RemoteRead = Access(memory.RemoteRead)
)

// An MR is a Memory Region: memory registered for RDMA. Its tagged offsets
// begin at the offset that it was registered with, usually zero.
type MR struct {
	pd     *PD
	region *memory.Region
	buf    []byte
}

// MROptions refines a registration.
type MROptions struct {
	// Access is what may be done with the region.
	Access Access
	// QP, if it is set, is the only one through which peers may use the region.
	// A peer can invalidate an STag (Send with Invalidate) only if no other
	// stream could have used it: its region is bound to its QP, or that QP is
	// the only one of the domain (RFC 5040, section 8.1.1).
	QP *QP
	// Base is the tagged offset of the first octet.
	Base uint64
}

// Register makes buf usable in work requests and, as far as a allows, by
// peers. buf must stay as it is until Deregister; no copy is made.
func (pd *PD) Register(buf []byte, a Access) (*MR, error) {
	return pd.RegisterOptions(buf, MROptions{Access: a})
}

// RegisterOptions is Register with all that can be said about a region.
func (pd *PD) RegisterOptions(buf []byte, o MROptions) (*MR, error) {
	mr, err := pd.register(buf, o)
	if err != nil {
		return nil, &OpError{Op: "register memory", Err: err}
	}
	return mr, nil
}

func (pd *PD) register(buf []byte, o MROptions) (*MR, error) {
	mo := memory.Options{Access: memory.Access(o.Access), PD: pd.num, Base: o.Base}
	if o.QP != nil {
		if o.QP.pd != pd {
			return nil, fmt.Errorf("%w: for a QP of another Protection Domain", ErrInvalid)
		}
		mo.Stream = o.QP.num
	}
	if err := pd.attach(); err != nil {
		return nil, err
	}
	mr := &MR{pd: pd, buf: buf}
	err := pd.rnic.ledger.take(mr.shares()...)
	if err == nil {
		mr.region, err = pd.rnic.table.Register(buf, mo)
		if err == nil {
			return mr, nil
		}
		pd.rnic.ledger.give(mr.shares()...)
	}
	pd.detach()
	return nil, err
}

func (m *MR) shares() []share { return []share{{resMR, 1}, {resOctet, len(m.buf)}} }

// STag returns the Steering Tag by which peers name the region. It is drawn at
// random and not used again soon after Deregister.
func (m *MR) STag() uint32 { return m.region.STag() }

// Len returns the length in octets.
func (m *MR) Len() int { return len(m.buf) }

// Bytes returns the memory that was registered.
func (m *MR) Bytes() []byte { return m.buf }

// Access returns the rights that the region was registered with.
func (m *MR) Access() Access { return Access(m.region.Access()) }

// Valid reports whether the STag can be used: it was neither invalidated nor
// deregistered.
func (m *MR) Valid() bool { return m.region.Valid() }

// Slice names n octets from offset off on, for a work request. That they lie
// within the region is checked when the request is carried out.
func (m *MR) Slice(off, n int) SGE { return SGE{MR: m, Offset: off, Length: n} }

// Remote is what a peer needs to name the octets from offset off on.
func (m *MR) Remote(off int) Remote {
	return Remote{STag: m.STag(), TO: m.region.Base() + uint64(off)}
}

// Deregister takes the region back. When it returns no packet will change or
// read the memory any more; requests that still name it end in error.
func (m *MR) Deregister() error {
	if !m.pd.rnic.table.Revoke(m.region) {
		return &OpError{Op: "deregister memory", Err: fmt.Errorf("%w: STag %#08x is not registered", ErrInvalid, m.STag())}
	}
	m.pd.rnic.ledger.give(m.shares()...)
	m.pd.detach()
	return nil
}

// Remote names memory of a peer: an STag that it has told us, and a tagged
// offset.
type Remote struct {
	STag uint32
	TO   uint64
}

// Add returns the place n octets on.
func (r Remote) Add(n int) Remote { return Remote{STag: r.STag, TO: r.TO + uint64(n)} }

// String gives STag and tagged offset in hexadecimal.
func (r Remote) String() string { return fmt.Sprintf("STag %#08x TO %#x", r.STag, r.TO) }

// An SGE is a scatter/gather element: a range of a region.
type SGE struct {
	MR     *MR
	Offset int // octets from the region's start
	Length int // octets
}

func (s *SGE) engine() engine.SGE {
	e := engine.SGE{Offset: s.Offset, Length: s.Length}
	if s.MR != nil {
		e.Region = s.MR.region
	}
	return e
}
