package mpa_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
)

// Proves F01, F04, F07: an FPDU in pieces of any size has the same bytes as one in a
// single piece, and its CRC is that of all of them.
func TestWriterPieces(t *testing.T) {
	for _, c := range []struct{ markers, crc bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		whole, parts := mpa.NewWriter(c.markers, c.crc), mpa.NewWriter(c.markers, c.crc)
		for _, n := range []int{0, 1, 2, 3, 4, 5, 40, 505, 1023, 1024, 1025, 2048, 3001, 64754} {
			header, payload := []byte("fourteen bytes"), bytes.Repeat([]byte("payload"), n/7+1)[:n]
			want := whole.Append([]byte("kept"), append(header, payload...))
			before := parts
			for _, split := range []int{0, min(1, n), n / 3, n / 2, n - n/8, n} {
				parts = before
				got := parts.Begin([]byte("kept"), 14+n)
				got = parts.Payload(got, header)
				got = parts.Payload(got, payload[:split])
				got = parts.Payload(got, payload[split:])
				got = parts.End(got)
				if !bytes.Equal(got, want) || whole.Offset() != parts.Offset() {
					t.Fatalf("%+v, %d bytes of which %d first: other bytes than in one piece", c, n, split)
				}
				end := len(got) - 4
				if crc := layout.AppendCRC(nil, layout.CRC32C(0, got[4:end])); c.crc && !bytes.Equal(got[end:], crc) {
					t.Fatalf("%+v, %d bytes: CRC % x, want % x", c, n, got[end:], crc)
				}
			}
		}
	}
}

// Frame makes the bytes that Append makes, whatever is in the slice after them.
//
// Proves F03, F04: PAD is zero, and the CRC is that of all before it.
func TestWriterFrame(t *testing.T) {
	for _, c := range []struct{ markers, crc bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		framed, want := mpa.NewWriter(c.markers, c.crc), mpa.NewWriter(c.markers, c.crc)
		dirty := bytes.Repeat([]byte{0xee}, 70000)
		for _, n := range []int{0, 1, 100, 1023, 1024, 1025, 1026, 1027, 1428, 9000, 65517} {
			for _, header := range [][]byte{nil, []byte("fourteen bytes"), []byte("there are fifteen!"[:15]),
				[]byte("eighteen bytes, a")} {
				payload := bytes.Repeat([]byte("payload"), n/7+1)[:n]
				got := framed.Frame(append(dirty[:0], "kept"...), header, payload)
				if !bytes.Equal(got, want.Append([]byte("kept"), header, payload)) || framed.Offset() != want.Offset() {
					t.Errorf("%+v, %d bytes after %q: other bytes", c, n, header)
				}
				if got := framed.Frame(nil, header, payload); !bytes.Equal(got, want.Append(nil, header, payload)) {
					t.Errorf("%+v, %d bytes after %q: other bytes where there was no room", c, n, header)
				}
			}
		}
	}
}

// An FPDU that is given up leaves no trace.
func TestWriterGivesUp(t *testing.T) {
	for _, markers := range []bool{false, true} {
		w := mpa.NewWriter(markers, true)
		stream := w.Append(nil, make([]byte, 700))
		want := w
		wanted := want.Append(bytes.Clone(stream), []byte("instead"))
		before := w
		w.Payload(w.Begin(stream, 3000), make([]byte, 2000))
		w = before
		if got := w.Append(stream, []byte("instead")); !bytes.Equal(got, wanted) || w.Offset() != want.Offset() {
			t.Errorf("markers %v: got % x, want % x", markers, got[len(stream):], wanted[len(stream):])
		}
	}
}

// A Writer panics rather than put nonsense on the wire.
func TestWriterMisuse(t *testing.T) {
	w := mpa.NewWriter(false, true)
	if n := len(w.Append(nil, make([]byte, 65535))); n != 65544 {
		t.Errorf("the longest ULPDU makes %d bytes", n)
	}
	for name, c := range map[string]struct {
		f    func(w *mpa.Writer)
		want string
	}{
		"too long": {func(w *mpa.Writer) { w.Append(nil, make([]byte, 65536)) }, "ULPDU of 65536 bytes"},
		"framed too long": {func(w *mpa.Writer) { w.Frame(nil, make([]byte, 14), make([]byte, 65522)) },
			"ULPDU of 65536 bytes"},
		"frame in FPDU": {func(w *mpa.Writer) { w.Begin(nil, 1); w.Frame(nil, nil, make([]byte, 2000)) },
			"between Begin and End"},
		"payload too long": {func(w *mpa.Writer) { w.Payload(w.Payload(w.Begin(nil, 3), []byte("x")), []byte("xxxx")) },
			"2 bytes more than the ULPDU_Length of 3"},
		"payload missing": {func(w *mpa.Writer) { w.Begin(nil, 1); w.End(nil) }, "1 bytes of the ULPDU are missing"},
		"not begun":       {func(w *mpa.Writer) { w.End(nil) }, "0 bytes of the ULPDU are missing"},
		"begun twice":     {func(w *mpa.Writer) { w.Begin(nil, 1); w.Begin(nil, 1) }, "between Begin and End"},
		"append in FPDU":  {func(w *mpa.Writer) { w.Begin(nil, 1); w.Append(nil, nil) }, "between Begin and End"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, c.want) {
					t.Errorf("panic %q, want %q", text, c.want)
				}
			}()
			w := mpa.NewWriter(false, true)
			c.f(&w)
		})
	}
}
