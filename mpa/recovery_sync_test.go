package mpa_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/mpa"
)

// tagged tells whether a ULPDU begins like a DDP segment of an RDMA Write.
func tagged(u []byte) bool { return len(u) >= 14 && (u[0] == 0xc1 || u[0] == 0x81) && u[1] == 0x40 }

// writes returns n ULPDUs of RDMA Writes with payload of random octets, or of zeroes.
func writes(n, length int, random bool) (ulpdus [][]byte) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		u := make([]byte, 14+length+i%5)
		for k := range u {
			if random {
				u[k] = byte(rnd.Uint32())
			}
		}
		copy(u, []byte{0x81, 0x40})
		ulpdus = append(ulpdus, u)
	}
	return ulpdus
}

// Proves R03: a boundary is found anywhere in a stream, with what tells that it is one;
// nothing is found where nothing tells.
func TestResync(t *testing.T) {
	for _, c := range []struct {
		markers, crc bool
		length       int
		plausible    func([]byte) bool
		want         mpa.Confidence
	}{
		{true, true, 1400, nil, mpa.ConfidenceCertain},
		{true, true, 30, nil, mpa.ConfidenceCertain},
		{false, true, 1400, nil, mpa.ConfidenceCertain},
		{false, true, 30, nil, mpa.ConfidenceCertain},
		{true, false, 1400, nil, mpa.ConfidenceGood},
		{true, false, 30, nil, mpa.ConfidenceGood},
		{false, false, 1400, tagged, mpa.ConfidenceFair},
		{false, false, 30, tagged, mpa.ConfidenceFair},
		{false, false, 1400, func([]byte) bool { return false }, 0},
	} {
		for _, random := range []bool{false, true} {
			l := newLayout(c.markers, c.crc, writes(100, c.length, random))
			for _, from := range []int{0, 1, 2, 3, 700, 1001, 2049} {
				sync, ok := mpa.Resync(l.stream[from:], c.plausible)
				name := fmt.Sprintf("%+v from %d", c, from)
				if ok != (c.want > 0) || sync.Confidence != c.want {
					t.Errorf("%s: %v, %+v", name, ok, sync)
				}
				if ok {
					checkSync(t, name, l, from, sync)
				}
			}
		}
	}
}

func checkSync(t *testing.T, name string, l *layout, from int, sync mpa.Sync) {
	t.Helper()
	if sync.Markers != l.markers || sync.CRC != l.crc || sync.Markers && (from+sync.Phase)%512 != 0 {
		t.Errorf("%s: %+v", name, sync)
	}
	for _, f := range l.frames {
		if f.start == from+int(sync.Offset) {
			return
		}
	}
	t.Errorf("%s: no FPDU begins at %d", name, from+int(sync.Offset))
}

// Payload without an FPDU in it is not taken for one, in any mode.
func TestResyncOfPayload(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for name, octet := range map[string]func(i int) byte{
		"zeroes":   func(int) byte { return 0 },
		"ones":     func(int) byte { return 0xff },
		"fours":    func(int) byte { return 4 },
		"count":    func(i int) byte { return byte(i) },
		"numbers":  func(i int) byte { return []byte{0, 0, 0, byte(i >> 2)}[i&3] },
		"eights":   func(i int) byte { return []byte{0, 0, 0, 8}[i&3] },
		"pairs":    func(i int) byte { return []byte{0, byte(i >> 3)}[i&1] },
		"random":   func(int) byte { return byte(rnd.Uint32()) },
		"sparse":   func(int) byte { return byte(rnd.Uint32() & rnd.Uint32() & rnd.Uint32() & rnd.Uint32()) },
		"sentence": func(i int) byte { return "the quick brown fox jumps over the lazy dog "[i%44] },
	} {
		b := make([]byte, 1<<17)
		for i := range b {
			b[i] = octet(i)
		}
		if sync, ok := mpa.Resync(b, tagged); ok {
			t.Errorf("%s: %+v", name, sync)
		}
		if sync, ok := mpa.Resync(b, nil); ok && sync.Confidence > mpa.ConfidenceWeak {
			t.Errorf("%s, without Plausible: %+v", name, sync)
		}
	}
}

