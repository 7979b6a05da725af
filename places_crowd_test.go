package iwarp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

func newPlaces(halfOpen int) *places {
	return &places{halfOpen: halfOpen, onEvict: func(evictable) {}, sources: map[netip.Prefix]*sourcePlaces{}}
}

// address is that of the given source.
func address(n int) string {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String()
}

// TestCrowd has connections of some sources come and go, and compares with a search through all sources which of them is
// looked at first.
func TestCrowd(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ps := newPlaces(0)
	var all []*place
	for range 5000 {
		switch n := random.IntN(5); {
		case n < 2 || len(all) == 0:
			all = append(all, ps.enter(&seat{from: address(random.IntN(8))}))
		default:
			i := random.IntN(len(all))
			p := all[i]
			switch {
			case n == 2 && p.silent != nil && !p.evicted:
				p.arrived(func() {})
				p.wait()
			case n == 3:
				p.waited()
				p.heard()
			default:
				p.leave()
				all[i] = all[len(all)-1]
				all = all[:len(all)-1]
			}
		}
		ps.wantCrowd(t)
	}
}

// wantCrowd compares the crowd with all sources: those with half-open connections are in it, and the first is the
// largest, of several the one with the oldest that is silent.
func (ps *places) wantCrowd(t *testing.T) {
	t.Helper()
	crowded, own := 0, new(sourcePlaces)
	largest := own
	for _, s := range ps.sources {
		if s.halfOpen() > 0 {
			crowded++
		}
		n, most := s.halfOpen(), largest.halfOpen()
		if n > most || n == most && n > 0 && s.isOlder(largest) {
			largest = s
		}
	}
	got := ps.crowd.largest(own)
	sameRank := got.halfOpen() == largest.halfOpen() && !largest.isOlder(got)
	if len(ps.crowd) != crowded || !sameRank {
		t.Fatalf("%d sources of %d; the first has %d half-open connections, want %d", len(ps.crowd), crowded, got.halfOpen(), largest.halfOpen())
	}
	if largest.halfOpen() > 0 && ps.crowd.largest(largest) != largest {
		t.Fatal("another source than the own one, which has as many")
	}
}

// flooded are places with connections of some sources that are established, and a flood of one more that has taken all
// that there is for half-open ones.
func flooded(established int) *places {
	ps := newPlaces(1024)
	for n := range established {
		ps.enter(&seat{from: address(n)}).heard()
	}
	for range ps.halfOpen {
		ps.enter(&seat{from: "192.0.2.1"})
	}
	return ps
}

// TestFloodBesideEstablished: sources whose connections are all established are not looked at when a flood comes.
func TestFloodBesideEstablished(t *testing.T) {
	ps := flooded(1000)
	if len(ps.sources) != 1001 || len(ps.crowd) != 1 {
		t.Errorf("of %d sources %d are looked at", len(ps.sources), len(ps.crowd))
	}
	if p := ps.enter(&seat{from: address(1)}); p == nil || len(ps.crowd) != 2 {
		t.Errorf("%d sources are looked at after one came back", len(ps.crowd))
	}
}

// BenchmarkFlood is a connection of a flood, beside sources that have established ones.
func BenchmarkFlood(b *testing.B) {
	for _, established := range []int{0, 1000, 10_000} {
		b.Run(fmt.Sprint(established), func(b *testing.B) {
			ps := flooded(established)
			for b.Loop() {
				ps.enter(&seat{from: "192.0.2.1"})
			}
		})
	}
}
