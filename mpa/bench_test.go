package mpa_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
)

func BenchmarkAppend(b *testing.B) {
	eachMode(b, func(b *testing.B, markers, crc bool, payload []byte) {
		w := mpa.NewWriter(markers, crc)
		out := make([]byte, 0, layout.MaxFPDU)
		for b.Loop() {
			out = w.Append(out[:0], payload)
		}
	})
}

// The Reader's figures include copying the FPDU to scratch space, as with markers it is
// changed.
func BenchmarkNext(b *testing.B) {
	eachMode(b, func(b *testing.B, markers, crc bool, payload []byte) {
		in := make([]byte, layout.MaxFPDU)
		w := mpa.NewWriter(markers, crc)
		fpdu := w.Append(nil, payload)
		for b.Loop() {
			r := mpa.NewReader(markers, crc)
			if _, n, err := r.Next(in[:copy(in, fpdu)]); n == 0 {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkNextContent verifies an FPDU and copies its ULPDU to a place of its own, from
// between the markers.
func BenchmarkNextContent(b *testing.B) {
	eachMode(b, func(b *testing.B, markers, crc bool, payload []byte) {
		w := mpa.NewWriter(markers, crc)
		fpdu, place := w.Append(nil, payload), make([]byte, len(payload))
		for b.Loop() {
			r := mpa.NewReader(markers, crc)
			var f mpa.FPDU
			n, err := r.NextContent(fpdu, &f)
			if n == 0 {
				b.Fatal(err)
			}
			f.Content.CopyTo(place)
		}
	})
}

func eachMode(b *testing.B, f func(b *testing.B, markers, crc bool, payload []byte)) {
	for _, size := range []int{64, 1442, 64768} {
		for _, mode := range []struct{ markers, crc bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
			b.Run(fmt.Sprintf("markers=%v/crc=%v/size=%d", mode.markers, mode.crc, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				f(b, mode.markers, mode.crc, make([]byte, size))
			})
		}
	}
}
