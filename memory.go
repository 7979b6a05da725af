package iwarp

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/wording"
)

// Access is a set of rights over registered memory. The owner's own operations need no right to read it.
type Access uint8

const (
	// LocalWrite lets the owner's own operations write: receives, and RDMA Reads into the region.
	LocalWrite Access = Access(memory.LocalWrite)
	// RemoteWrite lets peers place bytes with RDMA Writes. It includes LocalWrite.
	RemoteWrite Access = Access(memory.RemoteWrite)
	// RemoteRead lets peers fetch bytes with RDMA Reads.
	RemoteRead Access = Access(memory.RemoteRead)
	// RemoteInvalidate lets a peer invalidate the region's STag with a Send with Invalidate. A region bound to a QP by
	// MROptions.QP does not need it: that QP's peer may do so anyway. Use it only in Protection Domains with one QP,
	// because any peer could end the region's use for all. While the domain has several QPs, no peer may (RFC 5040,
	// section 8.1.1; RFC 5042, section 6.4.5).
	RemoteInvalidate Access = Access(memory.RemoteInvalidate)
	// RemoteAtomic lets peers change words of 8 bytes with Atomic Operations: FetchAdd and CompareSwap. It includes
	// LocalWrite, but neither RemoteRead nor RemoteWrite.
	RemoteAtomic Access = Access(memory.RemoteAtomic)

	allAccess = LocalWrite | RemoteWrite | RemoteRead | RemoteInvalidate | RemoteAtomic
)

// An MR is a Memory Region: memory registered for RDMA. Its tagged offsets begin at MROptions.Base, usually zero.
//
// While peers or requests may reach the memory, the program accesses it with ReadAt, WriteAt and Update. A completion
// says when a request is done with it. docs/memory.md defines what is visible when.
type MR struct {
	pd     *PD
	region *memory.Region
	// buf is behind a pointer, which package fmt does not follow: so printing an MR never shows the memory.
	buf   *[]byte
	bound uint32 // number of the QP that it is bound to; 0: not bound
	bytes int    // charged to the RNIC
}

// MROptions refines a registration.
type MROptions struct {
	// Access is the set of rights over the region.
	Access Access
	// QP, if set, is the only one through which peers may use the region: on its present connection, or on its next if
	// it has none. That peer may invalidate the STag (Send with Invalidate). Others need RemoteInvalidate (RFC 5040,
	// section 8.1.1).
	QP *QP
	// Base is the tagged offset of the first byte.
	Base uint64
	// Replace, if set, is an MR of Register, of the same RNIC. It ends, as by Deregister, when the new one begins. The
	// new MR takes over its STag: peers that know it reach the new memory, as far as the new rights allow. Pending
	// requests that name the old MR end in error. For a moment both count toward Limits.
	Replace *MR
	// MayVanish is for memory from outside the Go runtime that may become inaccessible while it is registered: by being
	// unmapped or protected, or when its file is truncated. A request for such memory fails with
	// StatusLocalProtection. A peer's ends the connection with a Terminate (RFC 5040, section 4.8: Local Catastrophic
	// Error). ReadAt and WriteAt return ErrBadState. Without MayVanish the process ends. Update and Detach end it in
	// either case.
	MayVanish bool
}

// Register makes buf usable in work requests and, as far as a allows, by peers. No copy is made: buf must stay as it is
// until Deregister.
func (pd *PD) Register(buf []byte, a Access) (*MR, error) {
	if err := pd.made(); err != nil {
		return nil, err
	}
	return pd.RegisterOptions(buf, MROptions{Access: a})
}

// RegisterOptions is Register with all options of a region.
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
	mr := &MR{pd: pd, buf: &buf, bytes: len(buf)}
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

// admit counts the region in its Protection Domain and within the RNIC's Limits, and enters it into the RNIC's table.
func (m *MR) admit(enter func(*memory.Table) error) error {
	if err := m.pd.attach(userMR); err != nil {
		return err
	}
	rnic := m.pd.rnic
	if err := rnic.ledger.charge(&m.pd.memory, 0, m.bytes, 1); err != nil {
		m.pd.detach(userMR)
		return err
	}
	err := enter(rnic.table)
	if err != nil {
		rnic.ledger.refund(&m.pd.memory, m.bytes)
		m.pd.detach(userMR)
	}
	return err
}

// bindable returns the stream for a region of the Protection Domain that is bound to the QP.
func bindable(qp *QP, pd *PD) (stream uint32, err error) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	switch {
	case qp.pd != pd:
		return 0, fmt.Errorf("%w: the QP belongs to another Protection Domain: register the memory with QP.PD()", ErrInvalid)
	case qp.claim == released:
		return 0, fmt.Errorf("the QP to bind the region to: %w", errReleased)
	}
	return qp.memory, nil
}

