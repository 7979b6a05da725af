package recovery_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// tagged tells whether a ULPDU begins like a DDP segment of an RDMA Write.
func tagged(u []byte) bool { return len(u) >= 14 && (u[0] == 0xc1 || u[0] == 0x81) && u[1] == 0x40 }

// writes returns n ULPDUs of RDMA Writes with payload of random bytes, or of zeroes.
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
		FPDUs: n, Bytes: uint64(end - l.frames[first].start), Confidence: got.Confidence,
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
	for name, data := range map[string]func(i int) byte{
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
			b[i] = data(i)
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

// Without 512 bytes of whole FPDUs, that there are no markers is a guess.
func TestResyncOfLittle(t *testing.T) {
	l := newPlan(false, true, writes(3, 30, true))
	if sync, ok := recovery.Resync(l.stream, nil); !ok ||
		sync.Confidence != recovery.ConfidenceFair || sync.FPDUs != 3 {
		t.Errorf("%v, %+v", ok, sync)
	}
	if sync, ok := recovery.Resync(l.stream[:20], nil); ok {
		t.Errorf("%+v of nothing", sync)
	}
	for length, want := range map[int]recovery.Confidence{506: recovery.ConfidenceGood, 502: recovery.ConfidenceFair} {
		l = newPlan(false, true, [][]byte{bytes.Repeat([]byte{7}, length)}) // an FPDU of 512 bytes, and less
		if sync, ok := recovery.Resync(l.stream, nil); !ok || sync.Confidence != want {
			t.Errorf("a ULPDU of %d bytes: %v, %+v", length, ok, sync)
		}
	}
}

// An FPDU that begins 8 bytes after the beginning of a marker has its first marker after
// 504 bytes.
func TestResyncLongestWayToAMarker(t *testing.T) {
	l := newPlan(true, true, [][]byte{make([]byte, 506), make([]byte, 600)})
	from := l.frames[1].start
	sync, ok := recovery.Resync(l.stream[from:], nil)
	if from%512 != 8 || !ok || sync.Confidence != recovery.ConfidenceCertain {
		t.Errorf("from %d: %v, %+v", from, ok, sync)
	}
	checkSync(t, "504", l, from, sync, false)
}

// Without CRCs three markers are enough, or six if all are zero, or four FPDUs that are
// plausible, or twenty that are not asked for; one less is not.
func TestResyncOfJustEnough(t *testing.T) {
	for _, c := range []struct {
		n         int
		stream    func(n int) *plan
		plausible func([]byte) bool
		want      recovery.Sync
	}{
		{6, func(n int) *plan { return even(true, false, n) }, nil,
			recovery.Sync{Markers: true, FPDUs: 6, Agreeing: 6, Bytes: 3072, Confidence: recovery.ConfidenceGood}},
		{2, func(n int) *plan { return newPlan(true, false, slicesOf(700, n)) }, nil,
			recovery.Sync{Markers: true, FPDUs: 2, Agreeing: 3, Bytes: 1428, Confidence: recovery.ConfidenceGood}},
		{4, func(n int) *plan { return newPlan(false, false, slicesOf(506, n)) }, func([]byte) bool { return true },
			recovery.Sync{FPDUs: 4, Plausible: 4, Bytes: 2048, Confidence: recovery.ConfidenceFair}},
		{4, func(n int) *plan { return newPlan(false, false, slicesOf(layout.MaxMULPDU, n)) },
			func([]byte) bool { return true },
			recovery.Sync{FPDUs: 4, Plausible: 4, Bytes: 4 * (layout.MaxMULPDU + 8),
				Confidence: recovery.ConfidenceFair}},
		{20, func(n int) *plan { return newPlan(false, false, slicesOf(506, n)) }, nil,
			recovery.Sync{Offset: 2048, FPDUs: 16, Bytes: 8192, Confidence: recovery.ConfidenceWeak}},
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

// Where payload and unused CRC fields are zero, each CRC field may be a marker that is zero:
// those that are not tell. Runs of FPDUs of 508 bytes between them make this last.
func TestResyncOfZeros(t *testing.T) {
	for _, c := range []struct{ length, from int }{
		{23, 2525}, // three in a row, and two markers
		{80, 0},    // for ever, as five FPDUs have 508 bytes
		{80, 1000},
		{80, 1300},
		{5, 100}, // 124 FPDUs between six markers
	} {
		l := newPlan(true, false, writes(400, c.length, false))
		for _, n := range []int{1591, 2600, 4000, 9000} {
			sync, ok := recovery.Resync(l.stream[c.from:c.from+n], tagged)
			begins := slices.ContainsFunc(l.frames, func(f laid) bool { return f.start == c.from+int(sync.Offset) })
			if told := ok && sync.Markers; !told && n >= 4000 || told &&
				(sync.Phase != (512-c.from%512)%512 || !begins) {
				t.Errorf("%+v: %v, %+v of %d bytes", c, ok, sync, n)
			}
		}
	}
}

// Where CRCs are not used, a length that no sender may have tells that there is no FPDU.
//
// Proves S02.
func TestResyncTooLong(t *testing.T) {
	for length, want := range map[int]bool{layout.MaxMULPDU: true, layout.MaxMULPDU + 1: false} {
		l := newPlan(false, false, slicesOf(length, 4))
		if sync, ok := recovery.Resync(l.stream, func([]byte) bool { return true }); ok != want {
			t.Errorf("ULPDUs of %d bytes: %v, %+v", length, ok, sync)
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
	// The PAD of 3 bytes is in the word after a marker.
	behind := append([][]byte{threes(507)}, slices.Repeat([][]byte{threes(499)}, 12)...)
	short := slices.Repeat([][]byte{threes(301)}, 12)
	for _, c := range []struct {
		l  *plan
		at int // bytes before the end of each FPDU
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
			t.Errorf("markers %v, %d bytes before the end: %+v", c.l.markers, c.at, sync)
		}
	}
}

// Plausible is asked of the first 64 bytes of a ULPDU, without markers.
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
	if sync, ok := recovery.Resync(l.stream, tagged); !ok || !sync.CRC ||
		sync.Offset != uint64(f.start) || sync.FPDUs != 1 {
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

// TestResyncNoMarker has a stream without markers, in whose second FPDU a number points to the beginning of the first as a
// marker would if it were in that: it is no marker, as the first one ends before it.
func TestResyncNoMarker(t *testing.T) {
	w := mpa.NewWriter(false, true)
	first := w.Append(nil, make([]byte, 34))
	ulpdu := bytes.Repeat([]byte{0xee}, 130)
	const at = 22 // in the ULPDU
	binary.BigEndian.PutUint32(ulpdu[at:], uint32(len(first)+layout.LengthLen+at))
	stream := w.Append(first, ulpdu)
	for range 20 {
		stream = w.Append(stream, bytes.Repeat([]byte{0xee}, 34))
	}
	got, ok := recovery.Resync(stream, nil)
	if !ok || got.Markers || got.Offset != 0 || got.Confidence != recovery.ConfidenceCertain {
		t.Errorf("%+v", got)
	}
	// less than an interval of markers tells too little to be sure
	if got, ok = recovery.Resync(stream[:len(first)+140], nil); !ok || got.Markers || got.Confidence != recovery.ConfidenceFair {
		t.Errorf("%+v", got)
	}
}
