package rsockets

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A wire carries what one end sends: the bytes of a Write, and the word after it.
type wire struct{ from, to *end }

func (w wire) word(t *testing.T, word Word) {
	t.Helper()
	if err := w.to.Deliver(word.Append(nil, w.from.big), w.to.table); err != nil {
		t.Fatal(err)
	}
}

// send moves up to n bytes.
func (w wire) send(t *testing.T, data []byte) (n int) {
	piece := w.from.Next(len(data))
	if piece.Length == 0 {
		return 0
	}
	copy(w.to.ring[piece.TO-ringAt:][:piece.Length], data)
	w.word(t, NewWord(OpData, piece.Length))
	return int(piece.Length)
}

func (w wire) notices(t *testing.T) {
	for {
		n, due := w.from.Due()
		if !due {
			return
		}
		if n.Length > 0 {
			at := w.from.peer.Slot(n.Slot).TO - tableAt
			entry := Entry{Place{ringAt + uint64(n.Offset), 2}, uint32(n.Length)}
			if old := entryAt(w.to.table[at:], order(w.to.big)); old.Length != 0 {
				t.Fatalf("an entry that is not used up is written: %+v", old)
			}
			copy(w.to.table[at:], entry.Append(nil, w.to.big))
		}
		w.word(t, n.Word)
	}
}

// TestPair moves bytes between two ends of all kinds, in pieces of any size, and compares them.
func TestPair(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		ring := 16 << rnd.IntN(6)
		ha, hb := hello(1+rnd.IntN(9), 1+rnd.IntN(40), ring), hello(1+rnd.IntN(9), 1+rnd.IntN(40), ring)
		ha.Big = rnd.IntN(2) == 0
		hb.Big = ha.Big
		a, b := newEnd(ha, hb, ring), newEnd(hb, ha, ring)
		want := make([]byte, 4000)
		for i := range want {
			want[i] = byte(rnd.Uint32())
		}
		var got []byte
		sent := 0
		for steps := 0; len(got) < len(want); steps++ {
			if steps > 200000 {
				t.Fatalf("seed %d: stuck after %d bytes", seed, len(got))
			}
			wire{b, a}.notices(t)
			if rnd.IntN(2) == 0 {
				sent += wire{a, b}.send(t, want[sent:min(len(want), sent+1+rnd.IntN(2*ring))])
				continue
			}
			at, n := b.Readable()
			n = rnd.IntN(n + 1)
			got = append(got, b.ring[at:at+n]...)
			b.Consume(n)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: the bytes differ", seed)
		}
	}
}

// FuzzEndpoint has a peer say and write anything. What an end reads and offers never lies outside its ring.
func FuzzEndpoint(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1}, make([]byte, 80), uint32(2), uint16(8), uint32(100))
	f.Add([]byte("\x00\x00\x00\x80\x80\x00\x00\x10\xc0\x00\x00\x01\xe0\x00\x00\x02"), bytes.Repeat([]byte{1}, 80),
		uint32(4), uint16(3), uint32(1<<31))
	f.Fuzz(func(t *testing.T, words, memory []byte, entries uint32, credits uint16, ring uint32) {
		ours := withMaps(2, 8, true)
		ours.Big = true
		peer := Hello{Big: true, Credits: credits, Entries: max(entries, 1), Ring: Entry{Length: ring}}
		e := newEnd(ours, peer, 256)
		for ; len(words) >= WordLen; words = words[WordLen:] {
			memory = memory[copy(e.table, memory):]
			if e.Deliver(words[:WordLen], e.table) != nil {
				return
			}
			at, n := e.Readable()
			if at < 0 || n < 0 || at+n > 256 {
				t.Fatalf("%d bytes at %d are readable", n, at)
			}
			e.Consume(n - n/3)
			if d, due := e.Due(); due && (d.Offset < 0 || d.Length < 0 || d.Offset+d.Length > 256 ||
				d.Slot >= int(peer.Entries)) {
				t.Fatalf("offered: %+v", d)
			}
			if p := e.Next(100); p.Length > 100 {
				t.Fatalf("%+v", p)
			}
			if len(e.entries) > 2 || len(e.pieces) > 8 {
				t.Fatalf("%d entries and %d pieces are held", len(e.entries), len(e.pieces))
			}
		}
	})
}