// STag returns the Steering Tag by which peers name the region. It is random, and not used again soon after Deregister.
// For an MR of AllocMR the key is 0 before the first registration, and then that of the last one.
func (m *MR) STag() uint32 {
	if m == nil || m.region == nil {
		return 0
	}
	return m.region.STag()
}

// Len returns the length in bytes.
func (m *MR) Len() int {
	if m == nil || m.region == nil {
		return 0
	}
	return m.region.Size()
}

// Bytes returns the memory that was registered. It is nil for an MR of AllocMR: the program has that memory itself.
// While peers or requests may reach it, use ReadAt, WriteAt or Update.
func (m *MR) Bytes() []byte {
	if m == nil || m.region == nil {
		return nil
	}
	return *m.buf
}

// Valid reports whether the STag can be used: it was neither invalidated nor deregistered.
func (m *MR) Valid() bool {
	if m == nil || m.region == nil {
		return false
	}
	return m.region.Valid()
}

// ReadAt copies len(p) bytes from offset off to p, under the region's lock. The copy is atomic with respect to peers'
// segments, WriteAt and Update. All bytes are of one registration, whatever is registered or invalidated meanwhile.
// It implements io.ReaderAt: the error is io.EOF if fewer than len(p) bytes follow off. It is ErrClosed after
// Deregister, and ErrBadState if an MR of AllocMR has no memory.
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

// WriteAt copies p to offset off, under the region's lock. The copy is atomic with respect to each segment of a peer's
// Read, and of a Send or Write of these bytes. It implements io.WriterAt: the error is ErrInvalid if p does not fit,
// and then nothing is copied. It is ErrClosed after Deregister, and ErrBadState if an MR of AllocMR has no memory.
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

// lost returns the error of a call on an MR without memory.
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

// Update calls f with each piece of the region's memory, under its lock: no peer and no request reads or writes it
// meanwhile. Connections wait for f: it should be short, and must not call anything in this package. The error is
// ErrClosed after Deregister, ErrBadState if an MR of AllocMR has no memory, and ErrInvalid if f is nil. On error f is
// not called.
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

// Detach gives the region a copy of its memory. When it returns, the registered memory is the caller's again. The
// region and the requests that name it use the copy, so a program need not wait for them. Bytes still returns the
// registered memory. The error is ErrClosed after Deregister, and ErrBadState if an MR of AllocMR has no memory.
func (m *MR) Detach() error {
	if err := m.made(); err != nil {
		return err
	}
	if f := m.region.Detach(); f != memory.None {
		return &OpError{Op: "detach memory", Err: m.lost(f)}
	}
	return nil
}

// Slice names n bytes from offset off, for a work request. Posting the request checks that they lie within the region.
func (m *MR) Slice(off, n int) SGE { return SGE{MR: m, Offset: off, Length: n} }

// Remote is what a peer needs to name the bytes from offset off. It does not check that the region has them.
func (m *MR) Remote(off int) Remote {
	if m == nil || m.region == nil {
		return Remote{}
	}
	return Remote{STag: m.region.STag(), TO: m.region.Base() + uint64(off)}
}

// Remote names memory of a peer: the STag that it has advertised, and a tagged offset.
type Remote struct {
	STag uint32
	TO   uint64
}

// Add returns the place n bytes further. It checks no range.
func (r Remote) Add(n int) Remote { return Remote{STag: r.STag, TO: r.TO + uint64(n)} }

// String gives STag and tagged offset in hexadecimal.
func (r Remote) String() string { return fmt.Sprintf("STag %#08x TO %#x", r.STag, r.TO) }

// Deregister ends the region. When it returns, nothing reads or changes the memory any more: data still under way are
// copies. Pending requests that name it end in error, and the connection with them. It fails with ErrBadState while
// Memory Windows are bound to the region, and with ErrClosed if it was called before.
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

// kept returns the error for a region that cannot be deregistered.
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
	m.pd.rnic.ledger.refund(&m.pd.memory, m.bytes)
	m.pd.detach(userMR)
}

// replace registers the MR in place of another.
func (m *MR) replace(old *MR, o memory.Options) error {
	switch {
	case old.made() != nil:
		return old.made()
	case old.pd.rnic != m.pd.rnic:
		return fmt.Errorf("%w: MROptions.Replace is an MR of another RNIC", ErrInvalid)
	case old.region.Fast():
		return fmt.Errorf("%w: MROptions.Replace is an MR of AllocMR: replace its memory with an OpFastRegister",
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
