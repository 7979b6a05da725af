//go:build linux && (amd64 || arm64)

package verbs

import (
	"math"
	"syscall"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// A PD is a struct ibv_pd.
type PD struct{ pd *iwarp.PD }

// AllocPD returns a Protection Domain.
func (d *Device) AllocPD() (Handle, syscall.Errno) {
	pd, err := d.rnic.AllocPD()
	if err != nil {
		return 0, errnoOf(err)
	}
	return made(d.pds.add(&PD{pd}))
}

// DeallocPD frees a Protection Domain. It is EBUSY while something is in it.
func (d *Device) DeallocPD(h Handle) syscall.Errno {
	p := d.pds.get(h)
	if p == nil {
		return syscall.EINVAL
	}
	if p.pd.Close() != nil {
		return syscall.EBUSY
	}
	d.pds.take(h)
	return fine
}

// An MR is a struct ibv_mr. Its lkey is the number of its handle, so that it is found without a search; its rkey is the
// STag.
type MR struct {
	mr   *iwarp.MR
	base uint64
}

// RegisterMR registers n octets of memory that is not Go's, which the program keeps until DeregisterMR. iova is the
// tagged offset of the first octet. As ibv_reg_mr, it is EINVAL for rights that write remotely and not locally, and
// for memory that does not exist.
func (d *Device) RegisterMR(pd Handle, addr unsafe.Pointer, n, iova uint64, access uint32) (h Handle, lkey, rkey uint32, errno syscall.Errno) {
	p := d.pds.get(pd)
	rights, ok := rightsOf(access)
	if p == nil || !ok || n > math.MaxInt64 {
		return 0, 0, 0, syscall.EINVAL
	}
	if access&accessZeroBased != 0 {
		iova = 0
	}
	if !mapped(addr, n) {
		return 0, 0, 0, syscall.EFAULT
	}
	mr, err := p.pd.RegisterOptions(unsafe.Slice((*byte)(addr), int(n)), iwarp.MROptions{Access: rights, Base: iova})
	if err != nil {
		return 0, 0, 0, errnoOf(err)
	}
	m := &MR{mr, iova}
	h = d.mrs.add(m)
	if h == 0 {
		_ = mr.Deregister()
		return 0, 0, 0, syscall.ENOMEM
	}
	d.stags.Store(mr.STag(), m)
	return h, uint32(h), mr.STag(), fine
}

// rightsOf translates access rights. What we do not have is refused, but for what may be ignored.
func rightsOf(access uint32) (rights iwarp.Access, ok bool) {
	const known = accessLocalWrite | accessRemoteWrite | accessRemoteRead | accessRemoteAtomic | accessZeroBased | accessOptional
	if access&^known != 0 {
		return 0, false
	}
	if access&(accessRemoteWrite|accessRemoteAtomic) != 0 && access&accessLocalWrite == 0 {
		return 0, false
	}
	for bit, right := range map[uint32]iwarp.Access{
		accessLocalWrite: iwarp.LocalWrite, accessRemoteWrite: iwarp.RemoteWrite, accessRemoteRead: iwarp.RemoteRead,
		accessRemoteAtomic: iwarp.RemoteAtomic,
	} {
		if access&bit != 0 {
			rights |= right
		}
	}
	return rights, true
}

// mapped reports whether all pages of the memory are mapped: a goroutine that touches one that is not would end the
// process. A program that unmaps memory which is registered has itself to blame.
func mapped(addr unsafe.Pointer, n uint64) bool {
	if n == 0 {
		return true
	}
	page := uint64(syscall.Getpagesize())
	first := uint64(uintptr(addr)) &^ (page - 1)
	last := uint64(uintptr(addr)) + n
	if last < uint64(uintptr(addr)) {
		return false
	}
	_, _, errno := syscall.Syscall(syscall.SYS_MSYNC, uintptr(first), uintptr(last-first), msAsync)
	return errno == 0
}

// msAsync has msync do nothing but look for pages that are not mapped.
const msAsync = 1

// DeregisterMR takes a region back. When it returns, nothing reads or writes the memory any more.
func (d *Device) DeregisterMR(h Handle) syscall.Errno {
	m := d.mrs.take(h)
	if m == nil {
		return syscall.EINVAL
	}
	d.stags.Delete(m.mr.STag())
	return errnoOf(m.mr.Deregister())
}

// sges translates the elements of a work request and appends them to to. It reports false for an lkey that no region
// has; a bound that is exceeded is found later, by package iwarp.
func (d *Device) sges(to []iwarp.SGE, list []SGE) ([]iwarp.SGE, bool) {
	for i := range list {
		s := &list[i]
		if s.Length == 0 {
			continue // "SGE of length 0: STag not validated"
		}
		m := d.mrs.find(s.LKey)
		if m == nil {
			return to, false
		}
		to = append(to, iwarp.SGE{MR: m.mr, Offset: int(s.Addr - m.base), Length: int(s.Length)})
	}
	return to, true
}

// invalidated returns the region that an STag names in a local invalidation, or nil.
func (d *Device) invalidated(stag uint32) *MR {
	m, _ := d.stags.Load(stag)
	mr, _ := m.(*MR)
	return mr
}
