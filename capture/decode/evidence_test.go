package decode_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// A seen takes note of the bytes of findings.
type seen struct {
	decode.Ignore
	found []string
}

func (s *seen) Finding(_ *decode.Connection, f *decode.Finding) {
	if e := f.Evidence; e != nil {
		s.found = append(s.found, fmt.Sprintf("%s at %d + %d: % x, want % x", f.Name, f.Offset, e.Offset-f.Offset, e.Bytes, e.Want))
	}
}

// sum puts the right CRC to an FPDU.
func sum(b []byte) { layout.AppendCRC(b[:len(b)-4], layout.CRC32C(0, b[:len(b)-4])) }

// TestEvidence shows wrong bytes, and what they should be.
func TestEvidence(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(b []byte) // of a Send of eight bytes
		want   string
	}{
		{"CRC", func(b []byte) { b[len(b)-1] ^= 0xff }, `crc-wrong at \d+ \+ 28: (\w\w) (\w\w) (\w\w) \w\w, want \w\w \w\w \w\w \w\w`},
		{"MSN", func(b []byte) { b[15]++; sum(b) }, `msn at \d+ \+ 12: 00 00 00 02, want 00 00 00 01`},
		{"reserved bits", func(b []byte) { b[2] |= 0x20; sum(b) }, `reserved-bits at \d+ \+ 2: 61 43, want 41 43`},
		{"version", func(b []byte) { b[2] &^= 1; sum(b) }, `version at \d+ \+ 2: 40 43, want 41 43`},
		{"queue", func(b []byte) { b[11] = 9; sum(b) }, `queue at \d+ \+ 8: 00 00 00 09, want 00 00 00 00`},
	} {
		s := newScript(t, 0)
		s.startup(false)
		b := s.fpdu(capture.Forward, s.untagged(capture.Forward, rdmap.OpSend), []byte("8 bytes!"))
		c.change(b)
		s.send(capture.Forward, b)
		var got seen
		_, err := decode.Run(bytes.NewReader(s.close()), decode.Config{}, &got)
		testrig.Must(t, err)
		if all := strings.Join(got.found, "\n"); !regexp.MustCompile("^" + c.want + "$").MatchString(all) {
			t.Errorf("%s: %q", c.name, all)
		}
	}
}

// TestMarkerEvidence shows a marker that points elsewhere.
func TestMarkerEvidence(t *testing.T) {
	s := newScript(t, 0)
	s.startup(true)
	b := s.fpdu(capture.Forward, s.untagged(capture.Forward, rdmap.OpSend), make([]byte, 700))
	const start = 24 // of Full Operation, where the first marker is
	at := 512 - (s.sent[capture.Forward]-start)%512
	b[at+3] += 4
	sum(b)
	s.send(capture.Forward, b)
	var got seen
	_, err := decode.Run(bytes.NewReader(s.close()), decode.Config{}, &got)
	testrig.Must(t, err)
	want := fmt.Sprintf("marker-wrong at %d + %d: 00 00 %02x %02x, want 00 00 %02x %02x", s.sent[0]-len(b), at, byte(at>>8), byte(at+4), byte(at>>8), byte(at))
	if len(got.found) != 1 || got.found[0] != want {
		t.Errorf("%q, want %q", got.found, want)
	}
}
