//go:build linux && (amd64 || arm64)

package verbs

import (
	"errors"
	"math"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// A PD is a struct ibv_pd.
type PD struct {
	pd    *iwarp.PD
	users atomic.Int32 // for datagrams, of which package iwarp does not know
}

// AllocPD returns a Protection Domain.
func (d *Device) AllocPD() (Handle, syscall.Errno) {
	pd, err := d.rnic.AllocPD()
	if err != nil {
		return 0, errnoOf(err)
	}
	return made(d.pds.add(&PD{pd: pd}))
}

// DeallocPD frees a Protection Domain. It is EBUSY while something is in it.
func (d *Device) DeallocPD(h Handle) syscall.Errno {
	p := d.pds.get(h)
	if p == nil {
		return syscall.EINVAL
	}
	if p.users.Load() != 0 || p.pd.Close() != nil {
		return syscall.EBUSY
	}
	d.pds.remove(h)
	return fine
}

// An MR is a struct ibv_mr. Its lkey and its rkey are its STag: programs send the one in place of the other. A region
// without remote rights has an STag, too, by which no peer reaches it.
type MR struct {
	mr     *iwarp.MR
	pd     Handle
	addr   unsafe.Pointer
	n      uint64
	base   uint64
	access uint32
}

// RegisterMR registers n bytes of memory that is not Go's, which the program keeps until DeregisterMR. iova is the
// tagged offset of the first byte. As ibv_reg_mr, it is EINVAL for rights that write remotely and not
// locally, and, as siw, for no bytes, which some devices of RoCE take; EOPNOTSUPP for on-demand paging; and EFAULT for
// what is not mapped, may not be read, or may not be written but is to be with accessLocalWrite.
func (d *Device) RegisterMR(pd Handle, addr unsafe.Pointer, n, iova uint64, access uint32) (h Handle, key uint32,
	errno syscall.Errno) {
	if access&accessZeroBased != 0 {
		iova = 0
	}
	return d.register(&MR{pd: pd, addr: addr, n: n, base: iova, access: access})
}

func (d *Device) register(m *MR) (h Handle, key uint32, errno syscall.Errno) {
	if errno = d.enter(m, nil); errno != fine {
		return 0, 0, errno
	}
	key = m.mr.STag()
	return d.mrs.add(key, m), key, fine
}

// enter registers a region with package iwarp, in the place of an earlier one if there is any.
func (d *Device) enter(m *MR, earlier *iwarp.MR) syscall.Errno {
	p := d.pds.get(m.pd)
	rights, errno := rightsOf(m.access)
	if errno != fine {
		return errno
	}
	if p == nil || m.n > math.MaxInt64 || m.n == 0 && !d.roce {
		return syscall.EINVAL
	}
	if !usable(m.addr, m.n, m.access) {
		return syscall.EFAULT
	}
	mr, err := p.pd.RegisterOptions(unsafe.Slice((*byte)(m.addr), int(m.n)),
		iwarp.MROptions{Access: rights, Base: m.base, Replace: earlier, MayVanish: true})
	if earlier != nil && errors.Is(err, iwarp.ErrBadState) {
		return syscall.EBUSY
	}
	m.mr = mr
	return errnoOf(err)
}

// Flags of ibv_rereg_mr.
const (
	changeTranslation = 1 << iota
	changePD
	changeAccess
)

// ReregisterMR is RegisterMR with what the flags name changed, and the rest as it was, in place of a region that ends.
// The Handle and the key stay. After an error the region is as it was; that is EBUSY while a window is bound to it.
func (d *Device) ReregisterMR(h Handle, flags uint32, pd Handle, addr unsafe.Pointer, n uint64,
	access uint32) syscall.Errno {
	m := d.mrs.get(h)
	if m == nil || flags == 0 || flags&^(changeTranslation|changePD|changeAccess) != 0 {
		return syscall.EINVAL
	}
	to := *m
	if flags&changeTranslation != 0 {
		to.addr, to.n, to.base = addr, n, uint64(uintptr(addr))
	}
	if flags&changePD != 0 {
		to.pd = pd
	}
	if flags&changeAccess != 0 {
		to.access = access
	}
	if to.access&accessZeroBased != 0 {
		to.base = 0
	}
	d.awaitEnds(m)
	if errno := d.enter(&to, m.mr); errno != fine {
		return errno
	}
	if !d.mrs.replace(h, &to) { // another thread has deregistered it
		_ = to.mr.Deregister()
		return syscall.EINVAL
	}
	return fine
}

// rightsOf translates access rights. What we do not have is refused, but for what may be ignored: by EOPNOTSUPP if Linux
// knows it, for which programs do without. That a window may be bound is looked at when one is.
func rightsOf(access uint32) (rights iwarp.Access, errno syscall.Errno) {
	const known = accessLocalWrite | accessRemoteWrite | accessRemoteRead | accessRemoteAtomic | accessMWBind | accessZeroBased | accessHugeTLB |
		accessOptional
	const elsewhere = accessOnDemand | accessFlush
	switch {
	case access&^(known|elsewhere) != 0,
		access&(accessRemoteWrite|accessRemoteAtomic) != 0 && access&accessLocalWrite == 0:
		return 0, syscall.EINVAL
	case access&elsewhere != 0:
		return 0, syscall.EOPNOTSUPP
	}
	rights = remoteRights(access)
	if access&accessLocalWrite != 0 {
		rights |= iwarp.LocalWrite
	}
	return rights, fine
}

func remoteRights(access uint32) (rights iwarp.Access) {
	for bit, right := range map[uint32]iwarp.Access{
		accessRemoteWrite: iwarp.RemoteWrite, accessRemoteRead: iwarp.RemoteRead,
		accessRemoteAtomic: iwarp.RemoteAtomic,
	} {
		if access&bit != 0 {
			rights |= right
		}
	}
	return rights
}

// DeregisterMR takes a region back. When it returns, nothing reads or writes the memory any more. It is EBUSY while a
// window is bound to the region.
func (d *Device) DeregisterMR(h Handle) syscall.Errno {
	m := d.mrs.get(h)
	if m == nil {
		return syscall.EINVAL
	}
	d.awaitEnds(m)
	if err := m.mr.Deregister(); errors.Is(err, iwarp.ErrBadState) {
		return syscall.EBUSY
	} else if err != nil { // another thread was first
		return syscall.EINVAL
	}
	d.mrs.remove(h)
	return fine
}

// sges translates the elements of a work request and appends them to to. It reports false for an lkey that no region
// has, but not if that is for the completion to tell: see late. A bound that is exceeded is found later, by package
// iwarp.
func (d *Device) sges(to []iwarp.SGE, list []SGE, late bool) ([]iwarp.SGE, bool) {
	for i := range list {
		s := &list[i]
		if s.Length == 0 {
			continue // "SGE of length 0: STag not validated"
		}
		m := d.mrs.find(s.LKey)
		switch {
		case m != nil && (s.Addr >= m.base || !late):
			to = append(to, iwarp.SGE{MR: m.mr, Offset: int(s.Addr - m.base), Length: int(s.Length)})
		case late:
			to = append(to, iwarp.SGE{Length: int(s.Length)}) // of no region
		default:
			return to, false
		}
	}
	return to, true
}
