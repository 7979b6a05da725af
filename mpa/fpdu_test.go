package mpa_test

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
)

// figures are the annotated FPDUs of the documents, and some from siw.
var figures = []struct {
	vector  string
	before  int // ULPDU_Length of an FPDU in front, -1 for none
	markers bool
	length  int
}{
	{"rfc5044-fig5", -1, true, 42},
	{"rfc5044-fig6", 480, true, 42},
	{"draft-mpa-03-fig5", -1, true, 42},
	{"draft-mpa-03-fig6", 480, true, 42},
	{"fpdu-unmarked", -1, false, 42},
	{"siw-fpdu-write", -1, false, 14},
	{"siw-fpdu-send", -1, false, 34},
}

// figureULPDU takes the ULPDU out of a figure by hand.
func figureULPDU(tb testing.TB, name string) []byte {
	b := vector(tb, name)
	switch name {
	case "rfc5044-fig5", "draft-mpa-03-fig5":
		return b[6:48]
	case "rfc5044-fig6", "draft-mpa-03-fig6":
		return append(b[2:20:20], b[24:48]...)
	}
	return b[2 : len(b)-4]
}

// Proves F01, F02, F04, F07, F08, F09, F11: the Writer makes the FPDUs of the
// figures, byte by byte.
func TestWriterFigures(t *testing.T) {
	for _, c := range figures {
		w := mpa.NewWriter(c.markers, true)
		if c.before >= 0 {
			if first := w.Append(nil, make([]byte, c.before)); len(first) != 0x1ec {
				t.Fatalf("%s: the FPDU in front has %d bytes", c.vector, len(first))
			}
		}
		ulpdu := figureULPDU(t, c.vector)
		size := layout.Size(w.Offset(), len(ulpdu), c.markers)
		got := w.Append([]byte("kept"), ulpdu[:5], nil, ulpdu[5:])
		want := append([]byte("kept"), vector(t, c.vector)...)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: got\n% x want\n% x", c.vector, got, want)
		}
		if size != len(want)-4 {
			t.Errorf("%s: Size = %d, want %d", c.vector, size, len(want)-4)
		}
	}
}

// Proves F01, F04, F08, F12, R01, R02: the Reader takes the ULPDU out of the figures.
func TestReaderFigures(t *testing.T) {
	for _, c := range figures {
		w, r := mpa.NewWriter(c.markers, true), mpa.NewReader(c.markers, true)
		if c.before >= 0 {
			first := w.Append(nil, make([]byte, c.before))
			if _, n, err := r.Next(first); n != len(first) || err != nil {
				t.Fatalf("%s: FPDU in front: %d, %v", c.vector, n, err)
			}
		}
		start := r.Offset()
		b := vector(t, c.vector)
		f, n, err := r.Next(bytes.Clone(b))
		if err != nil || n != len(b) || f.Size != n || f.Offset != start || r.Offset() != start+uint64(n) {
			t.Errorf("%s: offset %d size %d n %d: %v", c.vector, f.Offset, f.Size, n, err)
		}
		if want := figureULPDU(t, c.vector); !bytes.Equal(f.ULPDU, want) {
			t.Errorf("%s: got\n% x want\n% x", c.vector, f.ULPDU, want)
		}
	}
}

// Proves F01, F03: PAD is 0 to 3 bytes of zero and makes an FPDU a multiple of 4.
func TestWriterPad(t *testing.T) {
	for n, pad := range []int{2, 1, 0, 3, 2, 1, 0, 3} {
		w := mpa.NewWriter(false, false)
		ulpdu := bytes.Repeat([]byte{0xff}, n)
		got := w.Append(nil, ulpdu)
		want := append([]byte{0, byte(n)}, ulpdu...)
		want = append(want, make([]byte, pad+4)...)
		if !bytes.Equal(got, want) || len(got)%4 != 0 {
			t.Errorf("ULPDU of %d bytes: got % x want % x", n, got, want)
		}
	}
}

// Proves F03, F04: a pad that is not zero is ignored, but the CRC covers it.
func TestReaderPadNotZero(t *testing.T) {
	b := []byte{0, 1, 'x', 0xff}
	crc := layout.CRC32C(0, b)
	good := layout.AppendCRC(bytes.Clone(b), crc)
	r := mpa.NewReader(false, true)
	if f, n, err := r.Next(good); err != nil || n != 8 || string(f.ULPDU) != "x" {
		t.Errorf("pad covered by the CRC: %q, %d, %v", f.ULPDU, n, err)
	}
	bad := layout.AppendCRC([]byte{0, 1, 'x', 0xfe}, crc)
	r = mpa.NewReader(false, true)
	wantCode(t, r, bad, mpa.CodeCRC, 4)
}

