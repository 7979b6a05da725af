package admission

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// newHalfOpen makes a table for so many half-open connections.
func newHalfOpen(connections int) *Table {
	return NewHalfOpenTable(HalfOpenBounds{HalfOpen: connections})
}

// address is that of the given source.
func address(n int) string {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String()
}

// TestFairQueue has connections of some sources come and go, and compares with a search through all sources which of
// them is looked at first.
func TestFairQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	table := newHalfOpen(0)
	var all []*visitor
	for range 5000 {
		switch n := random.IntN(5); {
		case n < 2 || len(all) == 0:
			all = append(all, comes(table, address(random.IntN(8))))
		default:
			i := random.IntN(len(all))
			p := all[i]
			switch {
			case n == 2 && p.awaitingPeer != nil && !p.evicted:
				p.Arrived(func() {})
				p.AwaitAccept()
			case n == 3:
				p.Accepted()
				p.Heard()
			default:
				p.Leave()
				all[i] = all[len(all)-1]
				all = all[:len(all)-1]
			}
		}
		table.wantQueue(t)
	}
}

// wantQueue compares the queue with all sources: those with half-open connections are in it, and the first is the
// largest, of several the one with the oldest that awaits its peer.
func (table *Table) wantQueue(t *testing.T) {
	t.Helper()
	queued, own := 0, newSource(netip.Prefix{})
	largest := own
	for _, s := range table.sources {
		if s.awaitingPeer.Len()+s.awaitingAccept.Len() > 0 {
			queued++
		}
		n, most := s.awaitingPeer.Len()+s.awaitingAccept.Len(), largest.awaitingPeer.Len()+largest.awaitingAccept.Len()
		if n > most || n == most && n > 0 && older(s, largest) {
			largest = s
		}
	}
	got := table.queue.largest(&own.standing, 0)
	sameRank := got.size == largest.size && !older(largest, got)
	if len(table.queue) != queued || !sameRank {
		t.Fatalf("%d sources of %d; the first has %d half-open connections, want %d",
			len(table.queue), queued, got.size, largest.size)
	}
	if largest.size > 0 && table.queue.largest(&largest.standing, 0) != largest {
		t.Fatal("another source than the own one, which has as many")
	}
}

// older reports whether the oldest connection of a source that awaits its peer is older than that of another.
func older(s, than *source) bool {
	a, b := oldest(&s.awaitingPeer), oldest(&than.awaitingPeer)
	return a != nil && (b == nil || a.order < b.order)
}

// flooded is a table with connections of some sources that are established, and a flood of one more that has taken all
// that there is for half-open ones.
func flooded(established int) *Table {
	table := newHalfOpen(1024)
	for n := range established {
		comes(table, address(n)).Heard()
	}
	for range table.bounds.halfOpen {
		comes(table, "192.0.2.1")
	}
	return table
}

// TestFloodBesideEstablished: sources whose connections are all established are not looked at when a flood comes.
func TestFloodBesideEstablished(t *testing.T) {
	table := flooded(1000)
	if len(table.sources) != 1001 || len(table.queue) != 1 {
		t.Errorf("of %d sources %d are looked at", len(table.sources), len(table.queue))
	}
	if v := comes(table, address(1)); v.err != nil || len(table.queue) != 2 {
		t.Errorf("%d sources are looked at after one came back", len(table.queue))
	}
}

// BenchmarkFlood is a connection of a flood, beside sources that have established ones.
func BenchmarkFlood(b *testing.B) {
	for _, established := range []int{0, 1000, 10_000} {
		b.Run(fmt.Sprint(established), func(b *testing.B) {
			table := flooded(established)
			for b.Loop() {
				comes(table, "192.0.2.1")
			}
		})
	}
}
