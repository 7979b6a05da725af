package decode_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture/decode"
)

// message is n packets, each of them one message in FPDUs of some bytes.
func message(n int, fpdus ...int) []sent {
	return slices.Repeat([]sent{{fpdus: fpdus, whole: true}}, n)
}

// shown is a message whose receiver then acknowledges up to some bytes of it, which are less
// than 0 for those before it.
func shown(data []int, fpdus ...int) []sent {
	return []sent{{fpdus: fpdus, whole: true, then: func(y *bystander) { y.acknowledge(data...) }}}
}

// told is a message after which a router says that packets are too large.
func told(mtu uint16, fpdus ...int) []sent {
	return []sent{{fpdus: fpdus, whole: true, then: func(y *bystander) { y.tooBig(mtu) }}}
}

// TestPathShrinksUntold has a path that comes to take less without anybody saying so, as if the
// MTU of the sender's own interface shrinks: the FPDUs show it, or it is not known.
func TestPathShrinksUntold(t *testing.T) {
	const second = 8 // as in TestPathShrinks
	old, shorter, record := times(4, 1000), times(10, 800), append(times(45, 1000), 200)
	for _, c := range []struct {
		what    string
		packets [][]sent
		want    decode.Alignment // but for the MSS, and the RTR indication
	}{
		{"enough packets", [][]sent{message(1, old...), message(9, shorter...)},
			decode.Alignment{MSSAtEnd: 800, Changed: second, Segments: 94, Aligned: 94, Cut: 10}},
		{"and their acknowledgments", [][]sent{message(1, old...), message(8, shorter...),
			shown([]int{800}, shorter...), message(1, shorter...)},
			decode.Alignment{MSSAtEnd: 800, Changed: second, Segments: 104, Aligned: 104, Cut: 11}},
		{"acknowledgments of one before", [][]sent{message(1, old...), message(7, shorter...),
			shown([]int{800 - 8000}, shorter...), message(1, shorter...)},
			decode.Alignment{MSSAtEnd: 800, Changed: second, Segments: 94, Aligned: 94, Cut: 10}},
		{"and of what was cut as ever", [][]sent{message(1, old...),
			shown([]int{-3000}, shorter...), message(8, shorter...)},
			decode.Alignment{MSSAtEnd: 800, Changed: second, Segments: 94, Aligned: 94, Cut: 10}},
		{"and packets of one segment between them",
			[][]sent{message(1, old...), message(3, shorter...), message(1, 400), message(3, shorter...),
				message(1, 1000), message(2, shorter...)},
			decode.Alignment{MSSAtEnd: 800, Changed: second, Segments: 86, Aligned: 86, Cut: 9}},
		{"several FPDUs a segment, and short ones at the end",
			[][]sent{message(1, old...), message(8, 800, 300, 500, 800, 100)},
			decode.Alignment{MSSAtEnd: 800, Changed: second, Segments: 36, Aligned: 36, Cut: 9}},
		{"more than once", [][]sent{message(1, old...), message(8, times(3, 900)...), message(8, shorter...)},
			decode.Alignment{MSSAtEnd: 800, Changed: second + 8, Segments: 108, Aligned: 108, Cut: 17}},
		{"a packet that is sent again", [][]sent{message(1, old...),
			{{fpdus: shorter, whole: true, then: func(y *bystander) { y.again(1400) }}}, message(8, shorter...)},
			decode.Alignment{MSSAtEnd: 800, Changed: second, Segments: 94, Aligned: 94, Cut: 10}},
		{"one too few", [][]sent{message(1, old...), message(7, shorter...)},
			decode.Alignment{MSSAtEnd: 1000, Segments: 4, Aligned: 4, Cut: 1, Unknown: 7}},
		{"not in a row", [][]sent{message(1, old...), message(7, shorter...),
			message(1, old...), message(7, shorter...)},
			decode.Alignment{MSSAtEnd: 1000, Segments: 8, Aligned: 8, Cut: 2, Unknown: 14}},
		{"not of one size", [][]sent{message(1, old...), message(7, shorter...), message(7, times(4, 900)...)},
			decode.Alignment{MSSAtEnd: 1000, Segments: 4, Aligned: 4, Cut: 1, Unknown: 14}},
		{"a router says something else in between",
			[][]sent{message(1, old...), message(3, shorter...), told(940, shorter...), message(4, shorter...)},
			decode.Alignment{MSSAtEnd: 900, Changed: second + 4, Segments: 4, Aligned: 4, Cut: 1, Unknown: 8}},
		{"FPDUs no larger were aligned before", [][]sent{message(1, 800, 200, 800, 200), message(9, shorter...)},
			decode.Alignment{MSSAtEnd: 1000, Segments: 2, Aligned: 2, Cut: 1, Unknown: 9}},
		{"from the first on", [][]sent{message(20, shorter...)},
			decode.Alignment{MSSAtEnd: 1000, Unknown: 20}},
		{"acknowledgments show that it did not", [][]sent{message(3, shorter...),
			shown([]int{1000, 2000}, shorter...), message(9, shorter...)},
			decode.Alignment{MSSAtEnd: 1000, Segments: 13 * 8, Cut: 13}},
		{"nor what it is after a router", [][]sent{shown([]int{1000}, shorter...),
			told(940, shorter...), message(9, shorter...)},
			decode.Alignment{MSSAtEnd: 900, Changed: second + 2, Segments: 16, Cut: 2, Unknown: 9}},
		{"acknowledgments that show nothing", [][]sent{message(3, shorter...), shown([]int{4000}, shorter...)},
			decode.Alignment{MSSAtEnd: 1000, Unknown: 4}},
		{"the sender does not follow a router", [][]sent{told(840, old...), message(9, old...)},
			decode.Alignment{MSSAtEnd: 800, Changed: second, Segments: 49, Aligned: 4, Cut: 10}},
		{"a router does not say of how much", [][]sent{told(0, old...), message(9, shorter...)},
			decode.Alignment{MSSAtEnd: 800, Changed: second + 1, Segments: 94, Aligned: 94, Cut: 10}},
		{"and it is half", [][]sent{told(0, old...), message(9, times(9, 500)...)},
			decode.Alignment{MSSAtEnd: 500, Changed: second + 1, Segments: 85, Aligned: 85, Cut: 10}},
		{"nor does the sender follow it", [][]sent{told(0, old...), message(9, old...)},
			decode.Alignment{Changed: second, Segments: 4, Aligned: 4, Cut: 1, Unknown: 9}},
		{"messages of one FPDU each", [][]sent{message(1, old...), slices.Repeat([]sent{{fpdus: shorter}}, 9)},
			decode.Alignment{MSSAtEnd: 1000, Segments: 4 + 9*8, Aligned: 4, Cut: 10}},
		{"FPDUs of less than half", [][]sent{message(1, old...), message(9, times(10, 440)...)},
			decode.Alignment{MSSAtEnd: 1000, Segments: 4 + 9*5, Aligned: 4, Cut: 10}},
		{"FPDUs that are not equal", [][]sent{message(1, old...), message(9, 800, 804, 800)},
			decode.Alignment{MSSAtEnd: 1000, Segments: 4 + 9*3, Aligned: 4, Cut: 10}},
		{"records of a constant length", [][]sent{message(20, record...)},
			decode.Alignment{MSSAtEnd: 1000, Segments: 20 * 46, Aligned: 20 * 46, Cut: 20}},
	} {
		t.Run(c.what, func(t *testing.T) {
			said := wantPath(t, slices.Concat(c.packets...), c.want)
			if strings.Contains(said, "may have changed") != (c.want.Unknown > 0 && c.want.Changed == 0) {
				t.Errorf("%d are not judged; it says %s", c.want.Unknown, said)
			}
		})
	}
}