// wantCode expects an error of a code at an offset, twice, as it is sticky.
func wantCode(t *testing.T, r mpa.Reader, b []byte, code mpa.Code, offset uint64) *mpa.Error {
	t.Helper()
	before := bytes.Clone(b)
	f, n, err := r.Next(b)
	e, ok := err.(*mpa.Error)
	if !ok || e.Code != code || e.Offset != offset || n != 0 || f.ULPDU != nil {
		t.Fatalf("got %q, %d, %v; want code %d at %d", f.ULPDU, n, err, code, offset)
	}
	if !bytes.Equal(b, before) {
		t.Error("bytes changed though there was an error")
	}
	w := mpa.NewWriter(false, true)
	if _, n, again := r.Next(w.Append(nil, []byte("good"))); n != 0 || again != err {
		t.Errorf("the error is not sticky: %d, %v", n, again)
	}
	return e
}

// Proves F05, F14: with CRC off the field is there, is zero when sent, and may hold
// anything when received.
func TestCRCOff(t *testing.T) {
	w, r := mpa.NewWriter(false, false), mpa.NewReader(false, false)
	b := w.Append(nil, []byte("ab"))
	if !bytes.Equal(b, []byte{0, 2, 'a', 'b', 0, 0, 0, 0}) {
		t.Errorf("sent % x", b)
	}
	copy(b[4:], "junk")
	if f, n, err := r.Next(b); err != nil || n != 8 || string(f.ULPDU) != "ab" {
		t.Errorf("received %q, %d, %v", f.ULPDU, n, err)
	}
}

// Proves F04, F07: a marker between PAD and CRC is in the CRC of its FPDU.
func TestMarkerBetweenPadAndCRC(t *testing.T) {
	w, r := mpa.NewWriter(true, true), mpa.NewReader(true, true)
	b := w.Append(nil, bytes.Repeat([]byte{'u'}, 505))
	// marker 4, ULPDU_Length 2, ULPDU 505, PAD 1: the next marker is at 512.
	marker := b[512:516]
	if !bytes.Equal(marker, []byte{0, 0, 0x01, 0xfc}) || len(b) != 520 {
		t.Fatalf("%d bytes, marker % x", len(b), marker)
	}
	if want := layout.AppendCRC(nil, layout.CRC32C(0, b[:516])); !bytes.Equal(b[516:], want) {
		t.Errorf("CRC % x want % x", b[516:], want)
	}
	if f, n, err := r.Next(b); err != nil || n != 520 || len(f.ULPDU) != 505 {
		t.Errorf("received %d bytes, %d, %v", len(f.ULPDU), n, err)
	}
}

// Proves F08, F09: a marker exactly between FPDUs is 0 and in the second one.
func TestMarkerBetweenFPDUs(t *testing.T) {
	w, r := mpa.NewWriter(true, true), mpa.NewReader(true, true)
	first := w.Append(nil, make([]byte, 502))
	if len(first) != 512 {
		t.Fatalf("the first FPDU has %d bytes", len(first))
	}
	b := w.Append(first, []byte("second"))
	if !bytes.Equal(b[512:518], []byte{0, 0, 0, 0, 0, 6}) {
		t.Errorf("after the first FPDU: % x", b[512:518])
	}
	if _, n, err := r.Next(b); n != 512 || err != nil {
		t.Fatalf("first: %d, %v", n, err)
	}
	f, n, err := r.Next(b[512:])
	if err != nil || f.Offset != 512 || n != 4+12 || string(f.ULPDU) != "second" {
		t.Errorf("second: %q at %d, %d, %v", f.ULPDU, f.Offset, n, err)
	}
}

// Proves F07, F08: every marker of a large FPDU points to its ULPDU_Length.
func TestMarkersOfLargeFPDU(t *testing.T) {
	w := mpa.NewWriter(true, true)
	b := w.Append(nil, make([]byte, 22)) // 32 bytes with its marker
	b = w.Append(b, make([]byte, 64768))
	for at := 512; at < len(b); at += 512 {
		got := int(b[at+2])<<8 | int(b[at+3])
		if got != at-36+4 || b[at] != 0 || b[at+1] != 0 {
			t.Fatalf("marker at %d: % x", at, b[at:at+4])
		}
	}
}

