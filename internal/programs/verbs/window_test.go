//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// A window is a struct ibv_mw, as far as it is looked at, with its number.
type window struct {
	cABI struct { // the start of it
		_      [20]byte
		handle uint32
	}
	h   Handle
	key uint32
}

func (p *program) window(kind uint32) *window {
	p.t.Helper()
	w := new(window)
	var errno syscall.Errno
	w.h, w.key, errno = p.d.AllocWindow(p.pd, kind)
	must(p.t, errno)
	w.cABI.handle = uint32(w.h)
	return w
}

// bindTo returns a request that binds the window, under the next key, to a region.
func (w *window) bindTo(r *region, access uint32) *SendWR {
	w.key = w.key&^0xff | (w.key+1)&0xff
	mr := new(struct {
		_   [36]byte
		key uint32
	})
	mr.key = r.key
	wr := &SendWR{ID: 99, Opcode: wrBindMW}
	b := wr.bind()
	*(*unsafe.Pointer)(unsafe.Pointer(&b.Window)) = unsafe.Pointer(&w.cABI)
	*(*unsafe.Pointer)(unsafe.Pointer(&b.MR)) = unsafe.Pointer(mr)
	b.RKey, b.Addr, b.Length, b.Access = w.key, r.at(), uint64(len(r.memory)), access
	return wr
}

// did posts a request that must succeed, and returns its completion.
func (q *queue) did(wr *SendWR) WC {
	q.t.Helper()
	_, errno := q.d.PostSend(q.qp, wr)
	must(q.t, errno)
	wc := q.completion()
	want(q.t, "status", wc.Status, 0)
	return wc
}

// TestWindows has peers write through windows as long as these are bound, and under the last key only.
func TestWindows(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind uint32
		end  func(server, client *queue, w *window, r *region)
	}{
		{"type 1, bound to nothing", 1, func(server, _ *queue, w *window, r *region) {
			wr := w.bindTo(r, 0)
			wr.bind().MR, wr.bind().Length = nil, 0
			want(t, "operation", server.did(wr).Opcode, wcBindMW)
			want(t, "a local invalidation of type 1", invalidated(server, w.key), syscall.EINVAL)
		}},
		{"type 1, deallocated", 1, func(server, _ *queue, w *window, _ *region) {
			must(t, server.d.DeallocWindow(w.h))
			want(t, "again", server.d.DeallocWindow(w.h), syscall.EINVAL)
		}},
		{"type 2, invalidated here", 2, func(server, _ *queue, w *window, _ *region) {
			want(t, "operation", server.did(&SendWR{Opcode: wrLocalInv, Imm: w.key}).Opcode, wcLocalInv)
		}},
		{"type 2, invalidated by the peer", 2, func(server, client *queue, w *window, _ *region) {
			server.recv(7, server.region("....", accessLocalWrite))
			client.did(&SendWR{Opcode: wrSendInv, Imm: w.key})
			got := server.completion()
			want(t, "invalidated", got.Invalidated, w.key)
			want(t, "flags", got.Flags, wcWithInv)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, server, _, _ := connect(t)
			r := server.region("....", accessLocalWrite|accessMWBind)
			w := server.window(tt.kind)
			want(t, "operation", server.did(w.bindTo(r, accessRemoteWrite)).Opcode, wcBindMW)
			want(t, "a bound region is deregistered", server.d.DeregisterMR(r.mr), syscall.EBUSY)
			data := client.region("good", 0)
			client.did(&SendWR{SGL: data.sge(), SGEs: 1, Opcode: wrWrite, RemoteAddr: r.at(), RKey: w.key})
			client.did(&SendWR{Opcode: wrRead}) // no bytes: the answer tells that the Write is in place
			want(t, "written", string(r.memory), "good")

			key := w.key
			tt.end(server, client, w, r)
			must(t, server.d.DeregisterMR(r.mr))
			client.send(5, wrWrite, client.region("evil", 0), &region{key: key, memory: r.memory})
			client.event(Disconnected)
			want(t, "written", string(r.memory), "good")
		})
	}
}

// TestWindowWithoutRights binds a window that gives the peer nothing: a Write is refused, whatever the region allows.
func TestWindowWithoutRights(t *testing.T) {
	for _, kind := range []uint32{1, 2} {
		client, server, _, _ := connect(t)
		r := server.region("....", accessLocalWrite|accessRemoteWrite|accessMWBind)
		w := server.window(kind)
		want(t, "operation", server.did(w.bindTo(r, accessLocalWrite)).Opcode, wcBindMW)
		client.send(5, wrWrite, client.region("evil", 0), &region{key: w.key, memory: r.memory})
		client.event(Disconnected)
		want(t, "written", string(r.memory), "....")
	}
}

func invalidated(q *queue, rkey uint32) syscall.Errno {
	_, errno := q.d.PostSend(q.qp, &SendWR{Opcode: wrLocalInv, Imm: rkey})
	return errno
}

