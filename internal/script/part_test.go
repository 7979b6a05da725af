package script_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// TestPart tells the beginning of an answer from another protocol, and from a whole one.
func TestPart(t *testing.T) {
	const header = mpa.KeyReply + "\x40\x02\x00\x04" // C=1, revision 2, 4 bytes of private data
	for _, c := range []struct{ in, key, want string }{
		{"", mpa.KeyReply, ""},
		{"M", mpa.KeyReply, `1 of at least 20 bytes of a Reply Frame: "M"`},
		{"MPA ID Re", mpa.KeyReply, `9 of at least 20 bytes of a Reply Frame: "MPA ID Re"`}, // of a Request as well
		{"MPA ID Req", mpa.KeyReply, ""},
		{"MPB", mpa.KeyReply, ""},
		{header[:19], mpa.KeyReply, `19 of at least 20 bytes of a Reply Frame: "MPA ID Rep Frame@\x02\x00"`},
		{header, mpa.KeyReply, `20 of 24 bytes of a Reply Frame: "MPA ID Rep Frame@\x02\x00\x04"`},
		{header + "abc", mpa.KeyReply, `23 of 24 bytes of a Reply Frame: "MPA ID Rep Frame@\x02\x00\x04abc"`},
		{header + "abcd", mpa.KeyReply, ""},
		{header + "abcd and more", mpa.KeyReply, ""},
		{"MPA i", mpa.KeyStart, `5 of 16 bytes of a Start Key: "MPA i"`},
		{mpa.KeyStart, mpa.KeyStart, `15 of 16 bytes of a Start Key: "MPA ident frame"`},
		{mpa.KeyStart + "\x80", mpa.KeyStart, ""},
		{"MPA ID", mpa.KeyStart, ""},
	} {
		if got := script.Part([]byte(c.in), c.key); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}
