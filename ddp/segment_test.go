package ddp

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// parseTests name a vector and what is in it.
var parseTests = []struct {
	file, vector string
	want         Header
	payload      int
}{
	{"segments", "rtr-write", Header{Tagged: true, Last: true, Version: 1, RsvdULP: 0x40, STag: 1}, 0},
	{"segments", "rtr-read-response", Header{Tagged: true, Last: true, Version: 1, RsvdULP: 0x42}, 0},
	{"segments", "write-not-last", Header{Tagged: true, Version: 1, RsvdULP: 0x40,
		STag: 0x060ff400, TO: 0x555ea09de6c0}, 8},
	{"segments", "write-last", Header{Tagged: true, Last: true, Version: 1, RsvdULP: 0x40,
		STag: 0x060ff400, TO: 0x555ea09ee1c4}, 8},
	{"segments", "read-request", Header{Last: true, Version: 1, RsvdULP: 0x41, QN: 1, MSN: 1}, 28},
	{"segments", "send", Header{Last: true, Version: 1, RsvdULP: 0x43, MSN: 1}, 16},
	{"fields", "tagged-all-fields", Header{Tagged: true, Last: true, Rsvd: 15, Version: 3, RsvdULP: 0xa5,
		STag: 0x01020304, TO: 0x1112131415161718}, 2},
	{"fields", "untagged-all-fields", Header{Rsvd: 15, Version: 2, RsvdULP: 0xa5, ULP: 0x01020304, QN: 0x11121314,
		MSN: 0x21222324, MO: 0x31323334}, 2},
	{"fields", "tagged-version-0", Header{Tagged: true, Last: true, STag: 2, TO: 1<<64 - 1}, 0},
	{"fields", "untagged-version-0", Header{Last: true, RsvdULP: 3, MSN: 1<<32 - 1}, 0},
}

// Every vector is read field by field and written back byte by byte.
//
// Proves D09, D10, D14, D15, D16: both headers, big endian, and the ULP's fields
// come through as they are.
func TestParseAndAppend(t *testing.T) {
	for _, tt := range parseTests {
		t.Run(tt.vector, func(t *testing.T) {
			b := testrig.Vectors(t, tt.file)[tt.vector]
			s, err := Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.Header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			if len(s.Payload) != tt.payload || s.Length() != len(b) {
				t.Errorf("payload %d, length %d; want %d, %d", len(s.Payload), s.Length(), tt.payload, len(b))
			}
			if got := append(s.Header.Append(nil), s.Payload...); !bytes.Equal(got, b) {
				t.Errorf("written back\n% x\nwant\n% x", got, b)
			}
		})
	}
}

// Every prefix of a header is too short, and says so; the whole header is not.
//
// Proves D09, D10: 14 bytes tagged, 18 untagged, by the T bit.
func TestParseTooShort(t *testing.T) {
	for _, tt := range []struct {
		vector string
		length int
	}{{"write-last", TaggedHeaderLen}, {"send", UntaggedHeaderLen}} {
		b := testrig.Vectors(t, "segments")[tt.vector]
		for n := range tt.length {
			_, err := Parse(b[:n])
			if !errors.Is(err, &Error{Code: CodeLocalCatastrophic}) {
				t.Errorf("%s, %d bytes: %v", tt.vector, n, err)
			}
		}
		if _, err := Parse(b[:tt.length]); err != nil {
			t.Errorf("%s, %d bytes: %v", tt.vector, tt.length, err)
		}
	}
}

// The reserved bits are zero in what is sent by the rules, and whatever they
// are on receipt nothing else changes and no check minds.
//
// Proves D12: zero when sent, not checked on receipt.
func TestReservedBits(t *testing.T) {
	for _, tagged := range []bool{true, false} {
		first := Header{Tagged: tagged, Version: 1}
		if !tagged {
			first.MSN = FirstMSN
		}
		g, h := segmenter(first, 1), stale
		_, _ = g.Next(&h, 128)
		if b := h.Append(nil); b[0]&0x3c != 0 {
			t.Errorf("sent with control field %#02x", b[0])
		}
		for rsvd := range uint8(16) {
			in := h
			in.Rsvd = rsvd
			s, err := Parse(append(in.Append(nil), 'x'))
			if err != nil || s.Header != in {
				t.Errorf("sent %v, got %v, %v", in, s.Header, err)
			}
			if err := checkAll(&s); err != nil {
				t.Errorf("Rsvd %d: %v", rsvd, err)
			}
		}
	}
}

// checkAll holds a segment against version 1, a byte of Tagged Buffer or an
// byte of buffer on a new queue 0.
func checkAll(s *Segment) *Error {
	if err := CheckVersion(&s.Header, 1); err != nil {
		return err
	}
	if s.Tagged {
		if code := CheckBounds(s.TO, uint64(len(s.Payload)), 0, 1); code != 0 {
			return &Error{Code: code}
		}
		return nil
	}
	q := NewUntaggedQueue(0)
	return q.Check(s, 1, 1)
}