// TestWrongWindows refuses what cannot be bound, when it is posted.
func TestWrongWindows(t *testing.T) {
	client, _, _, _ := connect(t)
	d := client.d
	good := client.region("....", accessLocalWrite|accessMWBind)
	w := client.window(2)
	for what, change := range map[string]func(*bindArgs){
		"no window":                 func(b *bindArgs) { b.Window = nil },
		"no region":                 func(b *bindArgs) { b.MR = nil },
		"another window's key":      func(b *bindArgs) { b.RKey ^= 1 << 8 },
		"rights that there are not": func(b *bindArgs) { b.Access = 1 << 6 },
		"no bytes":                  func(b *bindArgs) { b.Length = 0 },
		"beyond the region":         func(b *bindArgs) { b.Length++ },
		"before the region":         func(b *bindArgs) { b.Addr-- },
		"a region that must not be bound to": func(b *bindArgs) {
			b.MR.LKey = client.region("....", accessLocalWrite).key
		},
		"a region that is only read": func(b *bindArgs) { b.MR.LKey = client.region("....", accessMWBind).key },
	} {
		wr := w.bindTo(good, accessRemoteWrite)
		change(wr.bind())
		_, errno := d.PostSend(client.qp, wr)
		want(t, what, errno, syscall.EINVAL)
	}
	_, _, errno := d.AllocWindow(client.pd, 3)
	want(t, "a third type", errno, syscall.EINVAL)
	want(t, "a PD with a window", d.DeallocPD(client.pd), syscall.EBUSY)
	want(t, "a key of nothing", invalidated(client, 0x12345600), syscall.EINVAL)
	must(t, d.DeallocWindow(w.h))
	want(t, "a window that was deallocated", invalidated(client, w.key), syscall.EINVAL)
}

// TestReregister changes what is asked for, under the same keys, and leaves a region as it is where that fails.
func TestReregister(t *testing.T) {
	client, server, _, _ := connect(t)
	d := server.d
	r := server.region("....", accessLocalWrite)
	other, errno := d.AllocPD()
	must(t, errno)
	again := func(flags uint32, pd Handle, addr unsafe.Pointer, n uint64, access uint32) syscall.Errno {
		return d.ReregisterMR(r.mr, flags, pd, addr, n, access)
	}
	want(t, "nothing to change", again(0, 0, nil, 0, 0), syscall.EINVAL)
	want(t, "a flag that there is not", again(8, 0, nil, 0, 0), syscall.EINVAL)
	want(t, "rights that make no sense", again(changeAccess, 0, nil, 0, accessRemoteWrite), syscall.EINVAL)
	want(t, "no such PD", again(changePD, 0, nil, 0, 0), syscall.EINVAL)
	want(t, "memory of nobody's", again(changeTranslation, 0, unsafe.Add(nil, 4096), 8, 0), syscall.EFAULT)

	must(t, again(changeAccess, 0, nil, 0, accessLocalWrite|accessRemoteWrite|accessRemoteRead|accessMWBind))
	client.send(1, wrWrite, client.region("good", 0), r)
	want(t, "status", client.completion().Status, 0)
	client.send(2, wrRead, client.region("....", accessLocalWrite), r)
	want(t, "status", client.completion().Status, 0)
	want(t, "written", string(r.memory), "good")

	must(t, again(changePD, other, nil, 0, 0))
	want(t, "the PD with the region", d.DeallocPD(other), syscall.EBUSY)
	must(t, again(changePD, server.pd, nil, 0, 0))
	must(t, d.DeallocPD(other))

	w := server.window(1)
	server.did(w.bindTo(r, accessRemoteRead))
	want(t, "a region with a window", again(changeAccess, 0, nil, 0, 0), syscall.EBUSY)
	must(t, d.DeallocWindow(w.h))

	memory := []byte("two places")
	must(t, again(changeTranslation|changeAccess, 0, unsafe.Pointer(&memory[0]), uint64(len(memory)), accessRemoteRead))
	into := client.region("..........", accessLocalWrite)
	client.send(3, wrRead, into, &region{memory: memory, key: r.key})
	want(t, "status", client.completion().Status, 0)
	want(t, "read", string(into.memory), "two places")
	must(t, d.DeregisterMR(r.mr))
	want(t, "a region that is gone", again(changeAccess, 0, nil, 0, 0), syscall.EINVAL)
}

// TestInvalidateByKey: a local invalidation names a window by the key that it has then, also by one that a request
// before it gives. By another it fails.
func TestInvalidateByKey(t *testing.T) {
	_, server, _, _ := connect(t)
	r := server.region("....", accessLocalWrite|accessMWBind)
	w := server.window(2)
	bind := w.bindTo(r, accessRemoteWrite)
	bind.Next = &SendWR{ID: 100, Opcode: wrLocalInv, Imm: w.key}
	_, errno := server.d.PostSend(server.qp, bind)
	must(t, errno)
	for id := range uint64(2) {
		wc := server.completion()
		want(t, "completion", [2]uint64{wc.ID, uint64(wc.Status)}, [2]uint64{99 + id, 0})
	}
	server.did(w.bindTo(r, accessRemoteWrite))
	must(t, invalidated(server, w.key^0x55))
	want(t, "by another key", server.completion().Status, statusOf(iwarp.StatusInvalidateFailed))
}