// Proves F06, F10: Reserved and the low two bits of FPDUPTR are ignored on receipt,
// but for the CRC.
func TestReaderIgnoresReservedBits(t *testing.T) {
	w := mpa.NewWriter(true, false)
	b := w.Append(nil, bytes.Repeat([]byte{'u'}, 600))
	b[0], b[1], b[3] = 0xde, 0xad, 0x03
	b[512], b[515] = 0xbe, b[515]|2
	r := mpa.NewReader(true, false)
	if f, _, err := r.Next(bytes.Clone(b)); err != nil || !bytes.Equal(f.ULPDU, bytes.Repeat([]byte{'u'}, 600)) {
		t.Errorf("CRC off: %v", err)
	}
	r = mpa.NewReader(true, true)
	b = layout.AppendCRC(b[:len(b)-4], layout.CRC32C(0, b[:len(b)-4]))
	if _, _, err := r.Next(bytes.Clone(b)); err != nil {
		t.Errorf("CRC over what was sent: %v", err)
	}
	b[0] = 0
	r = mpa.NewReader(true, true)
	wantCode(t, r, b, mpa.CodeCRC, uint64(len(b)-4))
}

// Proves Q16: a wrong FPDUPTR is code 3, for every marker and with the right CRC;
// a wrong marker under a wrong CRC is code 2.
func TestReaderWrongMarker(t *testing.T) {
	w := mpa.NewWriter(true, true)
	good := w.Append(nil, make([]byte, 1500))
	for at := 0; at < len(good); at += 512 {
		b := bytes.Clone(good)
		b[at+3] ^= 8
		r := mpa.NewReader(true, true)
		wantCode(t, r, b, mpa.CodeCRC, uint64(len(b)-4))
		r = mpa.NewReader(true, false)
		wantCode(t, r, b, mpa.CodeMarker, uint64(at))
		b = layout.AppendCRC(b[:len(b)-4], layout.CRC32C(0, b[:len(b)-4]))
		r = mpa.NewReader(true, true)
		wantCode(t, r, b, mpa.CodeMarker, uint64(at))
	}
}

// Proves Q16: errors say what, where, and what to do.
func TestReaderErrorText(t *testing.T) {
	w := mpa.NewWriter(true, true)
	marked := w.Append(nil, make([]byte, 1000))
	w = mpa.NewWriter(false, true)
	plain := w.Append(nil, []byte("plain one"))
	damaged := bytes.Clone(plain)
	damaged[3] ^= 1
	reversed := bytes.Clone(plain)
	for i, j := len(reversed)-4, len(reversed)-1; i < j; i, j = i+1, j-1 {
		reversed[i], reversed[j] = reversed[j], reversed[i]
	}
	zero := append(bytes.Clone(plain[:len(plain)-4]), 0, 0, 0, 0)
	uncovered := layout.AppendCRC(bytes.Clone(vector(t, "rfc5044-fig5")[:48]),
		layout.CRC32C(0, vector(t, "rfc5044-fig5")[4:48]))
	for _, c := range []struct {
		name         string
		b            []byte
		markers, crc bool
		want         string
	}{
		{"damaged", damaged, false, true, "mpa: bad CRC at stream offset 12: got 0x38be10c4 want 0x70682e30; the FPDU was damaged on the way, or the streams are out of step since an earlier FPDU"},
		{"reversed", reversed, false, true, "the other byte order: the peer must send the CRC least significant byte first"},
		{"CRC off at the peer", zero, false, true,
			"the peer may have CRC off; it must send CRCs if either side declared C=1, or both must declare C=0"},
		{"markers not asked for", vector(t, "rfc5044-fig5"), false, true,
			"the peer inserts markers though M=0 was declared"},
		{"no markers", append(bytes.Clone(vector(t, "fpdu-unmarked")), make([]byte, 2<<16)...), true, true,
			"the peer inserts none though M=1 was declared"},
		{"leading marker not covered", uncovered, true, true, "without the marker in front"},
		{"complement", vector(t, "fpdu-unmarked"), false, true, "complemented"},
		{"marker", marked, true, false, "mpa: bad marker at stream offset 512: marker 2 of 2 in the FPDU at 0: got FPDUPTR 0x0200 want 0x01fc; the peer counts from the marker"},
		{"marker from ULPDU", marked, true, false,
			"got FPDUPTR 0x01fa want 0x01fc; the peer counts from the first byte of the ULPDU"},
		{"marker's low bits", marked, true, false,
			"got FPDUPTR 0x0103 want 0x01fc; the two ends disagree on where the FPDU began"},
		{"marker in host order", marked, true, false,
			"got FPDUPTR 0xfc01 want 0x01fc; the peer writes FPDUPTR least significant byte first"},
		{"marker in host order from itself", marked, true, false,
			"got FPDUPTR 0x0002 want 0x01fc; the peer writes FPDUPTR least significant byte first: it must write the most significant byte first, and count from ULPDU_Length, not from the marker"},
		{"marker anywhere", marked, true, false, "got FPDUPTR 0x0100 want 0x01fc; the two ends disagree on where the FPDU began"},
		{"no marker at all", append(bytes.Clone(plain), make([]byte, 2<<16)...), true, false,
			"the stream does not begin with a marker"},
	} {
		b := bytes.Clone(c.b)
		switch c.name {
		case "marker":
			b[514], b[515] = 2, 0
		case "marker from ULPDU":
			b[514], b[515] = 1, 0xfa
		case "marker's low bits":
			b[514], b[515] = 1, 3
		case "marker in host order":
			b[514], b[515] = 0xfc, 1
		case "marker in host order from itself":
			b[514], b[515] = 0, 2
		case "marker anywhere":
			b[514], b[515] = 1, 0
		case "complement":
			for i := len(b) - 4; i < len(b); i++ {
				b[i] = ^b[i]
			}
		}
		r := mpa.NewReader(c.markers, c.crc)
		if _, _, err := r.Next(b); err == nil || !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
			t.Errorf("%s: got %v want %q", c.name, err, c.want)
		}
	}
}

