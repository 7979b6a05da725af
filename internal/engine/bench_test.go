package engine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/mpa/layout"
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

func benchmark1M(b *testing.B, op Op) {
	const size = 1 << 20
	for _, emss := range []int{1448, 65483} {
		for _, mode := range []struct{ markers, crc bool }{{false, false}, {false, true}, {true, true}} {
			b.Run(fmt.Sprintf("emss=%d/markers=%v/crc=%v", emss, mode.markers, mode.crc), func(b *testing.B) {
				p := newPair(b, markers(mode.markers, mode.markers), both(func(s *setup) {
					s.CRC, s.MULPDU = mode.crc, layout.MULPDU(emss, mode.markers)
				}))
				from, to := p.a.region(make([]byte, size), remoteAll), p.b.region(make([]byte, size), remoteAll)
				w := SendWork{Op: op, NumSGE: 1, RemoteSTag: to.STag()}
				w.SGL[0] = all(from, size)
				link := make([]byte, GatherArena)
				b.SetBytes(size)
				b.ReportAllocs()
				for b.Loop() {
					p.a.PostSend(&w)
					for carry(p.a, p.b, link)+carry(p.b, p.a, link) > 0 {
					}
				}
			})
		}
	}
}

// BenchmarkSend64 is all that two QPs do for a Send of 64 octets, of which 16 at a time are
// posted and sent.
func BenchmarkSend64(b *testing.B) {
	const size, batch = 64, 16
	p := newPair(b)
	from, to := p.a.region(make([]byte, size), 0), p.b.region(make([]byte, size), remoteAll)
	w := SendWork{Op: OpSend, NumSGE: 1, Unsignaled: true}
	w.SGL[0] = all(from, size)
	r := RecvWork{NumSGE: 1}
	r.SGL[0] = all(to, size)
	link := make([]byte, GatherArena)
	b.SetBytes(size)
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		if err := errors.Join(p.b.PostReceive(&r), p.a.PostSend(&w)); err != nil {
			b.Fatal(err)
		}
		if n%batch == 0 {
			carry(p.a, p.b, link)
		}
	}
}
