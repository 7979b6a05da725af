package rdmap

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// message parses a vector of messages.hex.
func message(t testing.TB, name string) *ddp.Segment {
	t.Helper()
	s, err := ddp.Parse(testrig.Vectors(t, "messages")[name])
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// captured is the Read Request of the vector "read-request".
var captured = ReadRequest{SinkSTag: 0x846f3200, SinkTO: 0x55f07ce59610, Size: 65000,
	SrcSTag: 0x79ca8f00, SrcTO: 0x555ea09ee4f0}

// Proves P10: the header's five fields, 28 bytes, big endian.
// Proves P12: sizes from 0 to 2^32-1.
func TestReadRequest(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    []byte
		want ReadRequest
	}{
		{"siw's", message(t, "read-request").Payload, captured},
		{"siw's, zero-length", message(t, "rtr-read-request").Payload, ReadRequest{SrcSTag: 1}},
		{"every byte another", testrig.Bytes(t, "01020304 11121314 15161718 21222324 31323334 41424344 45464748"),
			ReadRequest{0x01020304, 0x1112131415161718, 0x21222324, 0x31323334, 0x4142434445464748}},
		{"largest", bytes.Repeat([]byte{0xff}, 28),
			ReadRequest{math.MaxUint32, math.MaxUint64, math.MaxUint32, math.MaxUint32, math.MaxUint64}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseReadRequest(tt.b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if b := got.Append(nil); !bytes.Equal(b, tt.b) {
				t.Errorf("written back\n% x\nwant\n% x", b, tt.b)
			}
		})
	}
}

// Proves P10: fewer than 28 bytes are no Read Request header.
func TestReadRequestTooShort(t *testing.T) {
	for n := range ReadRequestLen {
		if _, err := ParseReadRequest(make([]byte, n)); !errors.Is(err, &Error{Code: CodeCatastrophicStream}) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// Proves P17: both TOs go on by what was sent, the size is what is left, the STags stay.
func TestReadRequestAdvance(t *testing.T) {
	r := captured
	r.Advance(2048)
	want := ReadRequest{SinkSTag: 0x846f3200, SinkTO: 0x55f07ce59e10, Size: 62952,
		SrcSTag: 0x79ca8f00, SrcTO: 0x555ea09eecf0}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := r.String(); got != "62952 bytes from STag 0x79ca8f00 TO 0x555ea09eecf0 to STag 0x846f3200 TO 0x55f07ce59e10" {
		t.Error(got)
	}
}

// FuzzReadRequest: nothing panics, and what is read is written back.
func FuzzReadRequest(f *testing.F) {
	f.Add(message(f, "read-request").Payload)
	f.Add(message(f, "rtr-read-request").Payload)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseReadRequest(b)
		if err != nil {
			return
		}
		if got := r.Append(nil); !bytes.Equal(got, b[:ReadRequestLen]) {
			t.Fatalf("read % x, wrote % x", b, got)
		}
		_ = r.String()
	})
}
