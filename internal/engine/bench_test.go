package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/quantile"
)

// BenchmarkWrite1M is all that two QPs do for an RDMA Write of 1 MiB, with one copy in place
// of the LLP.
func BenchmarkWrite1M(b *testing.B) {
	benchmark1M(b, OpWrite)
}

// BenchmarkRead1M is the same for an RDMA Read.
func BenchmarkRead1M(b *testing.B) {
	benchmark1M(b, OpRead)
}

// BenchmarkSend1M is the same for a Send.
func BenchmarkSend1M(b *testing.B) {
	benchmark1M(b, OpSend)
}

func benchmark1M(b *testing.B, op Op) {
	for _, emss := range []int{1448, 65483} {
		for _, mode := range []struct{ markers, crc bool }{{false, false}, {false, true}, {true, true}} {
			b.Run(fmt.Sprintf("emss=%d/markers=%v/crc=%v", emss, mode.markers, mode.crc), func(b *testing.B) {
				once := transfer1M(b, op, emss, mode.markers, mode.crc)
				b.SetBytes(1 << 20)
				b.ReportAllocs()
				for b.Loop() {
					once()
				}
			})
		}
	}
}

// transfer1M returns a function that does all that two QPs do for 1 MiB.
func transfer1M(b *testing.B, op Op, emss int, marked, crc bool) (once func()) {
	const size = 1 << 20
	p := newPair(b, markers(marked, marked), both(func(s *setup) {
		s.CRC, s.MULPDU = crc, layout.MULPDU(emss, marked)
	}))
	from, to := p.a.region(make([]byte, size), remoteAll), p.b.region(make([]byte, size), remoteAll)
	w := SendWork{Op: op, SGL: listOf(all(from, size)), RemoteSTag: to.STag()}
	r := RecvWork{SGL: listOf(all(to, size))}
	link := make([]byte, GatherArena)
	return func() {
		if op == OpSend {
			_ = p.b.Machine.PostReceive(&r)
		}
		p.a.Machine.PostSend(&w)
		for carry(p.a, p.b, link)+carry(p.b, p.a, link) > 0 {
		}
	}
}

// BenchmarkPaired tells what FPDUs of 1448 bytes cost as a ratio to those of 64 KiB: the median
// of turns that follow each other at once, which other work on the machine changes little.
func BenchmarkPaired(b *testing.B) {
	for _, op := range []Op{OpWrite, OpRead, OpSend} {
		for _, crc := range []bool{false, true} {
			b.Run(fmt.Sprintf("op=%v/crc=%v", op, crc), func(b *testing.B) {
				small, large := transfer1M(b, op, 1448, false, crc), transfer1M(b, op, 65483, false, crc)
				var ratios []float64
				for b.Loop() {
					begin := time.Now()
					small()
					middle := time.Now()
					large()
					ratios = append(ratios, float64(middle.Sub(begin))/float64(time.Since(middle)))
				}
				b.ReportMetric(quantile.Median(ratios), "ratio")
			})
		}
	}
}

// BenchmarkSend64 is all that two QPs do for a Send of 64 bytes, of which 16 at a time are
// posted and sent.
func BenchmarkSend64(b *testing.B) {
	const size, batch = 64, 16
	p := newPair(b)
	from, to := p.a.region(make([]byte, size), 0), p.b.region(make([]byte, size), remoteAll)
	w := SendWork{Op: OpSend, SGL: listOf(all(from, size)), Unsignaled: true}
	r := RecvWork{SGL: listOf(all(to, size))}
	link := make([]byte, GatherArena)
	b.SetBytes(size)
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		if err := errors.Join(p.b.Machine.PostReceive(&r), p.a.Machine.PostSend(&w)); err != nil {
			b.Fatal(err)
		}
		if n%batch == 0 {
			carry(p.a, p.b, link)
		}
	}
}
