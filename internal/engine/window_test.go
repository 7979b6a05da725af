package engine

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// windowOf allocates a window of the second type, and one of the first.
func (h *host) windowOf(first bool) *memory.Window {
	h.Helper()
	w, err := h.table.AllocateWindow(testPD, first)
	testrig.Must(h, err)
	return w
}

// bind is a request to bind a window to all of a region of regionLen bytes.
func bind(id uint64, w *memory.Window, r *memory.Region, a memory.Access) SendWork {
	return SendWork{ID: id, Op: OpBind, Bind: &Bind{w,
		memory.Binding{Region: r, Length: regionLen, Base: 100, Access: a, Key: 5}}}
}

const windowAll = memory.RemoteRead | memory.RemoteWrite | memory.RemoteAtomic

// RDMA verbs 7: at an access through a window its own rights count, bounds and the stream that it
// belongs to.
//
// Proves P24, P25, Z10, Z11: with the codes for it.
func TestAccessByWindow(t *testing.T) {
	for _, tt := range []struct {
		name        string
		access      memory.Access
		d           memory.Domain // on which it is bound
		first       bool
		key         uint32 // too much
		to          uint64
		write, read rdmap.Code
	}{
		{"within", windowAll, memory.Domain{PD: testPD, Stream: testStream}, false, 0, 100, 0, 0},
		{"last bytes", windowAll, memory.Domain{PD: testPD, Stream: testStream}, false, 0, 100 + regionLen - 2, 0, 0},
		{"one byte too far", windowAll, memory.Domain{PD: testPD, Stream: testStream}, false, 0,
			100 + regionLen - 1, 0x1101, 0x0101},
		{"one before", windowAll, memory.Domain{PD: testPD, Stream: testStream}, false, 0, 99, 0x1101, 0x0101},
		{"no right to read", memory.RemoteWrite, memory.Domain{PD: testPD, Stream: testStream},
			false, 0, 100, 0, 0x0102},
		{"no right to write", memory.RemoteRead, memory.Domain{PD: testPD, Stream: testStream},
			false, 0, 100, 0x1102, 0},
		{"another key", windowAll, memory.Domain{PD: testPD, Stream: testStream}, false, 1, 100, 0x1100, 0x0100},
		{"another stream's", windowAll, memory.Domain{PD: testPD, Stream: testStream + 1},
			false, 0, 100, 0x1102, 0x0103},
		{"of the first type, bound elsewhere", windowAll,
			memory.Domain{PD: testPD, Stream: testStream + 1}, true, 0, 100, 0, 0},
		{"not bound", 0, memory.Domain{}, false, 0, 100, 0x1100, 0x0100},
	} {
		for _, reads := range []bool{false, true} {
			c := newRegions(responder(t))
			w := c.windowOf(tt.first)
			if tt.access != 0 {
				tt.d.Table = c.table
				if f := tt.d.Bind(w, bind(1, w, c.local, tt.access).Bind.Binding); f != memory.None {
					t.Fatal(f)
				}
			}
			f, code := write(w.STag()+tt.key, tt.to, []byte("ab")), tt.write
			if reads {
				f, code = request(1, rdmap.ReadRequest{Size: 2, SrcSTag: w.STag() + tt.key, SrcTO: tt.to}), tt.read
			}
			c.send(f)
			switch at := 16 + int(tt.to-100); {
			case code != 0:
				c.wantTerminate(terminateFor(code, f))
				c.untouched()
			case reads:
				c.want(response(0, 0, numbered(64)[at:at+2]))
			case string(c.buf[at:at+2]) != "ab":
				t.Errorf("%s: not written", tt.name)
			}
		}
	}
}