// Lengths alone are a weak hint: 20 in a row.
func TestResyncByLengths(t *testing.T) {
	l := newLayout(false, false, writes(40, 1401, true))
	sync, ok := mpa.Resync(l.stream[500:], nil)
	if !ok || sync.Confidence != mpa.ConfidenceWeak || sync.FPDUs < 16 {
		t.Errorf("%v, %+v", ok, sync)
	}
	checkSync(t, "lengths", l, 500, sync)
	if sync, ok = mpa.Resync(l.stream[:12*1420], nil); ok {
		t.Errorf("%+v of 12 FPDUs", sync)
	}
}

// Without 512 octets of whole FPDUs, that there are no markers is a guess.
func TestResyncOfLittle(t *testing.T) {
	l := newLayout(false, true, writes(3, 30, true))
	if sync, ok := mpa.Resync(l.stream, nil); !ok || sync.Confidence != mpa.ConfidenceFair || sync.FPDUs != 3 {
		t.Errorf("%v, %+v", ok, sync)
	}
	if sync, ok := mpa.Resync(l.stream[:20], nil); ok {
		t.Errorf("%+v of nothing", sync)
	}
}

// Proves R03, R04, R06: from the middle of a stream on, with its mode given or guessed and
// offsets from any origin, every FPDU is found that is whole, with CRC; and without, from
// where markers or plausible ULPDUs tell.
func TestRecoveryMidStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(0, 2000).Draw(t, "length")
		ulpdus := writes(max(40, 12000/(length+14)), length, rapid.Bool().Draw(t, "random"))
		l := newLayout(rapid.Bool().Draw(t, "markers"), rapid.Bool().Draw(t, "crc"), ulpdus)
		from := rapid.IntRange(0, len(l.stream)/3).Draw(t, "from")
		origin := rapid.Uint64Range(0, 1<<33).Draw(t, "origin")
		cfg := mpa.RecoveryConfig{
			Markers: l.markers, CRC: l.crc, MidStream: true, Resync: true, Plausible: tagged,
		}
		if cfg.Guess = rapid.Bool().Draw(t, "guess"); cfg.Guess {
			cfg.Markers, cfg.CRC = rapid.Bool().Draw(t, "M"), rapid.Bool().Draw(t, "C")
		}
		r := mpa.NewRecovery(cfg)
		var got []string
		for at := from; at < len(l.stream); {
			to := min(at+rapid.IntRange(1, 3000).Draw(t, "segment"), len(l.stream))
			r.Segment(origin+uint64(at-from), l.stream[at:to])
			got = append(got, placedNow(t, r, origin-uint64(from))...)
			at = to
		}
		r.SkipTo(math.MaxUint64)
		got = append(got, placedNow(t, r, origin-uint64(from))...)
		markers, crc, ok := r.Mode()
		if !ok || markers != l.markers || crc != l.crc || !r.Synced() {
			t.Fatalf("markers %v, crc %v, %v, want %v, %v", markers, crc, ok, l.markers, l.crc)
		}
		for i := range l.frames {
			l.frames[i].found = l.frames[i].start >= from
		}
		want := l.placed()
		if !l.crc && len(got) > len(want)/2 {
			want = want[max(len(want)-len(got), 0):] // the first ones may not be told
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// placedNow lists the FPDUs placed, at their offsets less shift.
func placedNow(t *rapid.T, r *mpa.Recovery, shift uint64) (placed []string) {
	for ev, ok := r.Next(); ok; ev, ok = r.Next() {
		switch ev.Event {
		case mpa.EventPlaced:
			placed = append(placed, line(int(ev.Offset-shift), int(ev.End-shift), ev.ULPDU))
		case mpa.EventResynced:
			if ev.Sync.Confidence < mpa.ConfidenceFair || ev.Sync.Offset != ev.Offset || ev.Sync.FPDUs == 0 ||
				ev.Sync.Markers && (ev.Offset-shift-uint64(ev.Sync.Phase-int(shift%512)))%4 != 0 {
				t.Fatalf("%+v", ev)
			}
		case mpa.EventFailed, mpa.EventCut, mpa.EventDropped:
			t.Fatalf("%+v", ev)
		}
	}
	return placed
}

// In the middle of a stream errors have the offsets of that stream.
func TestRecoveryMidStreamErrors(t *testing.T) {
	l := newLayout(true, true, writes(10, 1000, true))
	f := l.frames[4]
	marker := (f.start + 511) / 512 * 512
	l.stream[marker+3] ^= 8
	copy(l.stream[f.end-4:], mpa.AppendCRC(nil, mpa.CRC32C(0, l.stream[f.start:f.end-4])))
	l.stream[l.frames[6].end-1] ^= 1
	r := mpa.NewRecovery(mpa.RecoveryConfig{MidStream: true, Guess: true, Resync: true})
	r.Segment(100, l.stream[1000:])
	var errs []*mpa.Error
	for ev, ok := r.Next(); ok; ev, ok = r.Next() {
		if ev.Event == mpa.EventFailed {
			errs = append(errs, ev.Err)
			if valid := ev.Err.Code == mpa.CodeMarker; ev.CRCValid != valid || (ev.ULPDU != nil) != valid {
				t.Errorf("%v: CRC %v, %d octets", ev.Err, ev.CRCValid, len(ev.ULPDU))
			}
		}
	}
	if len(errs) != 2 || errs[0].Offset != uint64(marker-900) || errs[1].Offset != uint64(l.frames[6].end-4-900) {
		t.Errorf("errors %v, want at %d and %d", errs, marker-900, l.frames[6].end-4-900)
	}
}

// What lies before the first segment in the middle of a stream is ignored.
func TestRecoveryMidStreamBefore(t *testing.T) {
	l := even(false, true, 6)
	r := mpa.NewRecovery(mpa.RecoveryConfig{CRC: true, MidStream: true})
	if _, _, ok := r.Mode(); ok || r.Synced() {
		t.Error("known from the beginning")
	}
	r.SkipTo(5)
	for _, seg := range []segment{{1000, 1800}, {0, 1000}} {
		r.Segment(uint64(seg.from), l.stream[seg.from:seg.to])
		for ev, ok := r.Next(); ok; ev, ok = r.Next() {
			if ev.Event == mpa.EventPlaced && ev.Offset != 1024 {
				t.Errorf("%s", told(ev))
			}
		}
	}
	if r.Delivered() != 1536 || r.Stats().Repeated != 1000 {
		t.Errorf("delivered up to %d, %+v", r.Delivered(), r.Stats())
	}
}

// A search behind lost octets without CRC and markers needs FPDUs in a row.
func TestRecoveryByChain(t *testing.T) {
	for _, c := range []struct {
		name      string
		plausible func([]byte) bool
		first     int // FPDU found, -1 for none
	}{
		{"plausible", tagged, 2},
		{"implausible", func([]byte) bool { return false }, -1},
		{"blind", nil, 6},
	} {
		l := newLayout(false, false, writes(24, 1401, true))
		s := newSink(l, mpa.RecoveryConfig{Resync: true, Plausible: c.plausible}, t.Fatalf)
		s.segment(segment{0, l.frames[0].end + 1}) // ULPDU_Length of the second one is not there
		s.segment(segment{l.frames[1].end - 100, len(l.stream)})
		s.r.SkipTo(uint64(l.frames[1].end - 100))
		s.drain()
		for i := range l.frames {
			l.frames[i].found = i == 0 || c.first >= 0 && i >= c.first
		}
		if diff := cmp.Diff(l.placed(), s.sorted()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// Octets that can never be the beginning of an FPDU are given up at last.
func TestRecoveryOfGarbage(t *testing.T) {
	for _, mode := range []struct{ markers, crc bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		garbage := make([]byte, 1<<20)
		for i := 0; i < len(garbage); i += 4 {
			binary.BigEndian.PutUint32(garbage[i:], uint32(i*i)|0x40000000)
		}
		l := newLayout(mode.markers, mode.crc, writes(50, 1000, true))
		stream := append(bytes.Clone(garbage), l.stream...)
		r := mpa.NewRecovery(mpa.RecoveryConfig{
			Markers: mode.markers, CRC: mode.crc, Buffer: 1 << 18, MidStream: true, Resync: true, Plausible: tagged,
		})
		placed := 0
		for at := 0; at < len(stream); at += 8192 {
			r.Segment(uint64(at), stream[at:min(at+8192, len(stream))])
			for ev, ok := r.Next(); ok; ev, ok = r.Next() {
				if ev.Event == mpa.EventPlaced {
					placed++
				}
			}
		}
		if got := r.Stats(); placed < 40 || got.MostHeld > 1<<18 {
			t.Errorf("%+v: %d FPDUs placed, %+v", mode, placed, got)
		}
	}
}
