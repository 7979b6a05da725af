package decode_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// wantPrinted holds what is printed of a capture, byte by byte and as JSON.
func wantPrinted(t *testing.T, name string, file []byte, hex, object string) {
	t.Helper()
	var text, lines bytes.Buffer
	plain := decode.NewText(&text, decode.TextConfig{FPDUs: true, Hex: true})
	_, err := decode.Run(bytes.NewReader(file), decode.Config{}, plain)
	testrig.Must(t, err)
	objects := decode.NewJSON(&lines, decode.JSONConfig{FPDUs: true, Bytes: true})
	_, err = decode.Run(bytes.NewReader(file), decode.Config{}, objects)
	testrig.Must(t, err)
	testrig.Must(t, plain.Flush())
	testrig.Must(t, objects.Flush())
	if !strings.Contains(text.String(), hex) {
		t.Errorf("%s: lacks %q:\n%s", name, hex, &text)
	}
	if !strings.Contains(lines.String(), object) {
		t.Errorf("%s: lacks %q:\n%s", name, object, &lines)
	}
}

// TestBits has each bit of startup frames set alone, so that none is told for another. RFC 5044, section 7.1.1; RFC
// 6581, section 9.
func TestBits(t *testing.T) {
	for n := range 4 {
		is := func(bit int) int {
			if bit == n {
				return 1
			}
			return 0
		}
		object := func(names string) string {
			return fmt.Sprintf(`"%c":%t,"%c":%t,"%c":%t,"%c":%t,`,
				names[0], n == 0, names[1], n == 1, names[2], n == 2, names[3], n == 3)
		}
		// M, C, R and S are the first bits after the key; then come Rev and PD_Length.
		s := newScript(t, 0)
		s.send(capture.Forward, append([]byte(mpa.KeyRequest), 0x80>>n, 1, 0, 0))
		wantPrinted(t, "MCRS"[n:n+1], s.close(), fmt.Sprintf("M=%d C=%d R=%d S=%d Res=0",
			is(0), is(1), is(2), is(3)), object("mcrs"))

		// The two words of enhanced data begin with A, B and with C, D.
		data := []byte{0, 5, 0, 6}
		data[n/2*2] = 0x80 >> (n % 2)
		s = newScript(t, 0)
		s.send(capture.Forward, append(append([]byte(mpa.KeyRequest), 0x50, 2, 0, 4), data...))
		file := s.close()
		wantPrinted(t, "ABCD"[n:n+1], file, fmt.Sprintf("A=%d B=%d IRD=5", is(0), is(1)),
			object("abcd")+`"ird":5,"ord":6`)
		wantPrinted(t, "ABCD"[n:n+1], file, fmt.Sprintf("C=%d D=%d ORD=6", is(2), is(3)), object("abcd"))
	}
	for b, want := range map[byte][2]string{
		0x80: {"M=1 C=0 Res=0 Rev=0", `"m":true,"c":false,"rev":0`},
		0x40: {"M=0 C=1 Res=0 Rev=0", `"m":false,"c":true,"rev":0`},
	} {
		s := newScript(t, 0)
		key := mpa.AppendStartKey(nil, &mpa.StartKeyFields{})
		key[len(key)-1] = b
		s.send(capture.Forward, key)
		wantPrinted(t, "Start Key", s.close(), want[0], want[1])
	}
}

// TestTerminateBits has HdrCt bits that differ: the DDP header alone, and the length alone. RFC 5040, section 4.8.
func TestTerminateBits(t *testing.T) {
	for _, c := range []struct {
		hdrct byte
		rest  []byte
		want  string
	}{
		{0xc0, []byte{0, 18, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0}, "M=1 D=1 R=0"},
		{0x80, []byte{0, 18}, "M=1 D=0 R=0"},
		{0x00, nil, "M=0 D=0 R=0"},
	} {
		s := newScript(t, 0)
		s.startup(false)
		s.segment(capture.Backward, s.untagged(capture.Backward, rdmap.OpTerminate),
			append([]byte{0x12, 0x03, c.hdrct, 0}, c.rest...))
		wantPrinted(t, c.want, s.close(), c.want, `"terminate":{"code":4611,`)
	}
}

// TestControlBits has a tagged segment that is not the last, and an untagged one that is. RFC 5041, section 4.
func TestControlBits(t *testing.T) {
	s := newScript(t, 0)
	s.startup(false)
	h := rdmap.OpWrite.Header(1)
	h.STag = 7
	s.segment(capture.Forward, h, []byte("bytes"))
	file := s.close()
	wantPrinted(t, "tagged", file, "T=1 L=0 Rsvd=0 DV=1", `"ddp":{"tagged":true,"last":false,"version":1,`)
	s = newScript(t, 0)
	s.startup(false)
	s.message(capture.Forward, "bytes")
	wantPrinted(t, "untagged", s.close(), "T=0 L=1 Rsvd=0 DV=1", `"ddp":{"tagged":false,"last":true,"version":1,`)
}
