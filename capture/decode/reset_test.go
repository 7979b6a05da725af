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
)

// TestReset has an RST be named in a finding, with the direction that it is in, and be told as
// the end of the other direction that it is, too.
func TestReset(t *testing.T) {
	for _, c := range []struct {
		name     string
		play     func(s *script)
		ended    string
		findings []string
	}{
		{"by the Responder", func(s *script) {
			testrig.Must(t, s.flow.Reset(bw, s.tick()))
		}, "-> RST by the other end in packet 7 at 44, <- RST in packet 7 at 24", []string{"warning reset <-"}},
		{"by the Initiator", func(s *script) {
			testrig.Must(t, s.flow.Reset(fw, s.tick()))
		}, "-> RST in packet 7 at 44, <- RST by the other end in packet 7 at 24", []string{"warning reset ->"}},
		{"by one that was closed", func(s *script) {
			testrig.Must(t, s.flow.Close(fw, s.tick()))
			testrig.Must(t, s.flow.Reset(fw, s.tick()))
		}, "-> FIN in packet 7 at 44, <- RST by the other end in packet 9 at 24", []string{"warning reset ->"}},
		{"not at all", func(s *script) { s.close() }, "-> FIN in packet 7 at 44, <- FIN in packet 9 at 24", nil},
	} {
		s := newScript(t, 0)
		s.startup(false)
		c.play(s)
		file := s.fileBytes()
		r := run(t, file)
		if got := r.directed(); !slices.Equal(got, c.findings) || ended(t, file) != c.ended ||
			(r.conns[0].Failed() == "reset") != (len(c.findings) > 0) {
			t.Errorf("%s: found %q, ended %q, failed %q", c.name, r.texts, ended(t, file), r.conns[0].Failed())
		}
	}
}

// directed returns the findings with their directions.
func (r *record) directed() (list []string) {
	for _, text := range r.texts {
		f := strings.Fields(text) // severity, name, ID, direction
		list = append(list, fmt.Sprint(f[0], " ", f[1], " ", f[3]))
	}
	return list
}

// packets returns a capture with some of its packets only, by their numbers from 1.
func packets(file []byte, which ...int) (out []byte) {
	const packet = 6 // an Enhanced Packet Block of pcapng
	for number := 0; len(file) > 0; {
		n := binary.LittleEndian.Uint32(file[4:])
		keep := binary.LittleEndian.Uint32(file) != packet
		if !keep {
			number++
			keep = slices.Contains(which, number)
		}
		if keep {
			out = append(out, file[:n]...)
		}
		file = file[n:]
	}
	return out
}

// TestNothingSent has connections that are expected to be iWARP, and on which nobody sends an
// byte: no key is wrong then.
func TestNothingSent(t *testing.T) {
	for _, c := range []struct {
		name   string
		file   func(s *script) []byte
		want   string
		failed string
	}{
		{"refused", func(s *script) []byte {
			testrig.Must(t, s.flow.Reset(bw, s.tick()))
			return packets(s.fileBytes(), 1, 4) // the SYN, and the RST
		}, "warning connection-refused [] <- at 0: connection refused: an RST answers the SYN", "refused"},
		{"reset", func(s *script) []byte {
			testrig.Must(t, s.flow.Reset(bw, s.tick()))
			return s.fileBytes()
		}, "warning reset [] <- at 0: the connection is reset", "reset"},
		{"closed", (*script).close, "warning closed-at-startup [Q16] -> at 0: the connection is closed before a byte was sent", "startup not completed"},
		{"open", (*script).fileBytes, "note startup-open [] -> at 0: no byte was sent up to the end in the capture: end of capture", "startup not completed"},
	} {
		r := new(record)
		expect := func(*capture.Connection) bool { return true }
		if _, err := decode.Run(bytes.NewReader(c.file(newScript(t, 0))),
			decode.Config{Expect: expect}, r); err != nil {
			t.Fatal(err)
		}
		if len(r.texts) != 1 || !strings.HasPrefix(r.texts[0], c.want) || r.conns[0].Failed() != c.failed {
			t.Errorf("%s: found %q, failed %q", c.name, r.texts, r.conns[0].Failed())
		}
	}
}
