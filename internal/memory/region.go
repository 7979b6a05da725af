package memory

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/layout"
)

// Access is a set of rights. Local read needs none.
type Access uint8

const (
	// LocalWrite lets the owner's own operations write the region: receives
	// and the sinks of RDMA Reads.
	LocalWrite Access = 1 << iota
	// RemoteWrite lets the peer's RDMA Writes place bytes here.
	RemoteWrite
	// RemoteRead lets the peer's RDMA Reads fetch bytes from here.
	RemoteRead
	// RemoteInvalidate lets a peer invalidate the STag, as long as it is not
	// shared by several streams. The peer of the stream that the region is bound
	// to does not need this right.
	RemoteInvalidate
	// RemoteAtomic lets the peer's Atomic Operations change words of 8 bytes here.
	RemoteAtomic

	allAccess = LocalWrite | RemoteWrite | RemoteRead | RemoteInvalidate | RemoteAtomic
)

var accessNames = []struct {
	right Access
	name  string
}{
	{LocalWrite, "LocalWrite"}, {RemoteWrite, "RemoteWrite"}, {RemoteRead, "RemoteRead"},
	{RemoteInvalidate, "RemoteInvalidate"}, {RemoteAtomic, "RemoteAtomic"},
}

// String names the rights, joined by "|", or is "none".
func (a Access) String() string {
	var names []string
	for _, n := range accessNames {
		if a&n.right != 0 {
			names, a = append(names, n.name), a&^n.right
		}
	}
	if a != 0 {
		names = append(names, fmt.Sprintf("%#x", uint8(a)))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "|")
}

// whole returns the rights with those that they include: what a peer may change, its owner may
// too.
func (a Access) whole() Access {
	if a&(RemoteWrite|RemoteAtomic) != 0 {
		a |= LocalWrite
	}
	return a
}

// A Region is registered memory. Its bytes are reached from outside the
// consumer's program only through this package, which holds the region's locks
// for as long as it copies: once Revoke or an invalidation has returned, no packet
// changes or reads the buffer any more (RFC 5042, section 6.2.2).
//
// What it is registered as is an extent, which a region that was registered by a Table has for
// good, and one that Table.Allocate made for as long as its STag is valid: see FastRegister.
type Region struct {
	tag
	most  Most    // what may be registered by FastRegister; none: nothing
	first extent  // most regions have no other
	spare *extent // by FastRegister: the one before; guarded by mu
	// terms is how many registrations were announced, and announced the last whose request is or was posted.
	terms, announced atomic.Uint32

	// mu orders what ends and begins the use of the region as a whole, and of its windows.
	mu      sync.Mutex
	windows int // bound to it
}

// held is what the region is registered as, and stays so until its release.
func (r *Region) held() *extent {
	if !r.Fast() { // asked with each request
		return &r.first
	}
	return r.holdAgain().in
}

// extent is what the region is registered as. The caller holds the region's lock, without which it is not registered
// as anything else.
func (r *Region) extent() *extent { return r.cur.Load().in }

// kept judges whether the program still has its memory in an extent of the region, until it is
// revoked; what FastRegister has registered goes back to it with the STag. The caller holds a lock if it
// reaches bytes then: so of one region nobody does by two extents at a time.
func (r *Region) kept(x *extent) Fault {
	switch state := x.state.Load(); {
	case state == revoked:
		return InvalidSTag
	case state == invalidated && r.Fast():
		return Invalidated
	}
	return None
}

// ReadAt copies bytes from offset off >= 0 on, and returns how many: as many as dst takes and the region has. None
// are copied if the region has been revoked, or was registered by FastRegister and has no memory any more.
func (r *Region) ReadAt(dst []byte, off int) (int, Fault) {
	x := r.held()
	defer x.release()
	n := min(max(x.size-off, 0), len(dst))
	if n == 0 {
		return 0, r.kept(x)
	}
	x.locks.rlock(off, n)
	defer x.locks.runlock(off, n)
	if f := r.kept(x); f != None {
		return 0, f
	}
	if f := x.copyTo(dst[:n], off); f != None {
		return 0, f
	}
	return n, None
}

// WriteAt copies src to offset off, as ReadAt does the other way: all of it, or nothing where it does not fit.
func (r *Region) WriteAt(src []byte, off int) Fault {
	x := r.held()
	defer x.release()
	if f := r.kept(x); f != None {
		return f
	}
	if !x.holds(off, len(src)) {
		return Bounds
	}
	x.locks.lock(off, len(src))
	defer x.locks.unlock(off, len(src))
	f := r.kept(x)
	if f == None {
		f = x.copyIn(off, layout.Plain(src))
	}
	return f
}

// Update calls f with the region's bytes while nobody else reaches any of them: once, or, if
// they are several pieces, once for each.
// There is no call where ReadAt copies nothing.
func (r *Region) Update(f func([]byte)) Fault {
	x := r.held()
	defer x.release()
	x.locks.lock(0, x.size)
	defer x.locks.unlock(0, x.size)
	if f := r.kept(x); f != None {
		return f
	}
	if len(x.parts) == 0 {
		f(x.buf)
	}
	for _, p := range x.parts {
		f(p)
	}
	return None
}

// Detach puts a copy in place of the memory, which nobody reaches through the region any more. There is
// none where ReadAt copies nothing.
func (r *Region) Detach() Fault {
	x := r.held()
	defer x.release()
	x.locks.lock(0, x.size)
	defer x.locks.unlock(0, x.size)
	if f := r.kept(x); f != None {
		return f
	}
	x.buf = slices.Clone(x.buf)
	for i, p := range x.parts {
		x.parts[i] = slices.Clone(p)
	}
	return None
}

// checkLocal judges the owner's access of n bytes at offset off of what the region is
// registered as. The caller holds a lock if it reaches them then.
func (r *Region) checkLocal(d Domain, x *extent, off, n int, write bool) Fault {
	state := x.state.Load()
	switch {
	case r.table != d.Table || r.pd != d.PD:
		return OtherDomain
	case state == revoked:
		return InvalidSTag
	case state == invalidated:
		return Invalidated
	case write && x.access&LocalWrite == 0:
		return NoLocalWrite
	case !x.holds(off, n):
		return Bounds
	}
	return None
}

// invalidate makes the STag of the region unusable. RDMA verbs 7: not of one to which windows
// are bound; what they offer would outlive it.
func (r *Region) invalidate(of *grant) Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.extent()
	switch {
	case x.state.Load() == revoked, of != nil && of != &x.grant:
		return InvalidSTag
	case r.windows > 0:
		return HasWindows
	case !x.usable():
		return Invalidated
	}
	if r.Fast() { // what is registered anew has memory of its own
		x.drop(invalidated)
	} else {
		x.changeState(invalidated)
	}
	return None
}

// revoke ends the region, unless windows are bound to it.
func (r *Region) revoke() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.windows > 0 {
		return false
	}
	r.extent().forget()
	return true
}
