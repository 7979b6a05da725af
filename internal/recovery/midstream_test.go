package recovery_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/mpa"
)

// Proves R03, R04, R06: from the middle of a stream on, with its mode given or guessed and
// offsets from any origin, every FPDU is found that is whole, with CRC; and without, from
// where markers or plausible ULPDUs tell.
func TestReceiverMidStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(0, 2000).Draw(t, "length")
		ulpdus := writes(max(40, 12000/(length+14)), length, rapid.Bool().Draw(t, "random"))
		l := newPlan(rapid.Bool().Draw(t, "markers"), rapid.Bool().Draw(t, "crc"), ulpdus)
		from := rapid.IntRange(0, len(l.stream)/3).Draw(t, "from")
		origin := rapid.Uint64Range(0, 1<<33).Draw(t, "origin")
		cfg := recovery.Config{
			Markers: l.markers, CRC: l.crc, MidStream: true, Resync: true, Plausible: tagged,
		}
		if cfg.Guess = rapid.Bool().Draw(t, "guess"); cfg.Guess {
			cfg.Markers, cfg.CRC = rapid.Bool().Draw(t, "M"), rapid.Bool().Draw(t, "C")
		}
		r := recovery.New(cfg)
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
func placedNow(t *rapid.T, r *recovery.Receiver, shift uint64) (placed []string) {
	for ev, ok := r.Next(); ok; ev, ok = r.Next() {
		switch ev.Kind {
		case recovery.Placed:
			placed = append(placed, line(int(ev.Offset-shift), int(ev.End-shift), ev.ULPDU))
		case recovery.Resynced:
			if ev.Sync.Confidence < recovery.ConfidenceFair || ev.Sync.Offset != ev.Offset || ev.Sync.FPDUs == 0 ||
				ev.Sync.Markers && (ev.Offset-shift-uint64(ev.Sync.Phase-int(shift%512)))%4 != 0 {
				t.Fatalf("%+v", ev)
			}
		case recovery.Failed, recovery.Cut, recovery.Dropped:
			t.Fatalf("%+v", ev)
		}
	}
	return placed
}

// In the middle of a stream errors have the offsets of that stream.
func TestReceiverMidStreamErrors(t *testing.T) {
	l := newPlan(true, true, writes(10, 1000, true))
	f := l.frames[4]
	marker := (f.start + 511) / 512 * 512
	l.stream[marker+3] ^= 8
	copy(l.stream[f.end-4:], layout.AppendCRC(nil, layout.CRC32C(0, l.stream[f.start:f.end-4])))
	l.stream[l.frames[6].end-1] ^= 1
	r := recovery.New(recovery.Config{MidStream: true, Guess: true, Resync: true})
	r.Segment(100, l.stream[1000:])
	var errs []*mpa.Error
	for ev, ok := r.Next(); ok; ev, ok = r.Next() {
		if ev.Kind == recovery.Failed {
			errs = append(errs, ev.Err)
			if valid := ev.Err.Code == mpa.CodeMarker; ev.CRCValid != valid || (ev.ULPDU != nil) != valid {
				t.Errorf("%v: CRC %v, %d bytes", ev.Err, ev.CRCValid, len(ev.ULPDU))
			}
		}
	}
	if len(errs) != 2 || errs[0].Offset != uint64(marker-900) || errs[1].Offset != uint64(l.frames[6].end-4-900) {
		t.Errorf("errors %v, want at %d and %d", errs, marker-900, l.frames[6].end-4-900)
	}
}

// What lies before the first segment in the middle of a stream is ignored.
func TestReceiverMidStreamBefore(t *testing.T) {
	l := even(false, true, 6)
	r := recovery.New(recovery.Config{CRC: true, MidStream: true})
	if _, _, ok := r.Mode(); ok || r.Synced() {
		t.Error("known from the beginning")
	}
	r.SkipTo(5)
	r.Segment(3000, nil) // no bytes are no segment
	for _, seg := range []segment{{1000, 1800}, {0, 1000}} {
		r.Segment(uint64(seg.from), l.stream[seg.from:seg.to])
		for ev, ok := r.Next(); ok; ev, ok = r.Next() {
			if ev.Kind == recovery.Placed && ev.Offset != 1024 {
				t.Errorf("%s", told(ev))
			}
		}
	}
	if r.Delivered() != 1536 || r.Stats().Repeated != 1000 {
		t.Errorf("delivered up to %d, %+v", r.Delivered(), r.Stats())
	}
}

// A search after lost bytes without CRC and markers needs FPDUs in a row.
func TestReceiverByChain(t *testing.T) {
	for _, c := range []struct {
		name      string
		plausible func([]byte) bool
		first     int // FPDU found, -1 for none
	}{
		{"plausible", tagged, 2},
		{"implausible", func([]byte) bool { return false }, -1},
		{"blind", nil, 6},
	} {
		l := newPlan(false, false, writes(24, 1401, true))
		s := newSink(l, recovery.Config{Resync: true, Plausible: c.plausible}, t.Fatalf)
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

// Bytes that can never be the beginning of an FPDU are given up at last.
func TestReceiverOfGarbage(t *testing.T) {
	const buffer = 1 << 18
	for _, mode := range []struct{ markers, crc bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		garbage := make([]byte, 2*buffer)
		for i := 0; i < len(garbage); i += 4 {
			binary.BigEndian.PutUint32(garbage[i:], uint32(i*i)|0x40000000)
		}
		l := newPlan(mode.markers, mode.crc, writes(50, 1000, true))
		stream := append(bytes.Clone(garbage), l.stream...)
		r := recovery.New(recovery.Config{
			Markers: mode.markers, CRC: mode.crc, Buffer: buffer, MidStream: true, Resync: true, Plausible: tagged,
		})
		placed := 0
		for at := 0; at < len(stream); at += 8192 {
			r.Segment(uint64(at), stream[at:min(at+8192, len(stream))])
			for ev, ok := r.Next(); ok; ev, ok = r.Next() {
				if ev.Kind == recovery.Placed {
					placed++
				}
			}
		}
		if got := r.Stats(); placed < 40 || got.MostHeld > buffer {
			t.Errorf("%+v: %d FPDUs placed, %+v", mode, placed, got)
		}
	}
}
