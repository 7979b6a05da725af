package layout_test

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// Proves F04: CRC32c in iSCSI's bit and byte order, by a vector of RFC 3720, section B.4,
// and the check value of the polynomial. Package crc32c has the other vectors.
func TestCRC32C(t *testing.T) {
	for data, crc := range map[string]string{"123456789": "83 92 06 e3", string(make([]byte, 32)): "aa 36 91 8a"} {
		got := layout.AppendCRC(nil, layout.CRC32C(0, []byte(data)))
		if want := testrig.Bytes(t, crc); !bytes.Equal(got, want) {
			t.Errorf("%q: got % x, want % x", data, got, want)
		}
		if parts := layout.CRC32C(layout.CRC32C(0, []byte(data[:3])),
			[]byte(data[3:])); parts != layout.CRC32C(0, []byte(data)) {
			t.Errorf("%q: in two parts 0x%08x", data, parts)
		}
	}
}
