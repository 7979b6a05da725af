//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// A Window is a struct ibv_mw. Its handle, in the struct, is its STag with a key of 0: the key changes with each binding.
type Window struct{ mw *iwarp.MW }

// AllocWindow returns a Memory Window of type 1 or 2, and its STag before it is bound first.
func (d *Device) AllocWindow(pd Handle, kind uint32) (h Handle, rkey uint32, errno syscall.Errno) {
	p := d.pds.get(pd)
	if p == nil {
		return 0, 0, syscall.EINVAL
	}
	mw, err := p.pd.AllocMW(iwarp.MWType(min(kind, 0xff)))
	if err != nil {
		return 0, 0, errnoOf(err)
	}
	return d.windows.add(mw.STagWithKey(0), &Window{mw}), mw.STag(), fine
}

// DeallocWindow ends a Window, bound or not.
func (d *Device) DeallocWindow(h Handle) syscall.Errno {
	w := d.windows.remove(h)
	if w == nil {
		return syscall.EINVAL
	}
	return errnoOf(w.mw.Dealloc())
}

// bindArgs are what a SendWR has at its end, if it binds a window: a struct ibv_mw_bind_info after window and STag.
type bindArgs struct {
	Window *struct { // ibv_mw
		_      [20]byte
		Handle uint32
	}
	RKey uint32
	_    uint32
	MR   *struct { // ibv_mr
		_    [36]byte
		LKey uint32
	}
	Addr, Length uint64
	Access       uint32
}

const bindOffset = 80

func (w *SendWR) bind() *bindArgs {
	return (*bindArgs)(unsafe.Add(unsafe.Pointer(w), bindOffset))
}

// bindWindow translates IBV_WR_BIND_MW. The lower 8 bits of the new STag are the program's choice, and the others the
// window's. As the manual pages have it, the region needs the right to be bound to.
func (d *Device) bindWindow(wr *SendWR, to *iwarp.SendWR) syscall.Errno {
	a := wr.bind()
	if a.Window == nil {
		return syscall.EINVAL
	}
	w := d.windows.find(a.Window.Handle)
	if w == nil || w.mw.STagWithKey(uint8(a.RKey)) != a.RKey {
		return syscall.EINVAL
	}
	b := &iwarp.Binding{Key: uint8(a.RKey)}
	if a.Length > 0 {
		if errno := d.bindTo(a, b); errno != fine {
			return errno
		}
	}
	*to = iwarp.SendWR{ID: to.ID, Op: iwarp.OpBindMW, Window: w.mw, Bind: b, Unsignaled: to.Unsignaled, Fence: to.Fence}
	return fine
}

// bindTo translates what the window is to be bound to. The right to write to it locally is the region's: a window has
// none to give.
func (d *Device) bindTo(a *bindArgs, b *iwarp.Binding) syscall.Errno {
	const known = accessLocalWrite | accessRemoteWrite | accessRemoteRead | accessRemoteAtomic | accessZeroBased
	if a.MR == nil || a.Access&^known != 0 {
		return syscall.EINVAL
	}
	m := d.mrs.find(a.MR.LKey)
	if m == nil || m.access&accessMWBind == 0 {
		return syscall.EINVAL
	}
	b.Memory = iwarp.SGE{MR: m.mr, Offset: int(a.Addr - m.base), Length: int(a.Length)}
	b.Access = remoteRights(a.Access)
	if a.Access&accessZeroBased == 0 {
		b.Base = a.Addr
	}
	return fine
}

// invalidation translates a local invalidation of a region or a window. Whether the window has that key is known when
// it is carried out: what is posted before may bind it.
func (d *Device) invalidation(stag uint32, to *iwarp.SendWR) syscall.Errno {
	wr := iwarp.SendWR{ID: to.ID, Op: iwarp.OpLocalInvalidate, Invalidate: stag,
		Unsignaled: to.Unsignaled, Fence: to.Fence}
	if m := d.mrs.find(stag); m != nil {
		wr.Target = m.mr
	} else if w := d.windows.find(stag &^ 0xff); w != nil {
		wr.Window = w.mw
	} else {
		return syscall.EINVAL
	}
	*to = wr
	return fine
}