// RDMA verbs 8.3: what a peer's Send may not invalidate of windows, and of regions to which they are bound.
//
// Proves P35: by which codes it ends.
func TestInvalidateByWindow(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stag  func(c *regions, w, first *memory.Window) uint32
		other bool // the window is another stream's
		code  rdmap.Code
	}{
		{"bound here", func(_ *regions, w, _ *memory.Window) uint32 { return w.STag() }, false, 0},
		{"bound elsewhere", func(_ *regions, w, _ *memory.Window) uint32 { return w.STag() }, true, 0x0109},
		{"of the first type", func(_ *regions, _, first *memory.Window) uint32 { return first.STag() }, false, 0x0109},
		{"a region with windows", func(c *regions, _, _ *memory.Window) uint32 { return c.ours.STag() }, false, 0x0109},
		{"another key", func(_ *regions, w, _ *memory.Window) uint32 { return w.STag() ^ 1 }, false, 0x0100},
		{"not bound", func(c *regions, w, _ *memory.Window) uint32 {
			c.Machine.cfg.Memory.LocalInvalidate(w)
			return w.STag()
		}, false, 0x0100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newRegions(responder(t))
			w, first, d := c.windowOf(false), c.windowOf(true), c.Machine.cfg.Memory
			if tt.other {
				d.Stream++
			}
			for _, w := range []*memory.Window{w, first} {
				if f := d.Bind(w, bind(1, w, c.ours, windowAll).Bind.Binding); f != memory.None {
					t.Fatal(f)
				}
			}
			c.receive(1)
			f := sendAs(rdmap.OpSendInvalidate, 1, tt.stag(c, w, first), nil)
			c.send(f)
			if tt.code != 0 {
				c.wantTerminate(terminateFor(tt.code, f))
				c.completion(Completion{ID: 1, Op: OpReceive, Status: StatusRemoteInvalidate, Invalidated: f.H.ULP})
				return
			}
			c.completion(Completion{ID: 1, Op: OpReceive, HasInvalid: true, Invalidated: f.H.ULP})
			bad := write(f.H.ULP, 100, []byte("x"))
			c.send(bad)
			c.wantTerminate(terminateFor(0x1100, bad))
			c.untouched()
		})
	}
}

// RDMA verbs 8: a bind and an invalidation take effect before any later request starts, and do not
// wait for earlier ones; completions keep the order of posting.
func TestBindInOrder(t *testing.T) {
	p := initiator(t)
	buf := make([]byte, regionLen)
	r, w := p.region(buf, memory.LocalWrite), p.windowOf(false)
	rd := work(1, OpRead, all(p.region(make([]byte, 4), memory.LocalWrite), 4))
	p.post(rd)
	p.post(bind(2, w, r, memory.RemoteWrite))
	p.post(work(3, OpSend))
	asked, _ := p.next()
	p.want(send(1, nil)) // it tells the peer of the window, say
	p.noCompletion()
	p.send(write(w.STag(), 100, []byte("ab")))
	if string(buf[:2]) != "ab" {
		t.Fatalf("%q", buf[:2])
	}
	p.post(SendWork{ID: 4, Op: OpLocalInvalidate, Target: w})
	p.post(bind(5, w, r, memory.RemoteRead)) // as it is invalid by then
	p.wantNothing()
	read, _ := rdmap.ParseReadRequest(asked.Payload)
	p.send(response(read.SinkSTag, read.SinkTO, []byte("abcd")))
	p.completion(success(1, OpRead, 4), success(2, OpBind, 0), success(3, OpSend, 0),
		success(4, OpLocalInvalidate, 0), success(5, OpBind, 0))
	bad := write(w.STag(), 100, []byte("cd"))
	p.send(bad)
	p.wantTerminate(terminateFor(0x1102, bad))
	if string(buf[:2]) != "ab" {
		t.Errorf("%q", buf[:2])
	}
}

// RDMA verbs 8: a local operation with a fence waits for all earlier requests: for Reads until
// they are answered, and for others until the LLP has them.
func TestLocalFence(t *testing.T) {
	p := initiator(t)
	r, w := p.region(make([]byte, regionLen), memory.LocalWrite), p.windowOf(false)
	fenced := bind(2, w, r, memory.RemoteWrite)
	fenced.Fence = true
	p.post(work(1, OpRead, all(r, 4)))
	p.post(fenced)
	asked, _ := p.next()
	p.wantNothing()
	if w.Valid() {
		t.Error("bound while a Read is under way")
	}
	read, _ := rdmap.ParseReadRequest(asked.Payload)
	p.send(response(read.SinkSTag, read.SinkTO, []byte("abcd")))
	p.wantNothing()
	p.completion(success(1, OpRead, 4), success(2, OpBind, 0))

	p.host.window = 10 // bytes that the LLP takes
	p.post(work(3, OpSend, all(r, 4)))
	p.post(SendWork{ID: 4, Op: OpLocalInvalidate, Target: w, Fence: true})
	p.sent = append(p.sent, p.output()...)
	p.noCompletion()
	if !w.Valid() {
		t.Error("invalidated while a Send is under way")
	}
	p.host.window = -1
	p.want(send(1, []byte("abcd")))
	p.completion(success(3, OpSend, 4), success(4, OpLocalInvalidate, 0))
}