// Payload that the LLP has elsewhere counts like that which is in the segment.
func TestPayloadApart(t *testing.T) {
	for _, tt := range []struct{ here, apart, want int }{{0, 0, 0}, {5, 0, 5}, {0, 7, 7}, {5, 7, 12}} {
		s := seg(1, 0, tt.here, true)
		s.Apart = tt.apart
		if n, all := s.PayloadLen(), s.Length(); n != tt.want || all != UntaggedHeaderLen+tt.want {
			t.Errorf("%d bytes and %d apart: payload %d, length %d", tt.here, tt.apart, n, all)
		}
	}
}

// Only the low bits of Version and Rsvd reach the wire: they cannot spoil T and L.
func TestAppendMasks(t *testing.T) {
	h := Header{Version: 0xff, Rsvd: 0xff}
	if got := h.Append(nil)[0]; got != 0x3f {
		t.Errorf("control field %#02x, want 0x3f", got)
	}
}

func headers() *rapid.Generator[Header] {
	return rapid.Custom(func(t *rapid.T) Header {
		h := Header{
			Tagged: rapid.Bool().Draw(t, "T"), Last: rapid.Bool().Draw(t, "L"),
			Rsvd: rapid.Uint8Max(15).Draw(t, "Rsvd"), Version: rapid.Uint8Max(3).Draw(t, "DV"),
			RsvdULP: rapid.Uint8().Draw(t, "RsvdULP"),
		}
		if h.Tagged {
			h.STag, h.TO = rapid.Uint32().Draw(t, "STag"), rapid.Uint64().Draw(t, "TO")
			return h
		}
		h.ULP, h.QN = rapid.Uint32().Draw(t, "ULP"), rapid.Uint32().Draw(t, "QN")
		h.MSN, h.MO = rapid.Uint32().Draw(t, "MSN"), rapid.Uint32().Draw(t, "MO")
		return h
	})
}

// Any header that is written is read back as it was.
func TestAppendAndParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := headers().Draw(t, "header")
		s, err := Parse(h.Append(nil))
		if err != nil || s.Header != h {
			t.Fatalf("wrote %v, read %v, %v", h, s.Header, err)
		}
		if len(s.Raw) != h.Len() {
			t.Fatalf("Raw is %d bytes, Len says %d", len(s.Raw), h.Len())
		}
	})
}

// FuzzParse: nothing panics, and what is read is written back byte by byte.
func FuzzParse(f *testing.F) {
	for _, tt := range parseTests {
		f.Add(testrig.Vectors(f, tt.file)[tt.vector])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if tooShort := len(b) == 0 || len(b) < HeaderLen(b); tooShort != (err != nil) {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
		if err != nil {
			return
		}
		if got := append(s.Header.Append(nil), s.Payload...); !bytes.Equal(got, b) {
			t.Fatalf("read % x, wrote % x", b, got)
		}
		if !bytes.Equal(s.Raw, b[:len(s.Raw)]) {
			t.Fatalf("Raw % x of % x", s.Raw, b)
		}
		_ = s.Header.String()
		_ = checkAll(&s)
	})
}

// Reading, checking and writing a good segment allocate nothing.
func TestAllocations(t *testing.T) {
	tagged, untagged := testrig.Vectors(t, "segments")["write-last"], testrig.Vectors(t, "segments")["send"]
	out := make([]byte, 0, 64)
	allocs := testing.AllocsPerRun(100, func() {
		q := NewUntaggedQueue(0)
		for _, b := range [][]byte{tagged, untagged} {
			s, err := Parse(b)
			if err != nil || CheckVersion(&s.Header, 1) != nil {
				t.Fatal("not taken")
			}
			out = s.Header.Append(out[:0])
			if s.Tagged && CheckBounds(s.TO, 8, s.TO, 8) != 0 {
				t.Fatal("not placed")
			}
			if !s.Tagged && q.Check(&s, 1, 16) != nil {
				t.Fatal("not placed")
			}
		}
		var g Segmenter
		var h Header
		g.Begin(4096)
		for _, ok := g.Next(&h, 1450); ok; _, ok = g.Next(&h, 1450) {
			out = h.Append(out[:0])
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// The T bit alone tells which of the two headers a byte begins.
func TestHeaderLen(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want int
	}{
		{nil, UntaggedHeaderLen},
		{[]byte{0x00}, UntaggedHeaderLen},
		{[]byte{0x7f}, UntaggedHeaderLen}, // all bits but T
		{[]byte{0x80}, TaggedHeaderLen},
		{[]byte{0xff}, TaggedHeaderLen},
	} {
		if n := HeaderLen(c.b); n != c.want {
			t.Errorf("%x: %d bytes, want %d", c.b, n, c.want)
		}
	}
}
