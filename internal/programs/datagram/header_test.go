package datagram

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

const example = `
69 77 75 64  # iwud
01 c0 de 05  # version, number of the QP that it is for
03 ab cd 01  # immediate data, solicited; number of the QP that sends
11 22 33 44  # Q_Key
de ad be ef  # immediate data
00 00 00 02  # length
00 00 00 00 00 00 00 00 00 00 ff ff 0a 00 00 01 # to 10.0.0.1
68 69        # payload
`

// TestHeader writes and reads the header that docs/dev/programs.md has.
func TestHeader(t *testing.T) {
	want := Header{
		Destination: 0xc0de05, Source: 0xabcd01, Solicited: true, HasImmediate: true,
		Immediate: [4]byte{0xde, 0xad, 0xbe, 0xef},
		QKey:      0x11223344, To: netip.MustParseAddr("::ffff:10.0.0.1").As16(),
	}
	b := testrig.Bytes(t, example)
	h, payload, ok := Parse(b)
	if !ok || h != want || string(payload) != "hi" {
		t.Errorf("%+v, %q: %v", h, payload, ok)
	}
	if got := append(want.Append(nil, 2), "hi"...); !bytes.Equal(got, b) {
		t.Errorf("% x", got)
	}
	var none Header
	if h, payload, ok := Parse(none.Append(nil, 0)); !ok || h != none || len(payload) != 0 {
		t.Errorf("%+v, %q: %v", h, payload, ok)
	}
}

// TestNotOurs drops what is no datagram of ours.
func TestNotOurs(t *testing.T) {
	long := testrig.Bytes(t, example)
	long = append(long, make([]byte, MTU)...)
	long[22], long[23] = (MTU+2)>>8, (MTU+2)&0xff
	for what, b := range map[string][]byte{
		"nothing":            nil,
		"a header cut short": testrig.Bytes(t, example)[:HeaderLen-1],
		"another magic":      append([]byte{'I'}, testrig.Bytes(t, example)[1:]...),
		"another version":    testrig.Bytes(t, strings.Replace(example, "01 c0", "02 c0", 1)),
		"a flag":             testrig.Bytes(t, strings.Replace(example, "03 ab", "07 ab", 1)),
		"more than it says":  append(testrig.Bytes(t, example), 0),
		"less than it says":  testrig.Bytes(t, example)[:HeaderLen+1],
		"more than the MTU":  long,
	} {
		if h, _, ok := Parse(b); ok {
			t.Errorf("%s: %+v", what, h)
		}
	}
}

// FuzzParse: what is taken is what Append writes, but for what is reserved.
func FuzzParse(f *testing.F) {
	f.Add([]byte(nil))
	f.Add((&Header{Destination: 1, HasImmediate: true}).Append(nil, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, payload, ok := Parse(b)
		if !ok {
			return
		}
		again := append(h.Append(nil, len(payload)), payload...)
		copy(again[20:22], b[20:])
		if !bytes.Equal(again, b) {
			t.Errorf("% x: % x", b, again)
		}
	})
}

// TestRoute has what a receive begins with: the header of IPv4 in its second half, or that of IPv6.
func TestRoute(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"::ffff:10.0.0.1", "::ffff:10.0.0.2", `
00000000 00000000 00000000 00000000 00000000
45 00 00 54             # version and length, 20 + 8 + 40 + 16
00 00 00 00 40 11 66 97 # hop limit, UDP, checksum
0a 00 00 01 0a 00 00 02`},
		{"fe80::1", "fe80::2", `
60 00 00 00 00 40 11 40 # 8 + 40 + 16 bytes of UDP, hop limit
fe80 0000 0000 0000 0000 0000 0000 0001
fe80 0000 0000 0000 0000 0000 0000 0002`},
		{"::ffff:10.0.0.1", "fe80::2", `
60 00 00 00 00 40 11 40
0000 0000 0000 0000 0000 ffff 0a00 0001
fe80 0000 0000 0000 0000 0000 0000 0002`},
	} {
		from, to := GID(netip.MustParseAddr(tt.from).As16()), GID(netip.MustParseAddr(tt.to).As16())
		r := RouteOf(from, to, 16)
		if !bytes.Equal(r[:], testrig.Bytes(t, tt.want)) {
			t.Errorf("%s to %s: % x", tt.from, tt.to, r)
		}
		f, d, ok := r.GIDs()
		if !ok || f != from || d != to {
			t.Errorf("%s to %s: %x, %x, %v", tt.from, tt.to, f, d, ok)
		}
	}
}

// TestNoRoute has no addresses where the program has written something else.
func TestNoRoute(t *testing.T) {
	var none Route
	if _, _, ok := none.GIDs(); ok {
		t.Error("addresses in bytes of 0")
	}
	r := RouteOf(GID(netip.MustParseAddr("::ffff:10.0.0.1").As16()),
		GID(netip.MustParseAddr("::ffff:10.0.0.2").As16()), 0)
	r[39]++
	if _, _, ok := r.GIDs(); ok {
		t.Error("addresses with a wrong checksum")
	}
}
