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

// headless returns what a capture has from a packet on, counted from 1.
func headless(file []byte, packet int) []byte {
	out := slices.Clone(file[:sections(file)])
	for file = file[len(out):]; packet > 1; packet-- {
		file = file[binary.LittleEndian.Uint32(file[4:]):]
	}
	return append(out, file...)
}

// TestBegunLate begins a capture after the connection: whether it has the other direction is said when that is known,
// and without that nobody is accused of what depends on it.
func TestBegunLate(t *testing.T) {
	const late, oneSided = "begin the capture before the connection is opened", "the other direction is not in the capture"
	s := newScript(t, 1440)
	s.startup(false)
	for range 6 {
		s.message(fw, "hello")
	}
	for range 20 {
		s.read(bw, rdmap.ReadRequest{SinkSTag: 7, Size: 5, SrcSTag: 9})
		s.respond(fw, 7, 0, []byte("hello"))
	}
	file := s.close()
	for name, c := range map[string]struct {
		file []byte
		want []string
		told int
	}{
		"the other one comes later": {headless(file, 7), []string{late}, 1},
		"never":                     {oneWay(headless(file, 7), fw), []string{late, oneSided, bothHint}, 2},
		"never, from the SYN on":    {oneWay(file, fw), []string{bothHint}, 1},
	} {
		r := run(t, c.file)
		if told := len(slices.DeleteFunc(slices.Clone(r.findings),
			func(f string) bool { return f != "note midstream" })); told != c.told || len(r.serious()) > 0 {
			t.Errorf("%s: %q", name, r.texts)
		}
		all := strings.Join(r.texts, "")
		for _, hint := range []string{late, oneSided, bothHint} {
			if strings.Contains(all, hint) != slices.Contains(c.want, hint) {
				t.Errorf("%s: %q in %q", name, hint, r.texts)
			}
		}
	}
}

const bothHint = "the capture has one direction only: capture both"

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
