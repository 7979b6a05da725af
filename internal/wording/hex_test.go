package wording_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/internal/wording"
)

func TestHex(t *testing.T) {
	octets := []byte("seventeen bytes.and more")
	for _, c := range []struct {
		b    []byte
		most int
		want string
	}{
		{nil, 9, ""},
		{octets[:3], 9, "0 73 65 76|"},
		{octets, 17, "0 73 65 76 65 6e 74 65 65 6e 20 6f 63 74 65 74 73|16 2e|"},
		{octets[:16], 99, "0 73 65 76 65 6e 74 65 65 6e 20 6f 63 74 65 74 73|"},
	} {
		got := ""
		for at, line := range wording.Hex(c.b, c.most) {
			got += fmt.Sprintf("%d %s|", at, line)
		}
		if got != c.want {
			t.Errorf("%q, at most %d: got %q, want %q", c.b, c.most, got, c.want)
		}
	}
}
