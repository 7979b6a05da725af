package chunk_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// A piece is a DATA chunk's part of a message.
type piece struct{ message, tsn, first, last uint32 }

// pieces cuts some messages up, one after the other.
func pieces(t *rapid.T) (all []piece) {
	tsn := rapid.SampledFrom([]uint32{0, 7, 1<<31 - 3, 1<<32 - 3}).Draw(t, "TSN")
	for m, n := range rapid.SliceOfN(rapid.Uint32Range(1, 5), 1, 6).Draw(t, "messages") {
		for i := range n {
			all = append(all, piece{uint32(m), tsn + i, tsn, tsn + n - 1})
		}
		tsn += n
	}
	return all
}

func (p piece) flags() (f byte) {
	if p.tsn == p.first {
		f |= chunk.FlagBeginning
	}
	if p.tsn == p.last {
		f |= chunk.FlagEnding
	}
	return f | chunk.FlagUnordered
}

// TestFragments: in whatever order the chunks of messages come, each message is whole with the last of its own that
// comes, which brings all of it in order; only what waits for others is held. The TSN goes on from zero after the last.
func TestFragments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f chunk.Fragments[piece]
		waiting := map[uint32][]piece{}
		held := 0
		for _, p := range rapid.Permutation(pieces(t)).Draw(t, "order") {
			want := append(waiting[p.message], p)
			waiting[p.message] = want
			held++
			got := f.Add(p.tsn, p.flags(), p)
			if uint32(len(want)) <= p.last-p.first {
				want = nil
			}
			slices.SortFunc(want, func(a, b piece) int { return int(int32(a.tsn - b.tsn)) })
			if !slices.Equal(got, want) {
				t.Fatalf("with %+v came %+v, want %+v", p, got, want)
			}
			if held -= len(got); f.Len() != held {
				t.Fatalf("%d are held, want %d", f.Len(), held)
			}
		}
	})
}
