package recovery_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/mpa/layout"
	"github.com/goiwarp/iwarp/mpa/recovery"
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
	places := []int{0, 3, 2049}
	if testrig.Everything() {
		places = []int{0, 1, 2, 3, 700, 1001, 2049}
	}
	for _, c := range []struct {
		markers, crc bool
		length       int
		plausible    func([]byte) bool
		want         recovery.Confidence
	}{
		{true, true, 1400, nil, recovery.ConfidenceCertain},
		{true, true, 30, nil, recovery.ConfidenceCertain},
		{true, true, 30, tagged, recovery.ConfidenceCertain},
		{true, false, 600, tagged, recovery.ConfidenceGood},
		{false, true, 1400, nil, recovery.ConfidenceCertain},
		{false, true, 30, nil, recovery.ConfidenceCertain},
		{true, false, 1400, nil, recovery.ConfidenceGood},
		{true, false, 30, nil, recovery.ConfidenceGood},
		{false, false, 1400, tagged, recovery.ConfidenceFair},
		{false, false, 30, tagged, recovery.ConfidenceFair},
		{false, false, 1400, func([]byte) bool { return false }, 0},
	} {
		for _, random := range []bool{false, true} {
			l := newPlan(c.markers, c.crc, writes(100, c.length, random))
			for _, from := range places {
				sync, ok := recovery.Resync(l.stream[from:], c.plausible)
				name := fmt.Sprintf("%+v from %d", c, from)
				if ok != (c.want > 0) || sync.Confidence != c.want {
					t.Errorf("%s: %v, %+v", name, ok, sync)
				}
				if ok {
					checkSync(t, name, l, from, sync, c.plausible != nil)
				}
			}
		}
	}
}

// checkSync checks that a boundary found in a stream from an offset on is one, and what is
// said of the FPDUs after it, up to 64.
func checkSync(t *testing.T, name string, l *plan, from int, got recovery.Sync, plausible bool) {
	t.Helper()
	first := slices.IndexFunc(l.frames, func(f laid) bool { return f.start == from+int(got.Offset) })
	if first < 0 {
		t.Errorf("%s: no FPDU begins at %d", name, from+int(got.Offset))
		return
	}
	n := min(len(l.frames)-first, 64)
	end := l.frames[first+n-1].end
	want := recovery.Sync{
		Offset: got.Offset, Markers: l.markers, Phase: got.Phase, CRC: l.crc,
		FPDUs: n, Octets: uint64(end - l.frames[first].start), Confidence: got.Confidence,
	}
	if l.markers {
		want.Phase = (512 - from%512) % 512
		want.Agreeing = (end+511)/512 - (l.frames[first].start+511)/512
	}
	if plausible {
		want.Plausible = n
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(recovery.Sync{})); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// Payload without an FPDU in it is not taken for one, in any mode.
func TestResyncOfPayload(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	size := 1 << 15
	if testrig.Everything() {
		size = 1 << 17
	}
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
		b := make([]byte, size)
		for i := range b {
			b[i] = octet(i)
		}
		if sync, ok := recovery.Resync(b, tagged); ok {
			t.Errorf("%s: %+v", name, sync)
		}
		if sync, ok := recovery.Resync(b, nil); ok && sync.Confidence > recovery.ConfidenceWeak {
			t.Errorf("%s, without Plausible: %+v", name, sync)
		}
	}
}

// Lengths alone are a weak hint: 20 in a row.
func TestResyncByLengths(t *testing.T) {
	l := newPlan(false, false, writes(40, 1401, true))
	sync, ok := recovery.Resync(l.stream[500:], nil)
	if !ok || sync.Confidence != recovery.ConfidenceWeak || sync.FPDUs < 16 {
		t.Errorf("%v, %+v", ok, sync)
	}
	checkSync(t, "lengths", l, 500, sync, false)
	if sync, ok = recovery.Resync(l.stream[:12*1420], nil); ok {
		t.Errorf("%+v of 12 FPDUs", sync)
	}
}

// Without 512 octets of whole FPDUs, that there are no markers is a guess.
func TestResyncOfLittle(t *testing.T) {
	l := newPlan(false, true, writes(3, 30, true))
	if sync, ok := recovery.Resync(l.stream, nil); !ok || sync.Confidence != recovery.ConfidenceFair || sync.FPDUs != 3 {
		t.Errorf("%v, %+v", ok, sync)
	}
	if sync, ok := recovery.Resync(l.stream[:20], nil); ok {
		t.Errorf("%+v of nothing", sync)
	}
	for length, want := range map[int]recovery.Confidence{506: recovery.ConfidenceGood, 502: recovery.ConfidenceFair} {
		l = newPlan(false, true, [][]byte{bytes.Repeat([]byte{7}, length)}) // an FPDU of 512 octets, and less
		if sync, ok := recovery.Resync(l.stream, nil); !ok || sync.Confidence != want {
			t.Errorf("a ULPDU of %d octets: %v, %+v", length, ok, sync)
		}
	}
}

// An FPDU that begins 8 octets after the beginning of a marker has its first marker after
// 504 octets.
func TestResyncLongestWayToAMarker(t *testing.T) {
	l := newPlan(true, true, [][]byte{make([]byte, 506), make([]byte, 600)})
	from := l.frames[1].start
	sync, ok := recovery.Resync(l.stream[from:], nil)
	if from%512 != 8 || !ok || sync.Confidence != recovery.ConfidenceCertain {
		t.Errorf("from %d: %v, %+v", from, ok, sync)
	}
	checkSync(t, "504", l, from, sync, false)
}

