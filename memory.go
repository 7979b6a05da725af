package iwarp

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/wording"
)

// Access is a set of rights over registered memory. Reading it in the owner's
// own operations needs none.
type Access uint8

const (
	// LocalWrite lets the owner's own operations write: receives, and RDMA Reads
	// into the region.
	LocalWrite = Access(memory.LocalWrite)
	// RemoteWrite lets peers place bytes with RDMA Writes. It includes LocalWrite.
	RemoteWrite = Access(memory.RemoteWrite)
	// RemoteRead lets peers fetch bytes with RDMA Reads.
	RemoteRead = Access(memory.RemoteRead)
	// RemoteInvalidate lets a peer invalidate the region's STag with a Send with Invalidate. It
	// is needed only for a region that is not bound to a QP by MROptions.QP, whose peer may do
	// so anyway: with it whichever peer comes first can end the region's use for all, so use it
	// in Protection Domains with one QP only. While the domain has several, no peer may (RFC
	// 5040, section 8.1.1; RFC 5042, section 6.4.5).
	RemoteInvalidate = Access(memory.RemoteInvalidate)
	// RemoteAtomic lets peers change words of 8 bytes with Atomic Operations: FetchAdd and
	// CompareSwap. It includes LocalWrite, and neither RemoteRead nor RemoteWrite.
	RemoteAtomic = Access(memory.RemoteAtomic)

	allAccess = LocalWrite | RemoteWrite | RemoteRead | RemoteInvalidate | RemoteAtomic
)

// An MR is a Memory Region: memory registered for RDMA. Its tagged offsets
// begin at the offset that it was registered with, usually zero.
//
// While peers or requests may reach the memory, the program itself reads and writes it with ReadAt, WriteAt and Update;
// a completion says when a request is done with it. docs/memory.md tells what is seen when.
type MR struct {
	pd     *PD
	region *memory.Region
	// buf is behind a pointer, which package fmt does not follow: an MR that is printed as a
	// value does not show the memory, whatever the verb.
	buf    *[]byte
	bound  uint32 // the number of the QP that it is bound to; 0: it is not
	octets int    // those that the RNIC has counted
}

// MROptions refines a registration.
type MROptions struct {
	// Access is what may be done with the region.
	Access Access
	// QP, if it is set, is the only one through which peers may use the region, and
	// only on its present connection or, before it has one, on its next. That peer may
	// invalidate the STag (Send with Invalidate); for others there is RemoteInvalidate
	// (RFC 5040, section 8.1.1).
	QP *QP
	// Base is the tagged offset of the first byte.
	Base uint64
	// Replace, if it is set, is an MR of Register, of the same RNIC, that ends when the new one begins, as by
	// Deregister. The new MR takes over its STag: peers that were told it reach the new memory, as far as the new
	// rights allow, and need not be told again. Requests that name the old MR and are not yet carried out end in
	// error. For a moment both count toward Limits.
	Replace *MR
	// MayVanish tells that the memory is not the Go runtime's, and that it may be unmapped or protected while it is
	// registered, or that of a file that may be cut short. A request that finds it so fails with
	// StatusLocalProtection, and a peer's ends the connection with a Terminate (RFC 5040, section
	// 4.8: Local Catastrophic Error); ReadAt and WriteAt return ErrBadState. Otherwise the process ends. Update and
	// Detach do not survive it in either case.
	MayVanish bool
}

// Register makes buf usable in work requests and, as far as a allows, by
// peers. buf must stay as it is until Deregister; no copy is made.
func (pd *PD) Register(buf []byte, a Access) (*MR, error) {
	if err := pd.made(); err != nil {
		return nil, err
	}
	return pd.RegisterOptions(buf, MROptions{Access: a})
}

// RegisterOptions is Register with all that can be said about a region.
func (pd *PD) RegisterOptions(buf []byte, o MROptions) (*MR, error) {
	if err := pd.made(); err != nil {
		return nil, err
	}
	mr, err := pd.register(buf, o)
	if err != nil {
		return nil, &OpError{Op: "register memory", Err: err}
	}
	return mr, nil
}

func (pd *PD) register(buf []byte, o MROptions) (*MR, error) {
	mo := memory.Options{Access: memory.Access(o.Access), PD: pd.num, Base: o.Base, Vanishes: o.MayVanish}
	if o.Access&^allAccess != 0 {
		return nil, fmt.Errorf("%w: access rights %#x do not exist", ErrInvalid, uint8(o.Access&^allAccess))
	}
	if o.QP != nil {
		var err error
		if mo.Stream, err = bindable(o.QP, pd); err != nil {
			return nil, err
		}
	}
	mr := &MR{pd: pd, buf: &buf, octets: len(buf)}
	if o.QP != nil {
		mr.bound = o.QP.num
	}
	if o.Replace != nil {
		return mr, mr.replace(o.Replace, mo)
	}
	return mr, mr.admit(func(t *memory.Table) (err error) {
		mr.region, err = t.Register(buf, mo)
		return mr.wraps(err, mo.Base)
	})
}