// Proves R04, R07: Need tells how many bytes are wanted, and b is left alone until
// they are there.
func TestReaderNeed(t *testing.T) {
	for _, c := range []struct {
		markers      bool
		known, least int // bytes after which ULPDU_Length is known, and of an empty FPDU
	}{{true, 6, 12}, {false, 2, 8}} {
		w := mpa.NewWriter(c.markers, true)
		b := w.Append(nil, bytes.Repeat([]byte{'u'}, 600))
		r := mpa.NewReader(c.markers, true)
		for n := range b {
			part := bytes.Clone(b[:n])
			if _, got, err := r.Next(part); got != 0 || err != nil || !bytes.Equal(part, b[:n]) {
				t.Fatalf("%+v, %d bytes: %d, %v", c, n, got, err)
			}
			want := len(b)
			if n < c.known {
				want = c.least
			}
			if r.Need() != want {
				t.Fatalf("%+v, %d bytes: Need = %d want %d", c, n, r.Need(), want)
			}
		}
		if _, n, err := r.Next(b); n != len(b) || err != nil {
			t.Errorf("%+v, all: %d, %v", c, n, err)
		}
		if r.Need() != 8 { // no marker falls into an empty FPDU after this one
			t.Errorf("%+v, after it: Need = %d", c, r.Need())
		}
	}
}

// Proves R01: nothing is skipped unverified where CRC or markers are on.
func TestReaderSkip(t *testing.T) {
	for _, c := range []struct{ markers, crc, ok bool }{
		{false, false, true}, {false, true, false}, {true, false, false}, {true, true, false},
	} {
		r := mpa.NewReader(c.markers, c.crc)
		size, ok := r.Skip(1001)
		if ok != c.ok || ok && (size != 1008 || r.Offset() != 1008) {
			t.Errorf("%+v: %d, %v", c, size, ok)
		}
	}
	r := mpa.NewReader(false, false)
	if n, ok := r.Peek([]byte{0x12, 0x34}); n != 0x1234 || !ok {
		t.Errorf("Peek: 0x%x, %v", n, ok)
	}
	for length, want := range map[int]int{-1: 0, 0: 8, 65535: 65544, 65536: 0} {
		r := mpa.NewReader(false, false)
		if size, ok := r.Skip(length); size != want || ok != (want > 0) {
			t.Errorf("ULPDU_Length %d: %d, %v", length, size, ok)
		}
	}
}

// Nothing is allocated per FPDU, in either direction and in any mode.
func TestFramingDoesNotAllocate(t *testing.T) {
	header, payload := make([]byte, 14), make([]byte, 3000)
	out, in := make([]byte, 0, 8192), make([]byte, 8192)
	for _, markers := range []bool{false, true} {
		for _, crc := range []bool{false, true} {
			w, r := mpa.NewWriter(markers, crc), mpa.NewReader(markers, crc)
			allocs := testing.AllocsPerRun(100, func() {
				out = w.Append(out[:0], header, payload)
				n := copy(in, out)
				if _, k, err := r.Next(in[:n/2]); k != 0 || err != nil {
					t.Fatal(k, err)
				}
				if _, k, err := r.Next(in[:n]); k != n || err != nil {
					t.Fatal(k, err)
				}
			})
			if allocs != 0 {
				t.Errorf("markers %v, CRC %v: %v allocations per FPDU", markers, crc, allocs)
			}
		}
	}
}
