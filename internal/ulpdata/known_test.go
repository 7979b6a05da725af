package ulpdata_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// TestDescribePrograms names the programs that are known by what their private data begin with, or by its shape, and
// nothing that differs a little.
func TestDescribePrograms(t *testing.T) {
	hello, err := hex.DecodeString("01" + "02" + "0010" + // version 1, flags, 16 credits
		"00" + "0000" + "80" + // reserved, 128 maps
		"00007f0000001000" + "00000101" + "00000004" + // the table: TO, STag, entries
		"00007f0000002000" + "00000201" + "00010000") // the ring: TO, STag, bytes
	testrig.Must(t, err)
	changed := func(at int, to ...byte) []byte {
		b := bytes.Clone(hello)
		copy(b[at:], to)
		return b
	}
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{[]byte("iWcp\x01"), "like iwarp cp, 5 bytes: 69 57 63 70 01"},
		{[]byte("iwpf\x01\x00"), "like iwarp perf, 6 bytes: 69 77 70 66 01 00"},
		{[]byte{0x80, 0, 0, 0}, "like iSER, 4 bytes: 80 00 00 00"},
		{[]byte{0x81, 0, 0, 0}, "4 bytes: 81"},
		{[]byte{0x80, 0, 0, 1}, "4 bytes: 80"},
		{hello, "like rsockets, 40 bytes: 01 02 00 10 00"},
		{changed(0, 2), "40 bytes: 02"},
		{changed(1, 4), "40 bytes: 01 04"},
		{changed(5, 1), "40 bytes: 01"},
		{changed(16, 0, 0, 0, 0), "40 bytes: 01"},
		{changed(36, 0, 0, 0, 0), "40 bytes: 01"},
		{hello[:39], "39 bytes: 01"},
		{ulpdata.AppendPrefixTag(hello), "like rsockets, 40 bytes: 01 02 00 10 00"},
		{ulpdata.AppendPrefixTag(nil), "none; and a tag of iwarp run --as roce: Sends may begin with"},
	} {
		if got := ulpdata.Describe(c.in); !strings.HasPrefix(got, c.want) {
			t.Errorf("% x: %q, want %q", c.in, got, c.want)
		}
	}
}