// RDMA verbs 8.3: a bind that fails completes in error, and ends the connection with 0x0000.
func TestBindFails(t *testing.T) {
	for name, w := range map[string]func(c *regions) SendWork{
		"a window that is bound": func(c *regions) SendWork {
			w := c.windowOf(false)
			c.post(bind(9, w, c.r, windowAll))
			c.wantNothing()
			c.completion(success(9, OpBind, 0))
			return bind(2, w, c.r, windowAll)
		},
		"a region without LocalWrite": func(c *regions) SendWork {
			return bind(2,
				c.windowOf(false), c.read, windowAll)
		},
		"invalidated memory": func(c *regions) SendWork { return bind(2, c.windowOf(true), c.void, windowAll) },
		"revoked memory":     func(c *regions) SendWork { return bind(2, c.windowOf(false), c.gone, windowAll) },
		"another Protection Domain": func(c *regions) SendWork {
			return bind(2,
				c.windowOf(false), c.other, windowAll)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newRegions(initiator(t))
			c.post(w(c))
			c.post(work(3, OpSend))
			c.wantTerminate(terminate(0x0000))
			c.completion(failed(2, OpBind, StatusBindFailed), flushed(3, OpSend))
			c.untouched()
		})
	}
}

// The response to a Read goes to what was its sink when it was asked for, and not to what the consumer
// has registered under the same index since.
//
// Proves Z10.
func TestReadIntoAnotherRegistration(t *testing.T) {
	for _, whole := range []bool{true, false} {
		p := initiator(t)
		r, err := p.table.Allocate(testPD, memory.Most{Pieces: 1, Bytes: 8})
		testrig.Must(t, err)
		one, two := make([]byte, 8), make([]byte, 8)
		register := func(id uint64, buf []byte) SendWork {
			return SendWork{ID: id, Op: OpFastRegister,
				Register: &Register{r, memory.Registration{Memory: [][]byte{buf},
					Access: memory.LocalWrite, Key: uint8(id)}}}
		}
		p.post(register(1, one))
		p.post(work(2, OpRead, all(r, 4)))
		p.post(SendWork{ID: 3, Op: OpLocalInvalidate, Target: r})
		p.post(register(4, two))
		asked, _ := p.next()
		read, _ := rdmap.ParseReadRequest(asked.Payload)
		resp := response(read.SinkSTag, read.SinkTO, []byte("abcd"))
		if !whole {
			resp.Payload = resp.Payload[:2]
			resp = resp.more()
		}
		p.send(resp)
		p.wantTerminate(terminateFor(0x1100, resp))
		p.completion(success(1, OpFastRegister, 0), failed(2, OpRead, StatusLocalProtection),
			success(3, OpLocalInvalidate, 0), success(4, OpFastRegister, 0))
		if string(one)+string(two) != string(make([]byte, 16)) {
			t.Errorf("%q %q", one, two)
		}
	}
}

// RDMA verbs 8.3: a registration by a request that fails completes in error, and ends the connection with 0x0000.
func TestFastRegisterFails(t *testing.T) {
	p := initiator(t)
	r, err := p.table.Allocate(testPD, memory.Most{Pieces: 1, Bytes: 8})
	testrig.Must(t, err)
	w := SendWork{ID: 1, Op: OpFastRegister, Register: &Register{r,
		memory.Registration{Memory: [][]byte{make([]byte, 8)}}}}
	p.post(w)
	p.post(w) // it is valid
	p.post(work(2, OpSend))
	p.wantTerminate(terminate(0x0000))
	p.completion(success(1, OpFastRegister, 0), failed(1, OpFastRegister, StatusRegisterFailed), flushed(2, OpSend))
}