// Without CRCs three markers are enough, or four FPDUs that are plausible, or twenty that
// are not asked for; one less is not.
func TestResyncOfJustEnough(t *testing.T) {
	for _, c := range []struct {
		n         int
		stream    func(n int) *plan
		plausible func([]byte) bool
		want      recovery.Sync
	}{
		{3, func(n int) *plan { return even(true, false, n) }, nil,
			recovery.Sync{Markers: true, FPDUs: 3, Agreeing: 3, Octets: 1536, Confidence: recovery.ConfidenceGood}},
		{4, func(n int) *plan { return newPlan(false, false, slicesOf(506, n)) }, func([]byte) bool { return true },
			recovery.Sync{FPDUs: 4, Plausible: 4, Octets: 2048, Confidence: recovery.ConfidenceFair}},
		{4, func(n int) *plan { return newPlan(false, false, slicesOf(layout.MaxMULPDU, n)) }, func([]byte) bool { return true },
			recovery.Sync{FPDUs: 4, Plausible: 4, Octets: 4 * (layout.MaxMULPDU + 8), Confidence: recovery.ConfidenceFair}},
		{20, func(n int) *plan { return newPlan(false, false, slicesOf(506, n)) }, nil,
			recovery.Sync{Offset: 2048, FPDUs: 16, Octets: 8192, Confidence: recovery.ConfidenceWeak}},
	} {
		got, ok := recovery.Resync(c.stream(c.n).stream, c.plausible)
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(recovery.Sync{})); diff != "" || !ok {
			t.Errorf("%d FPDUs: %v, %s", c.n, ok, diff)
		}
		if got, ok = recovery.Resync(c.stream(c.n-1).stream, c.plausible); ok {
			t.Errorf("%d FPDUs: %+v", c.n-1, got)
		}
	}
}

// Where CRCs are not used, anything may stand in their place.
func TestResyncCRCFieldNotUsed(t *testing.T) {
	for _, markers := range []bool{false, true} {
		l := newPlan(markers, false, writes(12, 300, true))
		for _, f := range l.frames {
			copy(l.stream[f.end-4:f.end], "\xff\xff\xff\xff")
		}
		sync, ok := recovery.Resync(l.stream, tagged)
		if !ok || sync.Offset != 0 {
			t.Errorf("markers %v: %v, %+v", markers, ok, sync)
		}
		checkSync(t, "CRC not used", l, 0, sync, true)
	}
}

// Where CRCs are not used, a PAD that is not zero tells that there is no FPDU.
func TestResyncPadNotZero(t *testing.T) {
	threes := func(length int) []byte { return bytes.Repeat([]byte{0x33}, length) }
	// The PAD of 3 octets is in the word after a marker.
	behind := append([][]byte{threes(507)}, slices.Repeat([][]byte{threes(499)}, 12)...)
	short := slices.Repeat([][]byte{threes(301)}, 12)
	for _, c := range []struct {
		l  *plan
		at int // octets before the end of each FPDU
	}{
		{newPlan(false, false, short), 5},
		{newPlan(true, false, short), 5},
		{newPlan(true, false, behind), 5},
		{newPlan(true, false, behind), 7},
	} {
		for _, f := range c.l.frames {
			c.l.stream[f.end-c.at] = 1
		}
		if sync, ok := recovery.Resync(c.l.stream, func(u []byte) bool { return u[0] == 0x33 }); ok {
			t.Errorf("markers %v, %d octets before the end: %+v", c.l.markers, c.at, sync)
		}
	}
}

// Plausible is asked of the first 64 octets of a ULPDU, without markers.
func TestResyncAsksOfBeginnings(t *testing.T) {
	u := make([]byte, 300)
	for i := range u {
		u[i] = byte(i)
	}
	for _, markers := range []bool{false, true} {
		l := newPlan(markers, false, slices.Repeat([][]byte{u}, 40))
		sync, ok := recovery.Resync(l.stream, func(b []byte) bool { return bytes.Equal(b, u[:64]) })
		if !ok || sync.Offset != 0 {
			t.Errorf("markers %v: %v, %+v", markers, ok, sync)
		}
		checkSync(t, "beginnings", l, 0, sync, true)
	}
}

// A valid CRC tells more than ULPDUs that are plausible.
func TestResyncPrefersCRC(t *testing.T) {
	l := newPlan(false, false, writes(20, 30, true))
	f := l.frames[9]
	copy(l.stream[f.end-4:], layout.AppendCRC(nil, layout.CRC32C(0, l.stream[f.start:f.end-4])))
	if sync, ok := recovery.Resync(l.stream, tagged); !ok || !sync.CRC || sync.Offset != uint64(f.start) || sync.FPDUs != 1 {
		t.Errorf("%v, %+v", ok, sync)
	}
}

// Everything on a stream comes in fours: no FPDU is found in the payload of another one
// where none can begin.
func TestReceiverSearchesInFours(t *testing.T) {
	l := even(false, true, 3)
	copy(l.stream[512+101:], newPlan(false, true, [][]byte{make([]byte, 10)}).stream)
	s := newSink(l, recovery.Config{Resync: true}, t.Fatalf)
	s.segment(segment{0, len(l.stream)})
	want := "placed 0-512 in order (512), failed 512-1024 in order (512), lost 512-1024 (1024), resynced 1024-1024 (1024), " +
		"placed 1024-1536 by scan (1536)"
	if got := s.story(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

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
				t.Errorf("%v: CRC %v, %d octets", ev.Err, ev.CRCValid, len(ev.ULPDU))
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
	r.Segment(3000, nil) // no octets are no segment
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

// A search after lost octets without CRC and markers needs FPDUs in a row.
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

// Octets that can never be the beginning of an FPDU are given up at last.
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
