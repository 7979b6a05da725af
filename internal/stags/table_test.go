package stags

import (
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestTable has values by STag, each its own, whatever the indexes have in common.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table[uint32]
		want := map[uint32]*uint32{}
		stag := rapid.Custom(func(t *rapid.T) uint32 {
			index := rapid.Uint32Range(0, 7).Draw(t, "low") | rapid.Uint32Range(0, 3).Draw(t, "high")<<9
			return index << KeyBits
		})
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			s := stag.Draw(t, "STag")
			if rapid.Bool().Draw(t, "put") {
				want[s] = &s
				table.Put(s, &s)
			} else {
				delete(want, s)
				table.Delete(s)
			}
			for s, v := range want {
				if table.Get(s) != v || !table.Taken(s) || table.Get(s|1) != nil {
					t.Fatalf("%#x: %v, taken %t; with another key %v", s, table.Get(s), table.Taken(s), table.Get(s|1))
				}
			}
			if table.Len() != len(want) || want[s] == nil && table.Get(s) != nil {
				t.Fatalf("%d values, want %d", table.Len(), len(want))
			}
		}
	})
}

// TestTaken: who asks for places that are free has no more than four times as many as values.
func TestTaken(t *testing.T) {
	var table Table[int]
	const values = 10000
	for stag := uint32(1); table.Len() < values; stag += 0x9e3779b1 { // spreads over all indexes
		if !table.Taken(stag) {
			table.Put(stag, new(int))
		}
	}
	if n := len(*table.places.Load()); n < 2*values || n > 4*values {
		t.Errorf("%d places", n)
	}
}

// TestGetWhileGrowing: a value that stays is found at any time.
func TestGetWhileGrowing(t *testing.T) {
	var table Table[int]
	const stays = 5 << KeyBits
	table.Put(stays, new(int))
	var over atomic.Bool
	done := make(chan bool)
	go func() {
		for !over.Load() {
			if table.Get(stays) == nil {
				t.Error("it is gone")
				break
			}
		}
		close(done)
	}()
	for index := range uint32(5000) {
		if stag := (index + 6) << KeyBits; !table.Taken(stag) {
			table.Put(stag, new(int))
		}
	}
	over.Store(true)
	<-done
}
