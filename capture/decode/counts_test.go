package decode_test

import (
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestCounts says Sends, of which some are not right: the summary counts each once. What a receiver would hold is told
// only if nothing is wrong or missing.
func TestCounts(t *testing.T) {
	damaged := func(s *script) {
		b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), make([]byte, 700))
		b[100] ^= 1
		s.send(fw, b)
	}
	good := func(s *script) { s.message(fw, strings.Repeat("x", 700)) }
	for name, c := range map[string]struct {
		crc    bool
		say    []func(*script)
		lost   uint64 // a packet that the capture lacks
		want   string // of the line on FPDUs
		rows   string
		memory bool
	}{
		"all right":     {true, []func(*script){good, good}, 0, "2, 1448 bytes on the stream, 1436 bytes of ULPDUs\n", "2 messages", false},
		"the last bad":  {true, []func(*script){good, damaged}, 0, "1 of 2 whole and right, 724 bytes on the stream, 718 bytes of ULPDUs; 1 in error\n", "1 message ", false},
		"the first bad": {true, []func(*script){damaged, good, good}, 0, "2 of 3 whole and right, 1448 bytes", "2 messages", false},
		"without pads": {false, []func(*script){func(s *script) {
			for range 3 {
				s.send(fw, s.padded(fw, false, "x", 0))
			}
		}}, 0, "0 of 3 whole and right, 0 bytes on the stream, 0 bytes of ULPDUs; 3 in error\n", "FPDUs", false},
		"one that is no message": {true, []func(*script){good, func(s *script) {
			s.segment(fw, s.untagged(fw, rdmap.OpReadRequest), make([]byte, 32))
		}}, 0, "2, 780 bytes", "not well-formed                            1 segment\n", false},
		"one that was not captured": {true, []func(*script){good, good, good, good}, 7,
			"3, 2172 bytes on the stream, 2154 bytes of ULPDUs; 724 bytes in no FPDU\n", "3 messages", false},
		"one in two segments": {true, []func(*script){good, func(s *script) {
			s.message(fw, strings.Repeat("x", 2000))
		}}, 0, "2, 2748 bytes", "2 messages", true},
	} {
		s := agreed(t, 0, false, c.crc)
		for _, say := range c.say {
			say(s)
		}
		r := lossy(t, s.close(), func(p *capture.Packet) bool { return p.Number == c.lost })
		var text string
		for _, row := range r.conns[0].Summary() {
			text += row[0] + " " + row[1] + "\n"
		}
		if !strings.Contains(text, "-> FPDUs "+c.want) || !strings.Contains(text, c.rows) {
			t.Errorf("%s: %q\n%s", name, r.texts, text)
		}
		if strings.Contains(text, "a receiver that waits for order holds at most") != c.memory {
			t.Errorf("%s: what a receiver holds: %s", name, text)
		}
	}
}
