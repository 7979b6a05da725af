package crc32c

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand"
	"testing"
)

// woven is what Weave makes of src, by the words of RFC 5044, section 4.3.
func woven(src []byte, distance uint32) (all []byte) {
	for i, b := range src {
		if i%508 == 0 {
			all = append(all, 0, 0)
			all = binary.BigEndian.AppendUint16(all, uint16(int(distance)+len(all)-2))
		}
		all = append(all, b)
	}
	return all
}

// All numbers of blocks that an FPDU can have and some more, at many places of dst and src against the
// boundaries of the cache's lines, with distances that pass 65535.
func TestWeave(t *testing.T) {
	p := random(7, 140*508+64)
	eachMethod(t, func(t *testing.T, m method) {
		r := rand.New(rand.NewSource(8))
		for n := 1; n <= 140; n++ {
			from, to, distance, crc := r.Intn(64), r.Intn(64), uint32(r.Intn(0x10200)), r.Uint32()
			src := p[from : from+508*n]
			all := woven(src, distance)
			room := bytes.Repeat([]byte{guard}, 64+to+len(all)+64)
			dst := room[64+to:]
			if got, w := m.weave(dst, src, distance, crc), want(crc, all); got != w ||
				!bytes.Equal(dst[:len(all)], all) {
				t.Fatalf("%d blocks from %d, the first at %d, after %#08x: %#08x, want %#08x; the same bytes: %v",
					n, from, distance, crc, got, w, bytes.Equal(dst[:len(all)], all))
			}
			if around := bytes.Count(room[:64+to], []byte{guard}) + bytes.Count(dst[len(all):],
				[]byte{guard}); around != 64+to+64 {
				t.Fatalf("%d blocks: of %d bytes around them %d are written to", n, 64+to+64, 64+to+64-around)
			}
		}
	})
}

// Weave reads nothing in front of src or after it: there may be no memory.
func TestWeaveAtEdge(t *testing.T) {
	page := edges(t)
	eachMethod(t, func(t *testing.T, m method) {
		for _, src := range [][]byte{page[:508], page[len(page)-508:], page[:4*508], page[len(page)-4*508:]} {
			copy(src, random(9, len(src)))
			dst := make([]byte, len(src)/508*512)
			if got := m.weave(dst, src, 0, 0); got != want(0, woven(src, 0)) {
				t.Errorf("%d bytes: %#08x", len(src), got)
			}
		}
	})
}

// Weave panics before it writes where it has no room, or is given what is no multiple.
func TestWeaveRules(t *testing.T) {
	eachMethod(t, func(t *testing.T, m method) {
		for _, c := range []struct{ dst, src int }{{511, 508}, {1023, 1016}, {1024, 0}, {1024, 507}, {1024, 509}} {
			room := bytes.Repeat([]byte{guard}, c.dst)
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%d bytes to %d: no panic", c.src, c.dst)
					}
				}()
				m.weave(room[:c.dst:c.dst], make([]byte, c.src), 0, 0)
			}()
			if !bytes.Equal(room, bytes.Repeat([]byte{guard}, c.dst)) {
				t.Errorf("%d bytes to %d: written to", c.src, c.dst)
			}
		}
	})
}

func BenchmarkWeave(b *testing.B) {
	src, dst := make([]byte, 8192*508), make([]byte, 512*512)
	for _, n := range []int{1, 2, 8, 127} {
		for name, m := range methods {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(508 * n))
				b.ReportAllocs()
				from, to := 0, 0
				for b.Loop() {
					m.weave(dst[512*to:512*(to+n)], src[508*from:508*(from+n)], 0, 0)
					if from += n; from+n > 8192 {
						from = 0
					}
					if to += n; to+n > 512 {
						to = 0
					}
				}
			})
		}
	}
}
