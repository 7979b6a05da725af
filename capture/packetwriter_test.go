package capture_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestPacketWriter has packets read as they were written, with what was dropped in front of them, and with comments or
// without.
func TestPacketWriter(t *testing.T) {
	now := time.Unix(5, 6).UTC()
	want := []capture.Packet{
		{Number: 1, Time: now, Link: capture.LinkRaw, Data: []byte("abc"), OrigLen: 9},
		{Number: 2, Time: now, Link: capture.LinkRaw, Data: []byte("abcde"), OrigLen: 5, Dropped: 1 << 40},
		{Number: 3, Time: now, Link: capture.LinkEthernet, Data: []byte("ab"), OrigLen: 2, Dropped: 7},
		{Number: 4, Time: now, Link: capture.LinkRaw, Data: []byte("abcd"), OrigLen: 4},
	}
	var file bytes.Buffer
	w, err := capture.NewPacketWriter(&file, "test")
	testrig.Must(t, err)
	for i := range want {
		comments := []string{"one", "two"}[:i%3]
		testrig.Must(t, w.Packet(&want[i], comments...))
	}
	testrig.Must(t, w.Flush())
	r, err := capture.Open(&file)
	testrig.Must(t, err)
	var got []capture.Packet
	for {
		p, err := r.Next()
		if err == io.EOF {
			break
		}
		testrig.Must(t, err)
		one := *p
		one.Data = bytes.Clone(p.Data)
		got = append(got, one)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("written and read (-want +got):\n%s", d)
	}
}

// TestDropped reads what files say of packets that they lack.
func TestDropped(t *testing.T) {
	for _, c := range []struct {
		name, block string
		want        uint64
	}{
		{"obsolete", "02000000 24000000 0000 0300 00000000 60e31600 03000000 03000000 61626300 24000000", 3},
		{"obsolete, not known", "02000000 24000000 0000 ffff 00000000 60e31600 03000000 03000000 61626300 24000000", 0},
		{"enhanced", `06000000 3c000000 00000000 00000000 60e31600 03000000 03000000 61626300
			0200 0400 01000000 0400 0800 0900000000000000 00000000 3c000000`, 9},
		{"too long an option", `06000000 2c000000 00000000 00000000 60e31600 03000000 03000000 61626300
			0400 ff00 09000000 2c000000`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := capture.Open(bytes.NewReader(testrig.Bytes(t, sectionLittle+interfaceLittle+c.block)))
			testrig.Must(t, err)
			p, err := r.Next()
			testrig.Must(t, err)
			if p.Dropped != c.want {
				t.Errorf("dropped: %d, want %d", p.Dropped, c.want)
			}
		})
	}
}
