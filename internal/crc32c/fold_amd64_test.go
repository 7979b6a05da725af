//go:build !purego && !race && !msan && !asan

package crc32c

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// The constants are powers of x, in the reflected order, modulo the polynomial.
func TestPowers(t *testing.T) {
	power := func(n int) (p uint64) { // x^n: a register that begins as 1 is shifted n times
		p = 1 << 31
		for range n {
			p = p>>1 ^ (p&1)*0x82f63b78
		}
		return p
	}
	var want []uint64
	for _, size := range []int{256, 192, 128, 64, 48, 32, 16} {
		want = append(want, power(8*size+31), power(8*size-33))
	}
	if want = append(want, 0, 0); !slices.Equal(powers[:], want) {
		t.Errorf("got %#x, want %#x", powers, want)
	}
}

// The kernel lists a processor's features if it keeps the registers that they need.
func TestDetect(t *testing.T) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skipf("no other source to ask: %v", err)
	}
	flags := strings.Fields(string(info))
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(flags, name) })
	}
	want := portable
	switch {
	case has("pclmulqdq", "sse4_2", "avx2", "vpclmulqdq", "avx512f"):
		want = folds512
	case has("pclmulqdq", "sse4_2", "avx2", "vpclmulqdq"):
		want = folds256
	}
	if detect() != want {
		t.Errorf("detected: %v; by /proc/cpuinfo: %v", detect(), want)
	}
}

// The CRC is that of what was copied, whatever becomes of the source meanwhile. This is a
// data race, and allowed: a consumer may write to the memory of a Send that is under way,
// and is then to get one byte or the other, and a CRC that is right.
func TestCopyOfWhatChanges(t *testing.T) {
	eachMethod(t, func(t *testing.T, m method) {
		src, dst := make([]byte, 5000), make([]byte, 5000)
		var stop atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !stop.Load() {
				for i := range src {
					src[i]++
				}
			}
		}()
		for n := range 3000 {
			if crc := m.copy(dst, src[:n], 0); crc != want(0, dst[:n]) {
				t.Errorf("%d bytes: %#08x, those copied have %#08x", n, crc, want(0, dst[:n]))
				break
			}
		}
		stop.Store(true)
		<-done
	})
}

// What a processor lacks, or the system does not save, is not used: one step too far is an
// illegal instruction, or another thread's bytes in ours.
func TestProcessors(t *testing.T) {
	const all, both = ^uint32(0), uint32(leaf7EBX256 | leaf7EBX512)
	for _, c := range []struct {
		what            string
		ebx, ecx, state uint32
		want            method
	}{
		{"everything", all, all, all, folds512},
		{"just enough", both, leaf7ECX, zmmState, folds512},
		{"no VPCLMULQDQ", all, all &^ leaf7ECX, all, portable},
		{"no AVX2", all &^ leaf7EBX256, all, all, portable},
		{"no AVX512F", all &^ leaf7EBX512, all, all, folds256},
		{"AVX2 alone", leaf7EBX256, leaf7ECX, ymmState, folds256},
		{"ZMM not saved", all, all, ymmState, folds256},
		{"ZMM saved in part", all, all, zmmState &^ (1 << 7), folds256},
		{"YMM not saved", all, all, all &^ (1 << 2), portable},
		{"XMM not saved", all, all, all &^ (1 << 1), portable},
		{"nothing saved", all, all, 0, portable},
		{"nothing", 0, 0, 0, portable},
	} {
		if got := widest(c.ebx, c.ecx, c.state); got != c.want {
			t.Errorf("%s: method %d, want %d", c.what, got, c.want)
		}
	}
	for _, c := range []struct {
		most, ecx uint32
		want      bool
	}{{7, leaf1ECX, true}, {6, all, false}, {100, all, true}, {100, leaf1ECX &^ (1 << 27), false}, {7, 0, false}} {
		if got := tells(c.most, c.ecx); got != c.want {
			t.Errorf("leaf %d, %#x: %t", c.most, c.ecx, got)
		}
	}
}
