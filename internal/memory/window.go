package memory

import (
	"sync"

	"github.com/goiwarp/iwarp/ddp"
)

// A Window is a Memory Window: an STag for a part of a region, with rights of its own, that
// costs no registration.
//
// RDMA verbs 7: a window is allocated in a Protection Domain, and Invalid. When it is bound to a
// region it belongs to the stream on which that was done, whose peer alone may use it; when it
// is invalidated it goes back to the domain. Such a window is of the second type. One of the
// first type, which the verbs do not have, is open to all streams of the domain, and a
// bind replaces what it was bound to before.
type Window struct {
	tag
	first bool // type

	mu     sync.Mutex // orders what begins and ends a binding
	freed  bool
	region *Region // nil: not bound
	spare  *grant  // the one before

	next, prev *Window // bound to the same stream; guarded by the table's lock
}

// A Binding says what a window stands for.
type Binding struct {
	Region *Region
	Offset int // bytes from the region's start
	Length int // bytes; 0 ends the binding of a window of the first type
	Base   uint64
	Access Access
	Key    uint8
}

// AllocateWindow returns a window without a binding, of the first type or of the second.
func (t *Table) AllocateWindow(pd uint32, first bool) (*Window, error) {
	w := &Window{tag: tag{table: t, pd: pd}, first: first}
	err := t.enter(&w.tag, func(stag uint32) *grant { return w.none(stag &^ keyMask) })
	if err != nil {
		return nil, err
	}
	return w, nil
}

// none is a grant of nothing, with its STag. The caller holds the window's lock, or is the only one who has the window.
func (w *Window) none(stag uint32) *grant {
	g := w.fresh()
	g.offer = offer{stag: stag, pd: w.pd, owner: w}
	g.state.Store(invalidated)
	return g
}

// fresh returns a grant that nobody holds.
func (w *Window) fresh() *grant {
	if g := w.spare; g != nil && g.idle() {
		w.spare = nil
		return g
	}
	return &grant{again: true}
}

// Bind has the window stand for a part of a region.
//
// RDMA verbs 7: window, region and stream are of one Protection Domain, the STag is invalid, the
// part is within the region, and RemoteWrite needs LocalWrite there.
func (d Domain) Bind(w *Window, b Binding) Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.table != d.Table || w.pd != d.PD:
		return OtherDomain
	case w.freed:
		return InvalidSTag
	case w.region != nil && !w.first:
		return StillValid
	case b.Length == 0 && w.first:
		w.replace(w.none(w.index|uint32(b.Key)), nil)
		return None
	}
	return d.bind(w, &b)
}

// bind is called with the window's lock held.
func (d Domain) bind(w *Window, b *Binding) Fault {
	g := w.fresh()
	g.offer = offer{stag: w.index | uint32(b.Key), pd: w.pd, access: b.Access, base: b.Base, at: b.Offset,
		size: b.Length, owner: w}
	if !w.first {
		g.stream = d.Stream
	}
	if f := b.Region.lend(d, g); f != None {
		w.spare = g
		return f
	}
	g.state.Store(usable)
	w.replace(g, b.Region)
	d.Table.bound(w, g.stream)
	return None
}

// lend counts a window, if the region allows of what that is to grant.
func (r *Region) lend(d Domain, g *grant) Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.extent()
	if f := r.checkLocal(d, x, g.at, g.size, g.access&(RemoteWrite|RemoteAtomic) != 0); f != None {
		return f
	}
	if ddp.Wraps(g.base, uint64(g.size)) {
		return Wrap
	}
	r.windows++
	g.in = x
	return None
}

// unbind ends the binding, if there is one, and returns when no peer reaches anything
// through it any more. The caller holds the window's lock.
func (w *Window) unbind() {
	if w.region == nil {
		return
	}
	w.replace(w.none(w.STag()), nil)
}

// replace puts a grant of a region in the place of the present one, which ends: at no moment does the
// window stand for neither, so that peers who name an STag that it had before, and has now, do not notice.
// It returns when nobody reaches anything through the earlier grant. The caller holds the window's lock.
func (w *Window) replace(g *grant, r *Region) {
	old, lender := w.cur.Load(), w.region
	w.region, w.spare = r, old
	w.stand(g)
	if lender == nil {
		return
	}
	old.changeState(invalidated)
	w.table.unbound(w, old.stream)
	lender.mu.Lock()
	lender.windows--
	lender.mu.Unlock()
}

// invalidate ends the binding of a window of the second type.
func (w *Window) invalidate(of *grant) Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.freed:
		return InvalidSTag
	case w.first:
		return FirstType
	case w.region == nil, of != nil && of != w.cur.Load():
		return Invalidated
	}
	w.unbind()
	return None
}

// own judges the consumer's invalidation. RDMA verbs 7: a window that is bound belongs to the
// stream, any other to the Protection Domain.
func (w *Window) own(d Domain) Fault {
	g := w.hold()
	defer g.release()
	switch {
	case w.table != d.Table || w.pd != d.PD:
		return OtherDomain
	case w.first:
		return FirstType
	case g.usable() && g.stream != d.Stream:
		return OtherStream
	}
	return None
}

// Free ends the window, whatever it is bound to. It reports whether it was there.
func (t *Table) Free(w *Window) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.freed {
		return false
	}
	w.freed = true
	w.unbind()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(&w.tag)
	return true
}

// bound and unbound note which windows belong to a stream.
func (t *Table) bound(w *Window, stream uint32) {
	if stream == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.next = t.windows[stream]; w.next != nil {
		w.next.prev = w
	}
	t.windows[stream] = w
}

func (t *Table) unbound(w *Window, stream uint32) {
	if stream == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case w.prev != nil:
		w.prev.next = w.next
	case w.next != nil:
		t.windows[stream] = w.next
	default:
		delete(t.windows, stream)
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
}

// EndStream gives the windows that belong to a stream, which has ended, back to their
// Protection Domain.
//
// RDMA verbs 6.2: a QP is not destroyed while windows are bound to it. Here none are, as they
// do not outlive the connection.
func (t *Table) EndStream(stream uint32) {
	t.mu.RLock()
	var windows []*Window
	for w := t.windows[stream]; w != nil; w = w.next {
		windows = append(windows, w)
	}
	t.mu.RUnlock()
	for _, w := range windows {
		w.endOf(stream)
	}
}

// endOf ends the binding to a stream.
func (w *Window) endOf(stream uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.region != nil && w.cur.Load().stream == stream {
		w.unbind()
	}
}
