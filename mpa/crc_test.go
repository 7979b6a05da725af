package mpa_test

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// Proves F04: CRC32c in iSCSI's bit and octet order, by the vectors of RFC 3720,
// Section B.4, and the check value of the polynomial.
func TestCRC32C(t *testing.T) {
	up, down := make([]byte, 32), make([]byte, 32)
	for i := range up {
		up[i], down[i] = byte(i), byte(31-i)
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"32 octets of zeroes", make([]byte, 32), "aa 36 91 8a"},
		{"32 octets of ones", bytes.Repeat([]byte{0xff}, 32), "43 ab a8 62"},
		{"32 octets of incrementing 00..1f", up, "4e 79 dd 46"},
		{"32 octets of decrementing 1f..00", down, "5c db 3f 11"},
		{"123456789", []byte("123456789"), "83 92 06 e3"},
	} {
		got := mpa.AppendCRC(nil, mpa.CRC32C(0, c.data))
		if want := testrig.Octets(t, c.want); !bytes.Equal(got, want) {
			t.Errorf("%s: got % x, want % x", c.name, got, want)
		}
		if parts := mpa.CRC32C(mpa.CRC32C(0, c.data[:3]), c.data[3:]); parts != mpa.CRC32C(0, c.data) {
			t.Errorf("%s: in two parts 0x%08x", c.name, parts)
		}
	}
}
