//go:build linux && (amd64 || arm64)

package verbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// TestHandles names objects by numbers that are never 0, and that mean nothing any more when the object is gone.
func TestHandles(t *testing.T) {
	tab := table[int]{kind: kindCQ}
	if tab.get(kindCQ|1<<8) != nil || tab.remove(5) != nil {
		t.Error("an empty table has something")
	}
	seen := map[Handle]bool{}
	for i := range 1000 {
		v := i
		h := tab.add(&v)
		if h == 0 || uint32(h) == 0 || seen[h] || tab.get(h) != &v || tab.find(uint32(h)) != &v {
			t.Fatalf("%d: handle %#x", i, uint64(h))
		}
		seen[h] = true
		if tab.get(h-kindCQ+kindQP) != nil {
			t.Fatal("a handle of another kind names it")
		}
		if tab.remove(h) != &v || tab.remove(h) != nil || tab.get(h) != nil {
			t.Fatal("taken twice")
		}
	}
	if tab.next > 100 {
		t.Errorf("%d indexes for one object at a time", tab.next)
	}
}

// TestFull has no more numbers than there are, and takes those that come free.
func TestFull(t *testing.T) {
	tab := table[int]{kind: kindMR}
	first := tab.add(new(int))
	tab.next = maxIndex
	want(t, "a handle of a full table", tab.add(new(int)), 0)
	tab.remove(first)
	if again := tab.add(new(int)); again == 0 || again == first {
		t.Errorf("%#x after %#x", again, first)
	}
}

// TestQueue has the descriptor readable as long as there is an event.
func TestQueue(t *testing.T) {
	q := newQueue[int](eventfd(t), nil)
	holds := func(want bool) {
		t.Helper()
		if got := readable(t, q.fd); got != want {
			t.Fatalf("readable: %v", got)
		}
	}
	holds(false)
	q.push()
	holds(false)
	q.push(1, 2)
	q.push(3)
	holds(true)
	if e, ok := q.next(); e != 1 || !ok {
		t.Error(e, ok)
	}
	holds(true)
	if got := fmt.Sprint(q.remove(func(e int) bool { return e == 3 })); got != "[3]" {
		t.Error(got)
	}
	holds(true)
	if e, ok := q.next(); e != 2 || !ok {
		t.Error(e, ok)
	}
	holds(false)
	if _, ok := q.next(); ok {
		t.Error("an event of an empty queue")
	}
	q.push(4)
	q.remove(func(int) bool { return true })
	holds(false)
}

// TestQueueWakes has those who wait woken when they can find an event, and not any more when the queue is closed.
func TestQueueWakes(t *testing.T) {
	woken, found := 0, 0
	var q *Queue[int]
	q = newQueue[int](eventfd(t), func() {
		woken++
		found = len(q.events)
	})
	q.push()
	want(t, "woken for nothing", woken, 0)
	q.push(1)
	q.push(2, 3)
	want(t, "woken", woken, 2)
	want(t, "events that they find", found, 3)
	q.next()
	q.close()
	q.push(4)
	want(t, "woken", woken, 2)
}

// TestQueueOfProgram goes on where a program reads its descriptor by itself, or has written as much to it as it takes:
// with the descriptor blocking, as it is by default.
func TestQueueOfProgram(t *testing.T) {
	q := newQueue[int](eventfd(t), nil)
	var count [8]byte
	for _, does := range []func(int, []byte) (int, error){syscall.Read, syscall.Write} {
		binary.NativeEndian.PutUint64(count[:], math.MaxUint64-2) // and one is there
		q.push(1)
		if _, err := does(q.fd, count[:]); err != nil {
			t.Fatal(err)
		}
		if e, ok := q.next(); e != 1 || !ok {
			t.Error(e, ok)
		}
		want(t, "readable", readable(t, q.fd), false)
	}
	binary.NativeEndian.PutUint64(count[:], math.MaxUint64-1)
	if _, err := syscall.Write(q.fd, count[:]); err != nil {
		t.Fatal(err)
	}
	q.push(2)
	if e, ok := q.next(); e != 2 || !ok {
		t.Error(e, ok)
	}
}

