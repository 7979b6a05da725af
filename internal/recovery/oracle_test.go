package recovery_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/mpa"
)

// laid is one FPDU of a plan.
type laid struct {
	start, end, header int // stream offsets: of the FPDU, after it, after ULPDU_Length
	marked             bool
	ulpdu              []byte
	found              bool
}

// A plan is a stream of which everything is known, and what of it has arrived. It
// tells what a receiver can find by the rules alone, without any parsing.
type plan struct {
	markers, crc bool
	stream       []byte
	frames       []laid
	arrived      []bool
}

// newPlan frames ULPDUs.
func newPlan(markers, crc bool, ulpdus [][]byte) *plan {
	l := &plan{markers: markers, crc: crc}
	w := mpa.NewWriter(markers, crc)
	for _, u := range ulpdus {
		f := laid{start: len(l.stream), ulpdu: u}
		l.stream = w.Append(l.stream, u)
		f.end = len(l.stream)
		f.header = f.start + 2
		first := (f.start + 511) / 512 * 512
		f.marked = markers && first < f.end
		if f.marked && first == f.start {
			f.header += 4
		}
		l.frames = append(l.frames, f)
	}
	l.arrived = make([]bool, len(l.stream))
	return l
}

// drawPlan draws up to n ULPDUs, tiny to large, with payload of several kinds.
func drawPlan(t *rapid.T, n int) *plan {
	lengths := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(400, 600), rapid.IntRange(1, 3000))
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	fill := rapid.SampledFrom([]int{-1, 0, 0xee}).Draw(t, "payload")
	var ulpdus [][]byte
	for range rapid.IntRange(1, n).Draw(t, "FPDUs") {
		u := make([]byte, lengths.Draw(t, "length"))
		for i := range u {
			if u[i] = byte(fill); fill < 0 {
				u[i] = byte(random.Uint32())
			}
		}
		ulpdus = append(ulpdus, u)
	}
	return newPlan(rapid.Bool().Draw(t, "markers"), rapid.Bool().Draw(t, "crc"), ulpdus)
}

// A segment is a part of a stream.
type segment struct{ from, to int }

// drawSegments cuts a stream of n bytes into segments and shuffles them. With loss
// some are left out, and some come twice or overlap others in any case.
func drawSegments(t *rapid.T, n int, loss bool) (segs []segment) {
	most := rapid.SampledFrom([]int{7, 100, 700, 1460, 9000}).Draw(t, "largest segment")
	most = max(most, n/200)
	for at := 0; at < n; {
		to := min(at+rapid.IntRange(1, most).Draw(t, "segment"), n)
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case loss && kind == 0:
		case kind == 1:
			segs = append(segs, segment{at, to}, segment{max(at-rapid.IntRange(0, 200).Draw(t, "overlap"), 0), to})
		default:
			segs = append(segs, segment{at, to})
		}
		at = to
	}
	switch rapid.IntRange(0, 3).Draw(t, "order") {
	case 0:
	case 1:
		slices.Reverse(segs)
	case 2: // neighbors change places
		for i := 1; i < len(segs); i += 2 {
			segs[i-1], segs[i] = segs[i], segs[i-1]
		}
	default:
		segs = rapid.Permutation(segs).Draw(t, "segments")
	}
	return segs
}

// whole reports whether all bytes of a range have arrived.
func (l *plan) whole(from, to int) bool { return !slices.Contains(l.arrived[from:to], false) }

func (l *plan) set(from, to int, arrived bool) {
	for i := from; i < to; i++ {
		l.arrived[i] = arrived
	}
}

// find marks what is recoverable of what has arrived while more may come: an FPDU that
// is whole and the first one, or right after one that was found, or has a marker.
func (l *plan) find() {
	for i := range l.frames {
		f := &l.frames[i]
		f.found = f.found || l.whole(f.start, f.end) && (i == 0 || l.frames[i-1].found || f.marked)
	}
}

// giveUp marks what is recoverable when no more comes: with CRC every FPDU that is
// whole; otherwise also one right after an FPDU whose start is known and whose bytes
// are there up to ULPDU_Length.
func (l *plan) giveUp() {
	located := true
	for i := range l.frames {
		f := &l.frames[i]
		f.found = f.found || l.whole(f.start, f.end) && (located || l.crc || f.marked)
		located = f.found || located && l.whole(f.start, f.header)
	}
}

// delivered returns where what was found from the beginning on ends.
func (l *plan) delivered() (at int) {
	for _, f := range l.frames {
		if !f.found {
			break
		}
		at = f.end
	}
	return at
}

// held returns the bytes that arrived and are in no FPDU found.
func (l *plan) held() (n int) {
	free := slices.Clone(l.arrived)
	for _, f := range l.frames {
		if f.found {
			clear(free[f.start:f.end])
		}
	}
	for _, b := range free {
		if b {
			n++
		}
	}
	return n
}

// placed lists the FPDUs found.
func (l *plan) placed() (list []string) {
	for _, f := range l.frames {
		if f.found {
			list = append(list, line(f.start, f.end, f.ulpdu))
		}
	}
	return list
}

func line(from, to int, ulpdu []byte) string { return fmt.Sprintf("%d-%d %x", from, to, ulpdu) }

