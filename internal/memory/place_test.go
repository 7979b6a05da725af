package memory

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// Bytes are placed as they are, at any alignment and length, and none beside them.
//
// Proves Z10.
func TestPlace(t *testing.T) {
	for from := range 9 {
		for n := range 40 {
			buf, want := make([]byte, 64), make([]byte, 64)
			src := numbered(n)
			place(buf[from:from+n], layout.Plain(src))
			copy(want[from:], src)
			if !bytes.Equal(buf, want) {
				t.Fatalf("%d bytes at %d: % x", n, from, buf)
			}
		}
	}
}

// Bytes that come with markers between them are placed without, also where one stands in
// the word that is stored at once.
//
// Proves F12, Z10.
func TestPlaceMarked(t *testing.T) {
	for offset := range uint64(20) {
		for n := 490; n < 530; n++ {
			at := layout.MarkerInterval - 10 + offset
			src := numbered(n)
			buf, want := make([]byte, n+8), make([]byte, n+8)
			copy(want, src)
			var stream []byte
			for _, c := range src {
				if (at+uint64(len(stream)))%layout.MarkerInterval == 0 {
					stream = layout.AppendMarker(stream, 0xffff)
				}
				stream = append(stream, c)
			}
			place(buf[:n], layout.ContentAt(stream, n, at, true))
			if !bytes.Equal(buf, want) {
				t.Fatalf("%d bytes from %d: % x", n, at, buf)
			}
		}
	}
}

// A Write's last bytes are one word where their place in memory and their number
// allow it, so that a Write of four bytes is one store.
//
// Proves Z10.
func TestLastWord(t *testing.T) {
	buf := make([]byte, 64+7)
	buf = buf[-uintptr(unsafe.Pointer(&buf[0]))%8:] // from a multiple of eight on, with 32 bits too
	for _, tt := range []struct{ from, n, want int }{
		{0, 0, 0}, {8, 0, 0}, {1, 3, 0}, {4, 3, 0},
		{0, 4, 4}, {4, 4, 4}, {8, 4, 4}, {2, 4, 0},
		{1, 7, 4}, {0, 7, 0}, {0, 8, 8}, {4, 8, 4}, {1, 8, 0}, {2, 8, 0},
		{7, 9, 8}, {3, 9, 4}, {0, 12, 4}, {4, 12, 8}, {0, 64, 8}, {0, 63, 0}, {0, 62, 0}, {0, 60, 4},
	} {
		if got := lastWord(buf[tt.from : tt.from+tt.n]); got != tt.want {
			t.Errorf("%d bytes at %d: %d, want %d", tt.n, tt.from, got, tt.want)
		}
	}
}

// A consumer waits for a peer's Write by loading its last bytes atomically, eight
// where they are aligned, or else four. When it sees them it sees the whole Write:
// the race detector agrees.
func TestPolledWrite(t *testing.T) {
	for _, n := range []int{4, 8, 12, 64, 1000, 4096 + 4} {
		table := NewTable()
		buf := make([]byte, 8192)[:n] // at a multiple of eight
		r, err := table.Register(buf, Options{Access: RemoteWrite, PD: pd})
		testrig.Must(t, err)
		sent := numbered(n)
		var wg sync.WaitGroup
		wg.Go(func() {
			if f := local(table).Place(r.STag(), 0, layout.Plain(sent)); f != None {
				t.Error(f)
			}
		})
		if n%8 == 0 {
			for atomic.LoadUint64((*uint64)(unsafe.Pointer(&buf[n-8]))) == 0 {
			}
		} else {
			for atomic.LoadUint32((*uint32)(unsafe.Pointer(&buf[n-4]))) == 0 {
			}
		}
		if !bytes.Equal(buf, sent) {
			t.Errorf("%d bytes: saw the last ones, and not all others", n)
		}
		wg.Wait()
	}
}

