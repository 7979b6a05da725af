package mpa_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
)

// received is what a receiver made of a stream: its ULPDUs with their offsets, and
// the error that ended it.
type received struct {
	FPDUs []string
	Err   string
}

// receive gives a stream to a Reader in pieces, as a receiver does: what was not
// consumed stays in front of the next piece.
func receive(r mpa.Reader, stream []byte, piece func() int) (got received) {
	var buf []byte
	for len(stream) > 0 {
		n := min(max(piece(), 1), len(stream))
		buf, stream = append(buf, stream[:n]...), stream[n:]
		for {
			f, n, err := r.Next(buf)
			if err != nil {
				got.Err = err.Error()
				return got
			}
			if n == 0 {
				break
			}
			got.FPDUs = append(got.FPDUs, fmt.Sprintf("%d+%d %x", f.Offset, f.Size, f.ULPDU))
			buf = buf[n:]
		}
	}
	return got
}

func whole() int { return 1 << 30 }

// Proves F02, F12, R02, R04, R06: whatever is framed is found again, ULPDU by
// ULPDU, once each, whatever the splits.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		markers, crc := rapid.Bool().Draw(t, "markers"), rapid.Bool().Draw(t, "crc")
		ulpdus := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 1200), 1, 8).Draw(t, "ulpdus")
		w := mpa.NewWriter(markers, crc)
		var stream []byte
		var want received
		for _, u := range ulpdus {
			at, size := w.Offset(), layout.Size(w.Offset(), len(u), markers)
			cut := rapid.IntRange(0, len(u)).Draw(t, "cut")
			stream = w.Append(stream, u[:cut], u[cut:])
			want.FPDUs = append(want.FPDUs, fmt.Sprintf("%d+%d %x", at, size, u))
		}
		if w.Offset() != uint64(len(stream)) {
			t.Fatalf("Writer at %d, stream of %d bytes", w.Offset(), len(stream))
		}
		piece := func() int { return rapid.IntRange(1, 700).Draw(t, "piece") }
		if diff := cmp.Diff(want, receive(mpa.NewReader(markers, crc), stream, piece)); diff != "" {
			t.Error(diff)
		}
	})
}

// Proves R01, Q16: of a stream with one damaged byte, CRC on, nothing that was not
// sent is ever handed out, and nothing after the damage.
func TestDamageIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		markers := rapid.Bool().Draw(t, "markers")
		w := mpa.NewWriter(markers, true)
		var stream []byte
		for range 6 {
			n := rapid.IntRange(0, 700).Draw(t, "length")
			stream = w.Append(stream, bytes.Repeat([]byte{0x5a}, n))
		}
		clean := receive(mpa.NewReader(markers, true), bytes.Clone(stream), whole)
		at := rapid.IntRange(0, len(stream)-1).Draw(t, "at")
		stream[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		got := receive(mpa.NewReader(markers, true), stream, whole)
		if len(got.FPDUs) >= len(clean.FPDUs) {
			t.Fatalf("all FPDUs were accepted")
		}
		if diff := cmp.Diff(clean.FPDUs[:len(got.FPDUs)], got.FPDUs, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}

// Proves F07, F08: on any stream a marker stands at every 512th byte, and points to
// the ULPDU_Length of the FPDU around it.
func TestMarkersByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := mpa.NewWriter(true, true)
		var stream []byte
		start := map[int]int{} // byte of the stream to the ULPDU_Length of its FPDU
		for range rapid.IntRange(1, 20).Draw(t, "FPDUs") {
			at := len(stream)
			stream = w.Append(stream, make([]byte, rapid.IntRange(0, 1500).Draw(t, "length")))
			header := at
			if at%512 == 0 {
				header += 4
			}
			for i := at; i < len(stream); i++ {
				start[i] = header
			}
		}
		for at := 0; at < len(stream); at += 512 {
			want := []byte{0, 0, 0, 0}
			if d := at - start[at]; d > 0 {
				want = []byte{0, 0, byte(d >> 8), byte(d)}
			}
			if !bytes.Equal(stream[at:at+4], want) {
				t.Fatalf("marker at %d: % x want % x", at, stream[at:at+4], want)
			}
		}
	})
}

// FuzzReader gives any bytes to a Reader, whole and byte by byte.
//
// Proves R04: any split of a stream gives the same FPDUs and the same error.
func FuzzReader(f *testing.F) {
	for _, c := range figures {
		f.Add(vector(f, c.vector), c.markers, true, byte(3))
	}
	f.Add(bytes.Repeat([]byte{0, 0, 0, 0, 0, 4}, 200), true, false, byte(1))
	f.Add(bytes.Repeat([]byte{0}, 2000), false, false, byte(200))
	f.Fuzz(func(t *testing.T, stream []byte, markers, crc bool, step byte) {
		r := mpa.NewReader(markers, crc)
		one := receive(r, bytes.Clone(stream), whole)
		parts := receive(r, bytes.Clone(stream), func() int { return int(step) })
		if diff := cmp.Diff(one.FPDUs, parts.FPDUs); diff != "" {
			t.Error(diff)
		}
		// A hint may look at bytes after the FPDU; everything else is equal.
		if (one.Err == "") != (parts.Err == "") {
			t.Errorf("whole: %q, in parts: %q", one.Err, parts.Err)
		}
	})
}

// FuzzRoundTrip frames three ULPDUs and finds them again.
//
// Proves F12: the ULPDU handed out is the ULPDU framed.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("one"), []byte(""), bytes.Repeat([]byte{3}, 600), true, true, byte(7))
	f.Add([]byte("one"), bytes.Repeat([]byte{2}, 9000), bytes.Repeat([]byte{3}, 65000), true, true, byte(200))
	f.Fuzz(func(t *testing.T, a, b, c []byte, markers, crc bool, step byte) {
		w := mpa.NewWriter(markers, crc)
		var stream []byte
		var want received
		for _, u := range [][]byte{a, b, c} {
			if len(u) > layout.MaxULPDULength {
				return
			}
			want.FPDUs = append(want.FPDUs, fmt.Sprintf("%d+%d %x",
				w.Offset(), layout.Size(w.Offset(), len(u), markers), u))
			stream = w.Append(stream, u)
		}
		got := receive(mpa.NewReader(markers, crc), stream, func() int { return int(step) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
