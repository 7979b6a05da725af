package capture_test

import (
	"math/rand"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/capture"
)

// A dialogue is the bytes of both directions.
type dialogue [2][]byte

// drawDialogue draws bytes that differ from place to place.
func drawDialogue(t *rapid.T) (d dialogue) {
	r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
	for i := range d {
		d[i] = make([]byte, rapid.IntRange(0, 300).Draw(t, "bytes"))
		r.Read(d[i])
	}
	return d
}

// A cutting is a segment of a direction's bytes.
type cutting struct {
	dir    capture.Dir
	at, to int
}

// drawCuttings cuts both directions into segments which have every byte once.
func (d dialogue) drawCuttings(t *rapid.T) (all []cutting) {
	for i, data := range d {
		for at := 0; at < len(data); {
			to := min(len(data), at+rapid.IntRange(1, 60).Draw(t, "cut"))
			all = append(all, cutting{capture.Dir(i), at, to})
			at = to
		}
	}
	return all
}

// drawRepeats cuts out some segments that have bytes again.
func (d dialogue) drawRepeats(t *rapid.T) (all []cutting) {
	for i, data := range d {
		for range min(len(data), rapid.IntRange(0, 6).Draw(t, "again")) {
			at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
			all = append(all, cutting{capture.Dir(i), at, rapid.IntRange(at+1, len(data)).Draw(t, "to")})
		}
	}
	return all
}

// A talk is a dialogue that is being captured.
type talk struct {
	*rapid.T
	dialogue
	*wire
	*book
	*capture.Tracker
	first [2]map[int]uint64 // number of the packet that had a byte first
}

// newTalk begins with a handshake, of random sequence numbers.
func newTalk(t *rapid.T, cfg capture.Config) *talk {
	k := &talk{T: t, dialogue: drawDialogue(t), wire: newWire(), book: newBook(t)}
	for i := range k.isn {
		k.isn[i] = rapid.Uint32().Draw(t, "isn")
		k.first[i] = map[int]uint64{}
	}
	k.Tracker = capture.NewTracker(cfg, k.book)
	for _, p := range k.handshake() {
		k.Packet(p)
	}
	return k
}

// say captures a segment, of which the snap length cuts off some bytes. It
// acknowledges nothing.
func (k *talk) say(c cutting, snapped int) {
	p := cut(k.packet(c.dir, capture.PSH, int64(c.at), 0, string(k.dialogue[c.dir][c.at:c.to])), snapped)
	k.Packet(p)
	for at := c.at; at < c.to; at++ {
		if k.first[c.dir][at] == 0 && at < c.to-snapped {
			k.first[c.dir][at] = p.Number
		}
	}
}

// check compares what came out with what was captured: every byte, with the packet
// that it was in first, and nothing but those in no packet is missing.
func (k *talk) check() {
	e := k.only()
	for i, data := range k.dialogue {
		if len(e.streams[i]) > len(data) {
			k.T.Fatalf("%d bytes, want %d at most", len(e.streams[i]), len(data))
		}
		for at, from := range e.from[i] {
			if want := k.first[i][at]; from != want {
				k.T.Fatalf("byte %d of %v is from packet %d, want %d", at, capture.Dir(i), from, want)
			}
			if from != 0 && e.streams[i][at] != data[at] {
				k.T.Fatalf("byte %d of %v from packet %d is wrong", at, capture.Dir(i), from)
			}
		}
		for at := len(e.streams[i]); at < len(data); at++ {
			if k.first[i][at] != 0 {
				k.T.Fatalf("byte %d of %v was captured and did not come", at, capture.Dir(i))
			}
		}
		k.checkCount(&e.c.Halves[i], e.gaps[i])
	}
}

func (k *talk) checkCount(h *capture.Half, gaps []capture.Gap) {
	missing := uint64(0)
	for _, g := range gaps {
		missing += g.Length
	}
	if h.Count.Bytes+missing != h.Next() || h.Count.Missing != missing || h.Count.Gaps != uint64(len(gaps)) {
		k.T.Fatalf("count %+v up to %d, with %d bytes in %d gaps", h.Count, h.Next(), missing, len(gaps))
	}
}

// TestAnyOrder gives a dialogue in any segmentation, order and overlap: all bytes
// come out in order, each with the first packet that had it.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newTalk(t, capture.Config{})
		all := append(k.drawCuttings(t), k.drawRepeats(t)...)
		for _, c := range rapid.Permutation(all).Draw(t, "order") {
			k.say(c, 0)
		}
		k.Flush()
		k.check()
		for i, data := range k.dialogue {
			k.only().wantStream(t, capture.Dir(i), data)
		}
	})
}

// TestAnyLoss leaves out some of the segments, and cuts some off. Whatever the
// receivers acknowledge, and however little is held back, what is left comes out,
// as long as nobody comes too late.
func TestAnyLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := capture.Config{GapPackets: rapid.IntRange(1, 20).Draw(t, "patience"),
			MaxBuffered: rapid.IntRange(1, 2000).Draw(t, "buffer")}
		k := newTalk(t, cfg)
		for _, c := range k.drawCuttings(t) {
			if rapid.Bool().Draw(t, "lost") {
				continue
			}
			snapped := rapid.IntRange(-20, c.to-c.at).Draw(t, "snapped")
			k.say(c, max(snapped, 0))
			if rapid.Bool().Draw(t, "acknowledged") {
				k.Packet(k.ack(c.dir, 0, int64(c.to)))
			}
		}
		k.Flush()
		k.check()
	})
}

// TestAnyReordering exchanges segments with their neighbors, and has all of them
// acknowledged too early, but within the time to wait: nothing is missing.
func TestAnyReordering(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newTalk(t, capture.Config{GapPackets: 4})
		all := k.drawCuttings(t)
		for i := 0; i+1 < len(all); i += 2 {
			if rapid.Bool().Draw(t, "exchange") && all[i].dir == all[i+1].dir {
				all[i], all[i+1] = all[i+1], all[i]
			}
		}
		for _, c := range all {
			k.Packet(k.ack(c.dir, 0, int64(c.to)))
			k.say(c, 0)
		}
		k.Flush()
		k.check()
		for i, data := range k.dialogue {
			k.only().wantStream(t, capture.Dir(i), data)
		}
	})
}