// wraps explains why memory could not be registered.
func (m *MR) wraps(err error, base uint64) error {
	if errors.Is(err, memory.ErrWrap) {
		return fmt.Errorf("%w: MROptions.Base %#x with %s: %w", ErrInvalid, base, wording.Bytes(len(*m.buf)), err)
	}
	return err
}

// admit counts the region in its Protection Domain and within the RNIC's Limits, and has it
// entered into the RNIC's table.
func (m *MR) admit(enter func(*memory.Table) error) error {
	if err := m.pd.attach(userMR); err != nil {
		return err
	}
	rnic := m.pd.rnic
	if err := rnic.ledger.charge(&m.pd.memory, 0, m.octets, 1); err != nil {
		m.pd.detach(userMR)
		return err
	}
	err := enter(rnic.table)
	if err != nil {
		rnic.ledger.refund(&m.pd.memory, m.octets)
		m.pd.detach(userMR)
	}
	return err
}

// bindable returns what a region of a Protection Domain that is bound to the QP is
// bound to.
func bindable(qp *QP, pd *PD) (stream uint32, err error) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	switch {
	case qp.pd != pd:
		return 0, fmt.Errorf("%w: the QP to bind the region to is of another Protection Domain: register the memory with "+
			"QP.PD()", ErrInvalid)
	case qp.claim == released:
		return 0, fmt.Errorf("the QP to bind the region to: %w", errReleased)
	}
	return qp.setup.Memory.Stream, nil
}

// STag returns the Steering Tag by which peers name the region. It is drawn at
// random and not used again soon after Deregister. That of an MR of AllocMR has a key of 0 before its first
// registration, and keeps the last registration's.
func (m *MR) STag() uint32 {
	if m.region == nil {
		return 0
	}
	return m.region.STag()
}

// Len returns the length in bytes.
func (m *MR) Len() int {
	if m.region == nil {
		return 0
	}
	return m.region.Size()
}

// Bytes returns the memory that was registered; it is nil for an MR of AllocMR, as the program has that memory itself.
// While peers or requests may reach it, see ReadAt.
func (m *MR) Bytes() []byte {
	if m.region == nil {
		return nil
	}
	return *m.buf
}

// Valid reports whether the STag can be used: it was neither invalidated nor
// deregistered.
func (m *MR) Valid() bool {
	if m.region == nil {
		return false
	}
	return m.region.Valid()
}

