package message

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

func TestAdvert(t *testing.T) {
	sent := []byte{
		0x55, 0x79, 0xa6, 0xef, 0x6f, 0x30, 0x11, 0x22, // address
		0xae, 0x4c, 0xa1, 0x00, // rkey
		0x00, 0x00, 0x00, 0x40, // length
	}
	a, err := ParseAdvert(sent)
	testrig.Must(t, err)
	if a.TO != 0x5579a6ef6f301122 || a.STag != 0xae4ca100 || a.Length != 64 {
		t.Errorf("got %+v", a)
	}
	if again := a.Append(nil); !bytes.Equal(again, sent) {
		t.Errorf("appended as % x", again)
	}
	for _, n := range []int{0, 15, 17} {
		if _, err := ParseAdvert(make([]byte, n)); err == nil || !strings.Contains(err.Error(), "16") {
			t.Errorf("%d bytes: got %v", n, err)
		}
	}
}