// TestPathShrinksUnaligned has FPDUs that are smaller than segments, and begin anywhere in the
// packets: these are as large as ever, and not aligned.
func TestPathShrinksUnaligned(t *testing.T) {
	s := newScript(t, 60000)
	s.startup(false)
	for range 3 {
		var data []byte
		for i := range 60 {
			h := tagged(1)
			h.Last, h.TO = i == 59, uint64(780*i)
			data = append(data, s.fpdu(fw, h, make([]byte, 780))...)
		}
		for packet := range slices.Chunk(data, 3000) {
			s.send(fw, packet)
		}
	}
	got := declaring(t, s.close(), 1000).conns[0].Halves[fw].Wire
	if want := (decode.Alignment{MSS: 1000, MSSAtEnd: 1000, Segments: 1 + 3*48, Aligned: 1, Cut: 3 * 16}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestPathShrinksOdd has segments of which four bytes do not divide the size, so that the
// largest FPDUs are smaller: nothing has shrunk.
func TestPathShrinksOdd(t *testing.T) {
	got := between(t, 1003, client, server, message(9, times(4, 1000)...)).Halves[fw].Wire
	if want := (decode.Alignment{MSS: 1003, MSSAtEnd: 1003, Segments: 37, Aligned: 1, Cut: 9}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestPathShrinksBothWays has FPDUs of the other direction show the same size, which was never
// aligned at a larger one.
func TestPathShrinksBothWays(t *testing.T) {
	packets := slices.Concat(message(1, times(4, 1000)...), message(16, times(10, 800)...))
	for i := range packets[9:] {
		packets[9+i].d = bw
	}
	got := between(t, 1000, client, server, packets).Halves[bw].Wire
	// An acknowledgment of the last message comes before the first one.
	if want := (decode.Alignment{MSS: 1000, MSSAtEnd: 800, Changed: 17, Segments: 80,
		Aligned: 80, Cut: 8}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