// Peers that write and read the same bytes at the same time, and the owner among
// them, see each other's copies whole: no bytes are old while others of the same
// segment are new.
func TestOverlap(t *testing.T) {
	const n = 1000
	table := NewTable()
	buf := make([]byte, 5*n)
	r, err := table.Register(buf, Options{Access: allRemote, PD: pd})
	testrig.Must(t, err)
	d := local(table)
	var wg sync.WaitGroup
	put := func(place func(p []byte)) {
		wg.Go(func() {
			for i := range 200 {
				place(bytes.Repeat([]byte{byte(i)}, n))
			}
		})
	}
	get := func(load func(p []byte)) {
		wg.Go(func() {
			p := make([]byte, n)
			for range 200 {
				load(p)
				if !bytes.Equal(p, bytes.Repeat(p[:1], n)) {
					t.Error("a copy of bytes of two Writes")
					return
				}
			}
		})
	}
	put(func(p []byte) { d.Place(r.STag(), n, layout.Plain(p)) })
	put(func(p []byte) { d.LocalPlace(r, new(Term), n, layout.Plain(p)) })
	put(func(p []byte) { r.WriteAt(p, n) })
	put(func(p []byte) { r.Update(func(b []byte) { copy(b[n:], p) }) })
	get(func(p []byte) { d.Load(into(p), n, r.STag(), n) })
	get(func(p []byte) { d.LocalLoad(into(p), r, new(Term), n, n) })
	get(func(p []byte) { r.ReadAt(p, n) })
	get(func(p []byte) { r.Update(func(b []byte) { copy(p, b[n:]) }) })
	wg.Wait()
}

// However large a region, its locks are few, cover all of it, and two accesses of a
// segment's length share one only where they are near each other.
func TestStripes(t *testing.T) {
	for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 1 << 20, 1<<20 + 1, 1 << 30} {
		s := newStripes(size)
		if n := len(s.mu); n < 1 || n > maxStripes {
			t.Errorf("%d bytes: %d locks", size, n)
		}
		if got := len(s.of(0, size)); got != len(s.mu) {
			t.Errorf("%d bytes: %d of %d locks for all of them", size, got, len(s.mu))
		}
		if n := len(s.mu); size > 1<<20 && n <= maxStripes/2 {
			t.Errorf("%d bytes: %d locks", size, n)
		}
		if size > 0 {
			if got := s.of(size-1, 1); len(got) != 1 || &got[0] != &s.mu[len(s.mu)-1] {
				t.Errorf("%d bytes: not the last lock for the last byte", size)
			}
		}
	}
	s := newStripes(1 << 20)
	if len(s.of(0, 64<<10)) != 1 || len(s.of(1, 64<<10)) != 2 {
		t.Error("64 KiB take more locks than they need")
	}
}

// ReadAt, WriteAt and Update end with the registration.
//
// Proves Z13.
func TestOwnAccess(t *testing.T) {
	table := NewTable()
	r, buf := register(t, table, Options{PD: pd})
	got := make([]byte, 3)
	if r.WriteAt([]byte("abc"), 29) != None || !readsAt(r, got, 29) || string(got) != "abc" ||
		string(buf[45:48]) != "abc" {
		t.Errorf("%q", got)
	}
	if r.Update(func(b []byte) { copy(b[1:], "de") }) != None || string(buf[17:19]) != "de" {
		t.Errorf("% x", buf)
	}
	if !readsAt(r, nil, 32) || r.WriteAt(nil, 32) != None {
		t.Error("nothing, at the end")
	}
	local(table).LocalInvalidate(r)
	if !readsAt(r, got, 0) {
		t.Error("the owner may read what is invalidated")
	}
	table.Revoke(r)
	called := false
	if readsAt(r, got, 0) || r.WriteAt(got, 0) != InvalidSTag || readsAt(r, nil, 0) ||
		r.WriteAt(nil, 0) != InvalidSTag || r.Update(func([]byte) { called = true }) != InvalidSTag || called {
		t.Error("revoked, and still reached")
	}
}

// readsAt reports whether the region gives as many bytes as dst takes.
func readsAt(r *Region, dst []byte, off int) bool {
	n, f := r.ReadAt(dst, off)
	return f == None && n == len(dst)
}