// ReadAt copies len(p) bytes from offset off on to p, under the region's lock: what a peer's segment, or another
// WriteAt or Update, has put there is copied as a whole or not at all. It implements io.ReaderAt: the error is io.EOF
// if there are fewer bytes than asked for, ErrClosed if the region was deregistered, and ErrBadState if it is an MR of
// AllocMR without memory. The bytes are all of one registration, whatever is registered or invalidated meanwhile.
func (m *MR) ReadAt(p []byte, off int64) (n int, err error) {
	if err := m.made(); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, &OpError{Op: "read memory", Err: fmt.Errorf("%w: offset %d", ErrInvalid, off)}
	}
	n, f := m.region.ReadAt(p, int(min(off, math.MaxInt)))
	if f != memory.None {
		return 0, &OpError{Op: "read memory", Err: m.lost(f)}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt copies p to offset off, under the region's lock: a peer that reads, and a
// Send or Write of these bytes, has them as a whole or not at all, as far as they go
// in one segment. It implements io.WriterAt: the error is ErrInvalid where p does not
// fit, and then nothing is copied; ErrClosed after Deregister, and ErrBadState where an MR of AllocMR has no memory.
func (m *MR) WriteAt(p []byte, off int64) (n int, err error) {
	if err := m.made(); err != nil {
		return 0, err
	}
	switch f := m.region.WriteAt(p, int(max(min(off, math.MaxInt), -1))); f {
	case memory.None:
		return len(p), nil
	case memory.Bounds:
		return 0, &OpError{Op: "write memory", Err: fmt.Errorf("%w: %s at offset %d of a region of %d", ErrInvalid,
			wording.Bytes(len(p)), off, m.Len())}
	default:
		return 0, &OpError{Op: "write memory", Err: m.lost(f)}
	}
}

// lost returns the error of a call that finds no memory.
func (m *MR) lost(f memory.Fault) error {
	if f == memory.Invalidated {
		return fmt.Errorf("%w: nothing is registered in the MR at present: the memory is the program's own",
			ErrBadState)
	}
	if f == memory.Vanished {
		return fmt.Errorf("%w: %s", ErrBadState, f.Mistake())
	}
	return errDeregistered
}

// Update calls f with the region's memory, once for each piece that it has, under its lock: no peer and no request
// reads or writes any byte of it meanwhile. Connections that want to do so wait for f: it should be short, and must
// not call anything in this package. The error is ErrClosed after Deregister, and ErrBadState where an MR of AllocMR
// has no memory, and f is not called then; it is ErrInvalid if f is nil.
func (m *MR) Update(f func([]byte)) error {
	if err := m.made(); err != nil {
		return err
	}
	if f == nil {
		return &OpError{Op: "update memory", Err: fmt.Errorf("%w: no function", ErrInvalid)}
	}
	if fault := m.region.Update(f); fault != memory.None {
		return &OpError{Op: "update memory", Err: m.lost(fault)}
	}
	return nil
}

// Detach gives the region memory of its own, which is a copy of what it has now. What was registered is the caller's
// again when Detach returns, while the region and the requests that name it go on with the copy: so a program need
// not wait for these. Bytes still returns what was registered. The error is ErrClosed after Deregister, and
// ErrBadState where an MR of AllocMR has no memory.
func (m *MR) Detach() error {
	if err := m.made(); err != nil {
		return err
	}
	if f := m.region.Detach(); f != memory.None {
		return &OpError{Op: "detach memory", Err: m.lost(f)}
	}
	return nil
}

// Slice names n bytes from offset off on, for a work request. That they lie
// within the region is checked when the request is posted.
func (m *MR) Slice(off, n int) SGE { return SGE{MR: m, Offset: off, Length: n} }

// Remote is what a peer needs to name the bytes from offset off on.
func (m *MR) Remote(off int) Remote {
	if m.region == nil {
		return Remote{}
	}
	return Remote{STag: m.region.STag(), TO: m.region.Base() + uint64(off)}
}

// Remote names memory of a peer: an STag that it has told us, and a tagged
// offset.
type Remote struct {
	STag uint32
	TO   uint64
}

// Add returns the place n bytes on.
func (r Remote) Add(n int) Remote { return Remote{STag: r.STag, TO: r.TO + uint64(n)} }

// String gives STag and tagged offset in hexadecimal.
func (r Remote) String() string { return fmt.Sprintf("STag %#08x TO %#x", r.STag, r.TO) }

// Deregister takes the region back. When it returns nothing changes or reads the memory any more: what is still on
// its way was copied before. Requests that name it and are not yet carried out end in error, and the connection with
// them. It fails with ErrBadState while Memory Windows are bound to the region, and with ErrClosed if it was called
// before.
func (m *MR) Deregister() error {
	if err := m.made(); err != nil {
		return err
	}
	if err := m.kept(m.pd.rnic.table.Revoke(m.region)); err != nil {
		return &OpError{Op: "deregister memory", Err: err}
	}
	m.discharge()
	return nil
}

// kept returns the error for a region that cannot be taken back.
func (m *MR) kept(f memory.Fault) error {
	switch f {
	case memory.None:
		return nil
	case memory.HasWindows:
		return fmt.Errorf("%w: Memory Windows are bound to the region: invalidate or deallocate them first",
			ErrBadState)
	}
	return fmt.Errorf("STag %#08x: %w", m.STag(), errDeregistered)
}

// discharge undoes admit.
func (m *MR) discharge() {
	m.pd.rnic.ledger.refund(&m.pd.memory, m.octets)
	m.pd.detach(userMR)
}

// replace registers the MR in the place of another.
func (m *MR) replace(old *MR, o memory.Options) error {
	switch {
	case old.made() != nil:
		return old.made()
	case old.pd.rnic != m.pd.rnic:
		return fmt.Errorf("%w: MROptions.Replace is an MR of another RNIC", ErrInvalid)
	case old.region.Fast():
		return fmt.Errorf("%w: MROptions.Replace is an MR of AllocMR, whose memory is replaced by an OpFastRegister",
			ErrInvalid)
	}
	err := m.admit(func(t *memory.Table) error {
		var f memory.Fault
		var err error
		if m.region, f, err = t.Succeed(old.region, *m.buf, o); err != nil {
			return m.wraps(err, o.Base)
		}
		return old.kept(f)
	})
	if err == nil {
		old.discharge()
	}
	return err
}
