package rping

import (
	"bytes"
	"errors"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

func TestText(t *testing.T) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz"
	for _, test := range []struct {
		size, ping int
		want       string // without the byte of zero
	}{
		{1, 0, ""},
		{3, 0, "rd"},
		{14, 0, "rdma-ping-0: "},
		{15, 7, "rdma-ping-7: H"},
		{64, 0, "rdma-ping-0: " + letters[:50]},
		{64, 1, "rdma-ping-1: " + letters[1:51]},
		{100, 57, "rdma-ping-57: z" + letters + letters[:26]},
		{100, 58, "rdma-ping-58: " + letters + letters[:27]},
		{20, 2000000000, "rdma-ping-200000000"},
	} {
		buf := bytes.Repeat([]byte{'?'}, test.size)
		fill(buf, test.ping)
		if want := test.want + "\x00"; string(buf) != want {
			t.Errorf("%d bytes, ping %d:\ngot  %q\nwant %q", test.size, test.ping, buf, want)
		}
		if got := string(text(buf)); got != test.want {
			t.Errorf("%d bytes, ping %d: text %q", test.size, test.ping, got)
		}
	}
}

func TestTextWithoutEnd(t *testing.T) {
	if got := string(text([]byte("abc"))); got != "abc" {
		t.Errorf("got %q", got)
	}
}

func TestCompareFindsEveryWrongByte(t *testing.T) {
	want := make([]byte, 100)
	fill(want, 3)
	got := bytes.Clone(want)
	testrig.Must(t, compare(3, got, want))
	for i := range got {
		got[i] ^= 0x20
		var wrong *MismatchError
		if err := compare(3, got, want); !errors.As(err, &wrong) || wrong.Offset != i || wrong.Ping != 3 {
			t.Errorf("byte %d is wrong: got %v", i, err)
		}
		got[i] ^= 0x20
	}
}
