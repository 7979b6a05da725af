package wording_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/internal/wording"
)

func TestHex(t *testing.T) {
	data := []byte("seventeen bytes.and more")
	for _, c := range []struct {
		b    []byte
		most int
		want string
	}{
		{nil, 9, ""},
		{data[:3], 9, "0 73 65 76|"},
		{data, 17, "0 73 65 76 65 6e 74 65 65 6e 20 62 79 74 65 73 2e|16 61|"},
		{data[:16], 99, "0 73 65 76 65 6e 74 65 65 6e 20 62 79 74 65 73 2e|"},
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
