package recovery_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/recovery"
	"github.com/goiwarp/iwarp/mpa"
)

// Proves R03, R04, R05, R06, R07: of segments in any order, with overlap, repeats and
// loss, and with a buffer of any size, exactly what is recoverable is placed, as soon
// as it is; delivered is what is complete from the beginning, and no byte is held
// that was passed or dropped. What is missing in the end for want of room comes in
// when it is sent again.
func TestReceiverAsSoonAsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawPlan(t, 12)
		buffer := rapid.OneOf(rapid.Just(0), rapid.IntRange(1, 4000), rapid.IntRange(4000, 20000)).Draw(t, "buffer")
		s := newSink(l, recovery.Config{Buffer: buffer}, t.Fatalf)
		for _, seg := range drawSegments(t, len(l.stream), true) {
			s.segment(seg)
			checkSoon(t, s, buffer)
		}
		for _, f := range l.frames {
			s.segment(segment{f.start, f.end})
			checkSoon(t, s, buffer)
		}
		if s.r.Delivered() != uint64(len(l.stream)) || len(s.placed) != len(l.frames) {
			t.Fatalf("delivered up to %d of %d, %d of %d FPDUs",
				s.r.Delivered(), len(l.stream), len(s.placed), len(l.frames))
		}
	})
}

// checkSoon compares with the oracle what was placed, delivered and held by now.
func checkSoon(t *rapid.T, s *sink, buffer int) {
	s.find()
	if diff := cmp.Diff(s.plan.placed(), s.sorted(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("placed: %s", diff)
	}
	if got, want := s.r.Delivered(), uint64(s.delivered()); got != want {
		t.Fatalf("delivered up to %d, want %d", got, want)
	}
	bound := max(buffer, recovery.MinBuffer)
	if buffer == 0 {
		bound = recovery.DefaultBuffer
	}
	if got := s.r.Stats(); got.Held > bound || got.MostHeld > bound {
		t.Fatalf("%+v with a buffer of %d", got, bound)
	}
	if got, want := s.r.Stats().Held, s.held(); got != want {
		t.Fatalf("%d bytes held, want %d", got, want)
	}
}

// Proves R02, R03, R04, R06: any segments that cover a stream, in any order and overlap,
// give the same ULPDUs as the Reader finds in order.
func TestReceiverEqualsReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawPlan(t, 12)
		s := newSink(l, recovery.Config{}, t.Fatalf)
		for _, seg := range drawSegments(t, len(l.stream), false) {
			s.segment(seg)
		}
		r := mpa.NewReader(l.markers, l.crc)
		var want []string
		for b := bytes.Clone(l.stream); len(b) > 0; {
			f, n, err := r.Next(b)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, line(int(f.Offset), int(f.Offset)+f.Size, f.ULPDU))
			b = b[n:]
		}
		if diff := cmp.Diff(want, s.sorted(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if got := s.r.Stats(); got.Held != 0 || got.Dropped != 0 || got.Lost != 0 {
			t.Fatalf("in the end: %+v", got)
		}
	})
}

// givenUp gives up what is missing, and holds that exactly what is recoverable then is placed.
func givenUp(t *rapid.T, l *plan, s *sink) {
	l.find()
	s.r.SkipTo(math.MaxUint64)
	s.drain()
	l.giveUp()
	if diff := cmp.Diff(l.placed(), s.sorted(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
}

// Proves R03, R04, R06: when the missing segments are given up, exactly what is
// recoverable then is placed.
func TestReceiverGivesUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawPlan(t, 12)
		s := newSink(l, recovery.Config{Resync: rapid.Bool().Draw(t, "resync")}, t.Fatalf)
		for _, seg := range drawSegments(t, len(l.stream), true) {
			s.segment(seg)
		}
		givenUp(t, l, s)
		if s.count(recovery.Failed) > 0 {
			t.Fatalf("errors in a stream without any: %+v", s.events)
		}
	})
}

// Proves R03, R04, R06: an analyzer of segments that come in order may give up what is
// missing at any time: exactly what is recoverable is placed.
func TestReceiverGivesUpAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawPlan(t, 12)
		s := newSink(l, recovery.Config{Resync: true}, t.Fatalf)
		for at := 0; at < len(l.stream); {
			from := at + rapid.SampledFrom([]int{0, 0, 1, 30, 600}).Draw(t, "gap")
			at = from + rapid.IntRange(1, 1500).Draw(t, "segment")
			s.segment(segment{min(from, len(l.stream)), min(at, len(l.stream))})
			s.r.SkipTo(uint64(rapid.IntRange(0, at).Draw(t, "skip")))
			s.drain()
		}
		givenUp(t, l, s)
		checkLost(t, s)
	})
}