// TestLayout has the offsets that programs/preload/layout.c checks on the other side.
func TestLayout(t *testing.T) {
	var s SendWR
	var r RecvWR
	var e SGE
	var w WC
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"ibv_send_wr", unsafe.Sizeof(s), 128}, {"next", unsafe.Offsetof(s.Next), 8},
		{"sg_list", unsafe.Offsetof(s.SGL), 16},
		{"num_sge", unsafe.Offsetof(s.SGEs), 24}, {"opcode", unsafe.Offsetof(s.Opcode), 28},
		{"send_flags", unsafe.Offsetof(s.Flags), 32},
		{"imm_data", unsafe.Offsetof(s.Imm), 36}, {"remote_addr", unsafe.Offsetof(s.RemoteAddr), 40},
		{"rkey", unsafe.Offsetof(s.RKey), 48},
		{"compare_add", unsafe.Offsetof(s.RemoteAddr) + unsafe.Offsetof(s.atomic().CompareAdd), 48},
		{"swap", unsafe.Offsetof(s.RemoteAddr) + unsafe.Offsetof(s.atomic().Swap), 56},
		{"rkey", unsafe.Offsetof(s.RemoteAddr) + unsafe.Offsetof(s.atomic().RKey), 64},
		{"ibv_recv_wr", unsafe.Sizeof(r), 32}, {"next", unsafe.Offsetof(r.Next), 8},
		{"sg_list", unsafe.Offsetof(r.SGL), 16},
		{"num_sge", unsafe.Offsetof(r.SGEs), 24},
		{"ibv_sge", unsafe.Sizeof(e), 16}, {"length", unsafe.Offsetof(e.Length), 8},
		{"lkey", unsafe.Offsetof(e.LKey), 12},
		{"ibv_wc", unsafe.Sizeof(w), 48}, {"status", unsafe.Offsetof(w.Status), 8},
		{"opcode", unsafe.Offsetof(w.Opcode), 12},
		{"vendor_err", unsafe.Offsetof(w.VendorErr), 16}, {"byte_len", unsafe.Offsetof(w.ByteLen), 20},
		{"invalidated_rkey", unsafe.Offsetof(w.Invalidated), 24}, {"qp_num", unsafe.Offsetof(w.QPNum), 28},
		{"src_qp", unsafe.Offsetof(w.SrcQP), 32}, {"wc_flags", unsafe.Offsetof(w.Flags), 36},
	} {
		want(t, c.what, c.got, c.want)
	}
}

// TestErrno has the error numbers of the manual pages.
func TestErrno(t *testing.T) {
	for err, errno := range map[error]syscall.Errno{
		nil:                    fine,
		iwarp.ErrQueueFull:     syscall.ENOMEM,
		iwarp.ErrBadState:      syscall.EINVAL,
		os.ErrPermission:       syscall.EINVAL,
		syscall.EADDRINUSE:     syscall.EADDRINUSE,
		os.ErrDeadlineExceeded: syscall.ETIMEDOUT,
	} {
		want(t, fmt.Sprint(err), errnoOf(err), errno)
		if err != nil {
			want(t, "wrapped "+err.Error(), errnoOf(&iwarp.OpError{Err: errors.Join(err)}), errno)
		}
	}
	want(t, "a status that nobody knows", statusOf(iwarp.Status(200)), statusGeneral)
}

// FuzzSockaddr reads socket addresses of any content, and writes what it has read.
func FuzzSockaddr(f *testing.F) {
	for _, a := range []string{"127.0.0.1:1", "[::1]:65535", "[fe80::1%1]:7", "[::ffff:10.0.0.1]:9"} {
		var b [SockaddrLen]byte
		PutSockaddr(&b, netip.MustParseAddrPort(a))
		f.Add(b[:])
	}
	f.Add([]byte{2, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, ok := ParseSockaddr(data)
		if !ok {
			return
		}
		var b [SockaddrLen]byte
		PutSockaddr(&b, a)
		again, ok := ParseSockaddr(b[:])
		if !ok || again.Port() != a.Port() || again.Addr().WithZone("") != a.Addr().WithZone("") {
			t.Errorf("%v became %v", a, again)
		}
	})
}
