package target

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestZeroesByHand has a system make no zeroes in a file: they are written, there and nowhere else.
func TestZeroesByHand(t *testing.T) {
	fd, err := unix.MemfdCreate("disk", 0) // Linux has no ZERO_RANGE for one
	testrig.Must(t, err)
	f := os.NewFile(uintptr(fd), "disk")
	defer f.Close()
	if err := zero(f, 0, 512); err == nil {
		t.Skip("this system has")
	}
	d, want := &File{f: f}, bytes.Repeat([]byte{0xEE}, 3*zeroesLen)
	for _, c := range [][2]int{{512, 512}, {0, 2 * zeroesLen}, {4096, 2*zeroesLen + 512}, {100, 0}} {
		_, err = f.WriteAt(bytes.Repeat([]byte{0xEE}, len(want)), 0)
		testrig.Must(t, err)
		testrig.Must(t, d.WriteZeroes(int64(c[0]), int64(c[1]), false))
		got := make([]byte, len(want))
		_, err = f.ReadAt(got, 0)
		testrig.Must(t, err)
		if !bytes.Equal(got[:c[0]], want[:c[0]]) || bytes.Count(got[c[0]:][:c[1]], []byte{0}) != c[1] ||
			!bytes.Equal(got[c[0]+c[1]:], want[c[0]+c[1]:]) {
			t.Errorf("%d bytes at %d: not as they should be", c[1], c[0])
		}
	}
	testrig.Must(t, f.Close())
	if d.WriteZeroes(0, 512, false) == nil {
		t.Error("zeroes in a file that is closed")
	}
}

// TestNoHoles has a device make no holes: zeroes are written, and a Discard is told as not supported.
func TestNoHoles(t *testing.T) {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	testrig.Must(t, err)
	defer f.Close()
	d := &File{f: f}
	testrig.Must(t, d.WriteZeroes(0, 512, true))
	testrig.Must(t, d.WriteZeroes(0, 512, false))
	if err := d.Discard(0, 512); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a hole: %v", err)
	}
}

// TestReserved has zeroes stay reserved unless that need not be.
func TestReserved(t *testing.T) {
	at := filepath.Join(t.TempDir(), "disk")
	const size = 1 << 20
	testrig.Must(t, Create(at, size, 512))
	d, err := OpenFile(at, 512, false)
	testrig.Must(t, err)
	defer d.Close()
	if !d.DiscardsToZero() {
		t.Skip("no holes on this file system")
	}
	for _, deallocate := range []bool{false, true} {
		_, err = d.WriteAt(bytes.Repeat([]byte{1}, size), 0)
		testrig.Must(t, err)
		testrig.Must(t, d.Flush())
		testrig.Must(t, d.WriteZeroes(0, size, deallocate))
		testrig.Must(t, d.f.Sync())
		info, err := os.Stat(at)
		testrig.Must(t, err)
		if got := info.Sys().(*syscall.Stat_t).Blocks * 512; (got < size/2) != deallocate {
			t.Errorf("deallocate: %t: %d bytes of %d are reserved", deallocate, got, size)
		}
	}
}
