package crc32c

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// methods are the ways that this machine has, of which host is one.
var methods = func() map[string]method {
	all := map[string]method{"host": host, "portable": portable}
	if host == folds512 {
		all["narrow"] = folds256 // which it can do, too
	}
	return all
}()

// eachMethod runs a test of all.
func eachMethod(t *testing.T, test func(t *testing.T, m method)) {
	for name, m := range methods {
		t.Run(name, func(t *testing.T) { test(t, m) })
	}
}

// want is the CRC of p by package hash/crc32.
func want(crc uint32, p []byte) uint32 {
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), p)
}

// bytes are n random bytes from a seed.
func random(seed int64, n int) []byte {
	p := make([]byte, n)
	rand.New(rand.NewSource(seed)).Read(p)
	return p
}

// The vectors of RFC 3720, section B.4, in their order of bytes. They are too short to be
// folded: the tests after this one hold folding against them by way of package hash/crc32.
func TestVectors(t *testing.T) {
	up, down := make([]byte, 32), make([]byte, 32)
	for i := range up {
		up[i], down[i] = byte(i), byte(31-i)
	}
	for _, c := range []struct {
		name string
		data []byte
		crc  string
	}{
		{"32 bytes of zeroes", make([]byte, 32), "aa 36 91 8a"},
		{"32 bytes of ones", bytes.Repeat([]byte{0xff}, 32), "43 ab a8 62"},
		{"32 bytes of incrementing 00..1f", up, "4e 79 dd 46"},
		{"32 bytes of decrementing 1f..00", down, "5c db 3f 11"},
		{
			"an iSCSI SCSI Read (10) Command PDU",
			testrig.Bytes(t, `01 c0 00 00 00 00 00 00 00 00 00 00 00 00 00 00
				14 00 00 00 00 00 04 00 00 00 00 14 00 00 00 18
				28 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00`),
			"56 3a 96 d9",
		},
	} {
		b := testrig.Bytes(t, c.crc)
		crc := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		if got := Update(0, c.data); got != crc {
			t.Errorf("%s: %#08x, want %#08x", c.name, got, crc)
		}
		dst := make([]byte, len(c.data))
		if got := Copy(dst, c.data, 0); got != crc || !bytes.Equal(dst, c.data) {
			t.Errorf("%s, copied: %#08x, want %#08x", c.name, got, crc)
		}
	}
}

// Bytes with their CRC after them have the same CRC, whatever they are.
func TestResidue(t *testing.T) {
	eachMethod(t, func(t *testing.T, m method) {
		for seed := range int64(100) {
			p := random(seed, 512)
			crc := m.update(0, p)
			p = append(p, byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24))
			if got := m.update(0, p); got != 0x48674bc7 {
				t.Fatalf("seed %d: %#08x", seed, got)
			}
		}
	})
}

// All lengths on both sides of each step of the loops.
func TestEveryLength(t *testing.T) {
	p := random(1, 1200)
	eachMethod(t, func(t *testing.T, m method) {
		for n := range p {
			check(t, m, p[:n], uint32(n)*0x9e3779b9, n%64)
		}
	})
}

// Every place of dst and src against the boundaries of the cache's lines.
func TestEveryAlignment(t *testing.T) {
	p := random(2, 4096)
	eachMethod(t, func(t *testing.T, m method) {
		for from := range 64 {
			for to := range 64 {
				check(t, m, p[from:from+700+to], 0, to)
			}
		}
	})
}

func TestRandomLengths(t *testing.T) {
	p := random(3, 70000+64)
	eachMethod(t, func(t *testing.T, m method) {
		r := rand.New(rand.NewSource(4))
		for range 500 {
			from := r.Intn(64)
			check(t, m, p[from:from+r.Intn(70001)], r.Uint32(), r.Intn(64))
		}
	})
}

// guard is what stands around dst.
const guard = 0xa5

