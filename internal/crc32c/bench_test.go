package crc32c

import (
	"fmt"
	"testing"
)

var sizes = []int{64, 128, 192, 256, 320, 384, 508, 512, 1024, 1448, 4096, 16 << 10, 64 << 10, 128 << 10}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range sizes {
		for name, m := range methods {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				p := make([]byte, n)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					m.update(0, p)
				}
			})
		}
	}
}

// The bytes come from 4 MiB and go to 256 KiB, as those of a long transfer do.
func BenchmarkCopy(b *testing.B) {
	ways := map[string]func(dst, src []byte){
		"alone": func(dst, src []byte) { copy(dst, src) },
	}
	for name, m := range methods {
		ways[name] = func(dst, src []byte) { m.copy(dst, src, 0) }
	}
	src, dst := make([]byte, 4<<20), make([]byte, 256<<10)
	for _, n := range sizes {
		for _, name := range []string{"alone", "host", "portable"} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				b.ReportAllocs()
				way, from, to := ways[name], 0, 0
				for b.Loop() {
					way(dst[to:to+n], src[from:from+n])
					if from += n; from+n > len(src) {
						from = 0
					}
					if to += n; to+n > len(dst) {
						to = 0
					}
				}
			})
		}
	}
}