// A sink takes the events of a Receiver and checks what must hold of each of them.
type sink struct {
	*plan
	r      *recovery.Receiver
	placed []string
	events []recovery.Event // without what is only valid until the next call
	passed []bool           // bytes handed over
	last   uint64
	fail   func(format string, args ...any)
}

func newSink(l *plan, cfg recovery.Config, fail func(string, ...any)) *sink {
	cfg.Markers, cfg.CRC = l.markers, l.crc
	return &sink{plan: l, r: recovery.New(cfg), passed: make([]bool, len(l.stream)), fail: fail}
}

// segment gives a segment of which nothing may change, and takes what comes of it.
func (s *sink) segment(seg segment) {
	b := bytes.Clone(s.stream[seg.from:seg.to])
	s.set(seg.from, seg.to, true)
	s.r.Segment(uint64(seg.from), b)
	s.drain()
	if !bytes.Equal(b, s.stream[seg.from:seg.to]) {
		s.fail("the segment %v was changed", seg)
	}
}

func (s *sink) drain() {
	for {
		ev, ok := s.r.Next()
		if !ok {
			if s.last != s.r.Delivered() {
				s.fail("delivered up to %d, reported %d", s.r.Delivered(), s.last)
			}
			return
		}
		s.event(ev)
	}
}

func (s *sink) event(ev recovery.Event) {
	if ev.Delivered < s.last {
		s.fail("delivered went back from %d to %d", s.last, ev.Delivered)
	}
	s.last = ev.Delivered
	if n := len(ev.Bytes); uint64(n) != ev.End-ev.Offset && (n > 0 || ev.Kind == recovery.Placed) {
		s.fail("%d bytes with an FPDU from %d to %d", n, ev.Offset, ev.End)
	}
	switch ev.Kind {
	case recovery.Placed:
		for i := ev.Offset; i < ev.End; i++ {
			if s.passed[i] {
				s.fail("byte %d was passed twice", i)
			}
			s.passed[i] = true
		}
		s.placed = append(s.placed, line(int(ev.Offset), int(ev.End), ev.ULPDU))
		s.marks(ev)
	case recovery.Resynced:
		s.sync(ev)
	case recovery.Dropped:
		s.set(int(ev.Offset), int(ev.End), false)
	}
	ev.ULPDU, ev.Markers, ev.Bytes = nil, nil, nil
	s.events = append(s.events, ev)
}

// marks checks the markers reported of an FPDU: all that stand in it.
func (s *sink) marks(ev recovery.Event) {
	want := 0
	if s.markers {
		want = int((ev.End+511)/512 - (ev.Offset+511)/512)
	}
	if len(ev.Markers) != want || ev.CRCValid != s.crc || ev.Length != len(ev.ULPDU) {
		s.fail("FPDU at %d: %d markers, want %d, length %d, %v",
			ev.Offset, len(ev.Markers), want, ev.Length, ev.CRCValid)
	}
	for _, m := range ev.Markers {
		if !m.Valid || m.Offset%512 != 0 {
			s.fail("FPDU at %d: marker %+v", ev.Offset, m)
		}
	}
}

// sync checks what a resynchronization says of the FPDUs that follow: how many, their
// bytes and markers.
func (s *sink) sync(ev recovery.Event) {
	first := slices.IndexFunc(s.frames, func(f laid) bool { return uint64(f.start) == ev.Offset })
	if first < 0 || ev.Sync.FPDUs < 1 || ev.Sync.FPDUs > len(s.frames)-first {
		s.fail("%+v", ev)
		return
	}
	end := uint64(s.frames[first+ev.Sync.FPDUs-1].end)
	want := recovery.Sync{
		Offset: ev.Offset, Markers: s.markers, CRC: s.crc, FPDUs: ev.Sync.FPDUs, Plausible: ev.Sync.Plausible,
		Bytes: end - ev.Offset, Confidence: ev.Sync.Confidence,
	}
	if s.markers {
		want.Agreeing = int((end+511)/512 - (ev.Offset+511)/512)
	}
	if diff := cmp.Diff(want, ev.Sync, cmpopts.IgnoreUnexported(recovery.Sync{})); diff != "" || ev.End != ev.Offset {
		s.fail("resynced %d-%d: %s", ev.Offset, ev.End, diff)
	}
}

// sorted returns the FPDUs placed, in the order of the stream.
func (s *sink) sorted() []string {
	list := slices.Clone(s.placed)
	slices.SortFunc(list, func(a, b string) int {
		var x, y int
		fmt.Sscanf(a, "%d", &x)
		fmt.Sscanf(b, "%d", &y)
		return x - y
	})
	return list
}

// count returns how many events of a kind there were.
func (s *sink) count(kind recovery.Kind) (n int) {
	for _, ev := range s.events {
		if ev.Kind == kind {
			n++
		}
	}
	return n
}

// cuts reports whether a byte lies in an FPDU that was cut.
func (s *sink) cuts(at int) bool {
	for _, ev := range s.events {
		if ev.Kind == recovery.Cut && ev.Offset <= uint64(at) && uint64(at) < ev.End {
			return true
		}
	}
	return false
}