// check holds update and copy of src against package hash/crc32; dst is at a distance
// from a boundary.
func check(t *testing.T, m method, src []byte, crc uint32, to int) {
	t.Helper()
	w, n := want(crc, src), len(src)
	if got := m.update(crc, src); got != w {
		t.Fatalf("%d bytes after %#08x: %#08x, want %#08x", n, crc, got, w)
	}
	room := bytes.Repeat([]byte{guard}, 64+to+n+64)
	dst := room[64+to:]
	if got := m.copy(dst, src, crc); got != w || !bytes.Equal(dst[:n], src) {
		t.Fatalf("copy of %d bytes to %d after %#08x: %#08x, want %#08x; the same bytes: %v",
			n, to, crc, got, w, bytes.Equal(dst[:n], src))
	}
	if around := bytes.Count(room[:64+to], []byte{guard}) + bytes.Count(dst[n:], []byte{guard}); around != 64+to+64 {
		t.Fatalf("copy of %d bytes to %d: of %d bytes around it %d are written to", n, to, 64+to+64, 64+to+64-around)
	}
}

// A message in parts has the CRC of the whole.
func TestSplits(t *testing.T) {
	p := random(5, 70000)
	dst := make([]byte, len(p))
	eachMethod(t, func(t *testing.T, m method) {
		r := rand.New(rand.NewSource(6))
		for range 300 {
			n := r.Intn(len(p) + 1)
			split := r.Intn(n + 1)
			if crc := m.update(m.update(0, p[:split]), p[split:n]); crc != want(0, p[:n]) {
				t.Fatalf("%d and %d bytes: %#08x", split, n-split, crc)
			}
			crc := m.copy(dst, p[:split], 0)
			if crc = m.copy(dst[split:], p[split:n], crc); crc != want(0, p[:n]) || !bytes.Equal(dst[:n], p[:n]) {
				t.Fatalf("copies of %d and %d bytes: %#08x", split, n-split, crc)
			}
		}
	})
}

// Copy does not write past a dst that is too short: it panics before it writes.
func TestShort(t *testing.T) {
	eachMethod(t, func(t *testing.T, m method) {
		for _, n := range []int{1, 64, 4096} {
			room := bytes.Repeat([]byte{guard}, n)
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%d bytes to %d: no panic", n, n-1)
					}
				}()
				m.copy(room[:n-1:n-1], make([]byte, n), 0)
			}()
			if !bytes.Equal(room, bytes.Repeat([]byte{guard}, n)) {
				t.Errorf("%d bytes to %d: written to", n, n-1)
			}
		}
	})
}

// Byte by byte a register comes to what Update makes of them at once.
func TestStep(t *testing.T) {
	register := ^uint32(0)
	for n, b := range random(8, 300) {
		register = Step(register, b)
		if got, want := ^register, Update(0, random(8, 300)[:n+1]); got != want {
			t.Fatalf("after %d bytes: %#08x, want %#08x", n+1, got, want)
		}
	}
}

func TestNothing(t *testing.T) {
	if Update(7, nil) != 7 || Copy(nil, nil, 7) != 7 || Copy([]byte{1}, nil, 7) != 7 {
		t.Error("no bytes change the CRC")
	}
}

// Any bytes in any three parts, at any distance from a boundary.
func FuzzCopy(f *testing.F) {
	f.Add([]byte("123456789"), uint32(0), uint16(3), uint16(5), uint8(1))
	f.Add(random(7, 700), uint32(1), uint16(128), uint16(320), uint8(60))
	f.Fuzz(func(t *testing.T, p []byte, crc uint32, a, b uint16, to uint8) {
		i := int(a) % (len(p) + 1)
		j := i + int(b)%(len(p)-i+1)
		for _, m := range methods {
			check(t, m, p[i:j], crc, int(to%64))
			if got := m.update(m.update(m.update(crc, p[:i]), p[i:j]), p[j:]); got != want(crc, p) {
				t.Fatalf("%d, %d and %d bytes: %#08x, want %#08x", i, j-i, len(p)-j, got, want(crc, p))
			}
		}
	})
}

func ExampleCopy() {
	frame := make([]byte, 9)
	crc := Update(0, frame[:copy(frame, "1234")])
	crc = Copy(frame[4:], []byte("56789"), crc)
	fmt.Printf("%s %#08x\n", frame, crc)
	// Output: 123456789 0xe3069283
}
