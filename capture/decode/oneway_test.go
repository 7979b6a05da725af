package decode_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// oneWay returns what a capture has of one direction.
func oneWay(file []byte, d capture.Dir) (out []byte) {
	const packet = 6 // an Enhanced Packet Block of pcapng
	ends := append(client.Addr().AsSlice(), server.Addr().AsSlice()...)
	for len(file) > 0 {
		kind, n := binary.LittleEndian.Uint32(file), binary.LittleEndian.Uint32(file[4:])
		if kind != packet || bytes.Contains(file[:n], ends) == (d == fw) {
			out = append(out, file[:n]...)
		}
		file = file[n:]
	}
	return out
}

// TestOneWay has one direction only, with its startup frame: nothing has failed, and the FPDUs
// are found by their form, even where more was sent than is held for an answer.
func TestOneWay(t *testing.T) {
	for _, d := range []capture.Dir{fw, bw} {
		for _, messages := range []int{4, 400} {
			t.Run(fmt.Sprint(d, messages), func(t *testing.T) {
				s := newScript(t, 1440)
				s.startup(false)
				for range messages {
					s.segment(d, s.untagged(d, rdmap.OpSend), make([]byte, 1000))
				}
				file := oneWay(s.close(), d)
				r := run(t, file)
				c := r.conns[0]
				if h := c.Halves[d]; !slices.Contains(r.findings, "note midstream") ||
					len(r.serious()) > 0 || c.Failed() != "" ||
					h.FPDUs < uint64(messages) || h.Bad+h.Lost+h.Undecoded != 0 {
					t.Errorf("%q, %q, %+v", r.texts, c.Failed(), h)
				}
				if s := printed(t, file); !strings.Contains(s, "the capture has one direction only: capture both") ||
					!strings.Contains(s, "found by their form, confidence: ") || strings.Contains(s, "larger buffer") {
					t.Errorf("it says %s", s)
				}
			})
		}
	}
}

// TestUnanswered has a Request that nothing answers, while the other end is there: the bytes
// that follow it are not taken for FPDUs.
func TestUnanswered(t *testing.T) {
	s := newScript(t, 1440)
	s.send(fw, plain(mpa.KeyRequest, false, true))
	s.operate(false, true)
	for range 4 {
		s.message(fw, "hello")
	}
	r := run(t, s.close())
	if c := r.conns[0]; c.Failed() != "startup not completed" || c.Halves[fw].FPDUs != 0 {
		t.Errorf("%q, %q, %+v", r.texts, c.Failed(), c.Halves[fw])
	}
}

// TestBackwards has the two directions of a connection one after the other, as programs that
// append captures leave them: the totals say that times run backwards.
func TestBackwards(t *testing.T) {
	s := newScript(t, 1440)
	s.startup(false)
	s.message(fw, "hello")
	file := s.close()
	var text strings.Builder
	out := decode.NewText(&text, decode.TextConfig{})
	for _, c := range []struct {
		file []byte
		want uint64
	}{{file, 0}, {append(oneWay(file, bw), oneWay(file, fw)[sections(file):]...), 6}} {
		totals, err := decode.Run(bytes.NewReader(c.file), decode.Config{}, out)
		testrig.Must(t, err)
		out.Totals(totals)
		testrig.Must(t, out.Flush())
		if totals.Backwards != c.want || (totals.BackwardsBy > 0) != (c.want > 0) ||
			strings.Contains(text.String(), "sort the capture by time") != (c.want > 0) {
			t.Errorf("%+v\n%s", totals, text.String())
		}
	}
}

// sections returns the bytes of a capture in front of its first packet.
func sections(file []byte) int {
	n := binary.LittleEndian.Uint32(file[4:])
	return int(n + binary.LittleEndian.Uint32(file[n+4:]))
}