// checkLost checks that each byte was placed, cut or lost, and the count of bytes lost.
func checkLost(t *rapid.T, s *sink) {
	lost, count := slices.Clone(s.passed), uint64(0)
	for _, ev := range s.events {
		for i := ev.Offset; i < min(ev.End, uint64(len(lost))) &&
			(ev.Kind == recovery.Lost || ev.Kind == recovery.Cut); i++ {
			lost[i] = true
		}
		if ev.Kind == recovery.Lost {
			count += ev.End - ev.Offset
		}
	}
	if i := slices.Index(lost, false); i >= 0 && uint64(i) < s.r.Delivered() {
		t.Fatalf("nothing was said of byte %d: %s", i, s.story())
	}
	if got := s.r.Stats().Lost; got < count {
		t.Fatalf("%d bytes lost, of which %d were reported", got, count)
	}
}

// Proves R03, R06: with markers and no CRC, an analyzer of segments in any order passes
// over the FPDUs in which a marker is wrong, and finds all others that the FPDU in front or
// a marker locates.
func TestReceiverOfWrongMarkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawPlan(t, 12)
		if !l.markers || l.crc {
			t.Skip("there is another way to find them")
		}
		wrong := make([]bool, len(l.frames))
		for range rapid.IntRange(1, 3).Draw(t, "wrong markers") {
			at := rapid.IntRange(0, (len(l.stream)-1)/512).Draw(t, "marker") * 512
			copy(l.stream[at:], []byte{0, 0, 0xff, 0xfc}) // before the beginning
			for i, f := range l.frames {
				wrong[i] = wrong[i] || f.start <= at && at < f.end
			}
		}
		s := newSink(l, recovery.Config{Resync: true}, t.Fatalf)
		for _, seg := range drawSegments(t, len(l.stream), false) {
			s.segment(seg)
		}
		for i := range l.frames {
			l.frames[i].found = !wrong[i] && (i == 0 || l.frames[i-1].found || l.frames[i].marked)
		}
		if diff := cmp.Diff(l.placed(), s.sorted(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Proves R01, R06, Q16: with CRC an analyzer finds every FPDU that is whole and not
// damaged, but for those that a damaged length at the end covers, and reports an error for what is; a receiver reports
// the error that the Reader does, and delivers what the Reader does.
func TestReceiverOfDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawPlan(t, 12)
		if !l.crc {
			t.Skip("nothing tells damage")
		}
		clean := bytes.Clone(l.stream)
		for range rapid.IntRange(1, 3).Draw(t, "hits") {
			at := rapid.IntRange(0, len(l.stream)-1).Draw(t, "at")
			l.stream[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		segs := drawSegments(t, len(l.stream), false)
		analyzer := newSink(l, recovery.Config{Resync: true}, t.Fatalf)
		receiver := newSink(l, recovery.Config{}, t.Fatalf)
		for _, seg := range segs {
			analyzer.segment(seg)
			receiver.segment(seg)
		}
		analyzer.r.SkipTo(math.MaxUint64)
		analyzer.drain()
		for i := range l.frames {
			f := &l.frames[i]
			f.found = bytes.Equal(clean[f.start:f.end], l.stream[f.start:f.end]) &&
				(analyzer.passed[f.start] || !analyzer.cuts(f.start))
		}
		if diff := cmp.Diff(l.placed(), analyzer.sorted(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		checkReceiver(t, receiver)
	})
}

// checkReceiver compares with the Reader what a receiver delivered, and its error.
func checkReceiver(t *rapid.T, s *sink) {
	r := mpa.NewReader(s.markers, s.crc)
	var want error
	b := bytes.Clone(s.stream)
	for n := 1; len(b) > 0 && n > 0 && want == nil; b = b[n:] {
		_, n, want = r.Next(b)
	}
	if s.r.Delivered() != r.Offset() {
		t.Fatalf("delivered up to %d, the Reader up to %d", s.r.Delivered(), r.Offset())
	}
	var got *mpa.Error
	for _, ev := range s.events {
		if ev.Kind == recovery.Failed {
			got = ev.Err
		}
	}
	// A length that reaches into an FPDU found by its marker is an error at once,
	// where the Reader waits for as many bytes to find the CRC wrong.
	if want != nil && (got == nil || got.Error() != want.Error() && got.Field != "ULPDU_Length") {
		t.Fatalf("got %v want %v", got, want)
	}
}
