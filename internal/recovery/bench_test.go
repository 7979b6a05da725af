package recovery_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/mpa"
)

// benchSegments cuts a stream of FPDUs into segments of 1460 bytes.
func benchSegments(markers bool, size int) (stream []byte, segs []segment) {
	w := mpa.NewWriter(markers, true)
	for len(stream) < 1<<22 {
		stream = w.Append(stream, make([]byte, size))
	}
	for at := 0; at < len(stream); at += 1460 {
		segs = append(segs, segment{at, min(at+1460, len(stream))})
	}
	return stream, segs
}

func benchRecovery(b *testing.B, cfg recovery.Config, stream []byte, segs []segment) {
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		r := recovery.New(cfg)
		for _, s := range segs {
			r.Segment(uint64(s.from), stream[s.from:s.to])
			for {
				if _, ok := r.Next(); !ok {
					break
				}
			}
		}
		if r.Delivered() != uint64(len(stream)) {
			b.Fatalf("delivered up to %d of %d", r.Delivered(), len(stream))
		}
	}
}

// Segments in order, with FPDUs that fill one, are packed in one and are split over
// several.
func BenchmarkReceiver(b *testing.B) {
	for _, markers := range []bool{false, true} {
		for _, size := range []int{64, 1442, 16384} {
			stream, segs := benchSegments(markers, size)
			b.Run(fmt.Sprintf("markers=%v/size=%d", markers, size), func(b *testing.B) {
				benchRecovery(b, recovery.Config{Markers: markers, CRC: true}, stream, segs)
			})
		}
	}
}

// Every tenth segment comes 8 segments late.
func BenchmarkReceiverLate(b *testing.B) {
	for _, markers := range []bool{false, true} {
		stream, segs := benchSegments(markers, 1442)
		for i := 0; i+9 < len(segs); i += 10 {
			late := segs[i]
			copy(segs[i:i+8], segs[i+1:i+9])
			segs[i+8] = late
		}
		b.Run(fmt.Sprintf("markers=%v", markers), func(b *testing.B) {
			benchRecovery(b, recovery.Config{Markers: markers, CRC: true}, stream, segs)
		})
	}
}

// The whole stream comes backwards.
func BenchmarkReceiverBackwards(b *testing.B) {
	for _, markers := range []bool{false, true} {
		stream, segs := benchSegments(markers, 1442)
		slices.Reverse(segs)
		b.Run(fmt.Sprintf("markers=%v", markers), func(b *testing.B) {
			benchRecovery(b, recovery.Config{Markers: markers, CRC: true, Buffer: 1 << 23}, stream, segs)
		})
	}
}

// Every other FPDU is damaged, and all come in one segment.
func BenchmarkReceiverDamage(b *testing.B) {
	for _, markers := range []bool{false, true} {
		w := mpa.NewWriter(markers, true)
		var stream []byte
		for len(stream) < 1<<20 {
			stream = w.Append(stream, []byte("bad"))
			stream[len(stream)-5] ^= 1
			stream = w.Append(stream, []byte("good"))
		}
		b.Run(fmt.Sprintf("markers=%v", markers), func(b *testing.B) {
			benchRecovery(b, recovery.Config{Markers: markers, CRC: true, Resync: true}, stream,
				[]segment{{0, len(stream)}})
		})
	}
}

// Nothing in it is an FPDU: every byte is searched.
func BenchmarkReceiverGarbage(b *testing.B) {
	garbage := make([]byte, 1<<22)
	for i := range garbage {
		garbage[i] = byte(i * i >> 7)
	}
	for _, mode := range []struct{ markers, crc bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		b.Run(fmt.Sprintf("markers=%v/crc=%v", mode.markers, mode.crc), func(b *testing.B) {
			b.SetBytes(int64(len(garbage)))
			for b.Loop() {
				r := recovery.New(recovery.Config{Markers: mode.markers, CRC: mode.crc, MidStream: true, Resync: true})
				for at := 0; at < len(garbage); at += 1460 {
					r.Segment(uint64(at), garbage[at:min(at+1460, len(garbage))])
					for {
						if _, ok := r.Next(); !ok {
							break
						}
					}
				}
			}
		})
	}
}
