package mpa_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/mpa"
)

var update = flag.Bool("update", false, "rewrite testdata/faults.txt")

const faultsFile = "testdata/faults.txt"

// fault is one field of a frame that is set otherwise.
type fault struct {
	name string
	set  func(b []byte) []byte
}

func flip(name string, at int, xor byte) fault {
	return fault{name, func(b []byte) []byte { b[at] ^= xor; return b }}
}

func value(name string, at int, v byte) fault {
	return fault{name, func(b []byte) []byte { b[at] = v; return b }}
}

func replace(name string, at int, with string) fault {
	return fault{name, func(b []byte) []byte { copy(b[at:], with); return b }}
}

// length sets a field of 16 bits, and has as much data as it says if it is up to 512 bytes.
func length(name string, at int, n func(was int) int, follow bool) fault {
	return fault{name, func(b []byte) []byte {
		v := n(int(binary.BigEndian.Uint16(b[at:])))
		binary.BigEndian.PutUint16(b[at:], uint16(v))
		if rest := b[at+2:]; follow {
			b = append(b[:at+2:at+2], append(bytes.Clone(rest), make([]byte, max(v-len(rest), 0))...)[:v]...)
		}
		return b
	}}
}

func is(n int) func(int) int { return func(int) int { return n } }
func by(n int) func(int) int { return func(was int) int { return was + n } }

// frameFaults are those of a Request, Reply or Rtr frame.
var frameFaults = []fault{
	{"as it should be", func(b []byte) []byte { return b }},
	flip("Key, byte 0", 0, 0x01), flip("Key, byte 9", 9, 0x80), flip("Key, byte 15", 15, 0x20),
	replace("Key, in small letters", 0, "mpa id "),
	replace("Key of a Request", 0, mpa.KeyRequest), replace("Key of a Reply", 0, mpa.KeyReply),
	replace("Key of an Rtr frame", 0, mpa.KeyRtr), replace("a Start Key", 0, mpa.KeyStart+"\x40"),
	flip("M (markers) the other way", 16, 0x80), flip("C (CRCs) the other way", 16, 0x40),
	flip("R (rejected) the other way", 16, 0x20), flip("S the other way", 16, 0x10), flip("all of Res", 16, 0x0f),
	value("Rev 0", 17, 0), value("Rev 1", 17, 1), value("Rev 2", 17, 2), value("Rev 3", 17, 3),
	value("Rev 255", 17, 255),
	length("PD_Length 0, data left out", 18, is(0), true), length("PD_Length one too small", 18, by(-1), false),
	length("PD_Length one too large, then FIN", 18, by(1), false),
	length("PD_Length 512, with data", 18, is(512), true), length("PD_Length 513", 18, is(513), false),
	length("PD_Length 65535", 18, is(65535), false),
	{"the last byte missing, then FIN", func(b []byte) []byte { return b[:len(b)-1] }},
	{"the header cut, then FIN", func(b []byte) []byte { return b[:19] }},
	{"nothing but a FIN", func(b []byte) []byte { return nil }},
}

// enhancedFaults are those of the enhanced data.
var enhancedFaults = []fault{
	length("PD_Length 3, with data", 18, is(3), true),
	flip("Control Flag A the other way", 20, 0x80), flip("Control Flag B the other way", 20, 0x40),
	flip("Control Flag C the other way", 22, 0x80), flip("Control Flag D the other way", 22, 0x40),
	replace("B, C and D of 0", 20, "\x80\x00\x00\x00"),
	replace("IRD 32, ORD 32", 20, "\x80\x20\xc0\x20"), replace("IRD 0x3FFE, ORD 0x3FFE", 20, "\xbf\xfe\xff\xfe"),
	replace("IRD 0x3FFF, ORD 0x3FFF", 20, "\xbf\xff\xff\xff"),
}

// keyFaults are those of a Start Key, messageFaults those of a private data message.
var (
	keyFaults = []fault{
		frameFaults[0],
		flip("Key, byte 0", 0, 0x01), flip("Key, byte 14", 14, 0x20),
		replace("Key of a Request", 0, mpa.KeyRequest), replace("Key of a Reply", 0, mpa.KeyReply),
		flip("M (markers) the other way", 15, 0x80), flip("C (CRCs) the other way", 15, 0x40),
		flip("all of Res", 15, 0x30),
		value("Rev 1", 15, 0x41), value("Rev 15", 15, 0x4f),
		{"the last byte missing, then FIN", func(b []byte) []byte { return b[:15] }},
		{"nothing but a FIN", func(b []byte) []byte { return nil }},
	}
	messageFaults = []fault{
		frameFaults[0],
		length("length 0, data left out", 0, is(0), true), length("length one too small", 0, by(-1), false),
		length("length one too large, then FIN", 0, by(1), false),
		length("length 512, with data", 0, is(512), true), length("length 513", 0, is(513), false),
		length("length 65535", 0, is(65535), false),
		{"a Request instead", func([]byte) []byte {
			return frame(mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: 1})
		}},
		{"a Request instead, one byte of its key wrong", func([]byte) []byte {
			return frame(mpa.StartupFields{Key: "MPA ID Req Framd", C: true, Rev: 1})
		}},
		{"a Reply instead", func([]byte) []byte {
			return frame(mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: 1})
		}},
		{"a Start Key instead", func([]byte) []byte { return mpa.AppendStartKey(nil, &mpa.StartKeyFields{C: true}) }},
		{"the first byte, then FIN", func(b []byte) []byte { return b[:1] }},
		{"nothing but a FIN", func(b []byte) []byte { return nil }},
	}
)

// faultsOf returns the faults that an act's frame can have.
func faultsOf(p *play, b []byte) []fault {
	switch f, err := mpa.ParseStartup(b); {
	case err == nil && strings.HasPrefix(f.Key(), "MPA ID"):
		if _, enhanced := f.Enhanced(); enhanced {
			return append(frameFaults[:len(frameFaults):len(frameFaults)], enhancedFaults...)
		}
		return frameFaults
	case bytes.HasPrefix(b, []byte(mpa.KeyStart)):
		return keyFaults
	}
	return messageFaults
}

// TestFaults says what the machines make of each field of each startup frame of each
// dialect, where it is set wrong, and compares that with testdata/faults.txt: the verdict,
// with code and hint, what is sent, and what is left in the stream.
//
// Proves Q02, Q03, Q05-Q08, Q13, Q16, K02, K04, K05, K07, T01, T02, T04, T05, N04, N05, E01,
// E02, E05-E08, E10, E13, E14, F11, F14.
func TestFaults(t *testing.T) {
	var text strings.Builder
	for k := range plays {
		p := &plays[k]
		for n, a := range p.acts {
			fmt.Fprintf(&text, "== %s gets %s\n", p.name, mpa.DescribeStartup(unhex(t, a.frame)))
			for _, f := range faultsOf(p, unhex(t, a.frame)) {
				fmt.Fprintf(&text, "%s\n", f.name)
				for _, line := range p.verdict(t, n, f.set(unhex(t, a.frame))) {
					fmt.Fprintf(&text, "\t%s\n", line)
				}
			}
		}
	}
	if *update {
		if err := os.WriteFile(faultsFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(faultsFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text.String(), "\n")); diff != "" {
		t.Errorf("(-%s +now), go test -update rewrites it:\n%s", faultsFile, diff)
	}
}

// verdict returns what a machine makes of a frame in place of the one of an act, and of a
// FIN if it waits for more.
func (p *play) verdict(t *testing.T, n int, frame []byte) (lines []string) {
	t.Helper()
	d := p.upTo(t, n)
	taken, err := d.m.Input(d.now, frame)
	if err == nil && !d.m.Done() && d.m.Want() > 0 {
		if sent := d.m.Output(); len(sent) > 0 {
			lines = append(lines, "sends "+mpa.DescribeStartup(sent))
		}
		err = d.m.PeerClosed(io.EOF)
	}
	if r, ok := d.m.(*mpa.Responder); ok && err == nil && n == 0 {
		answer := p.offer.Answer()
		reply, refused := r.Accept(d.now, answer)
		if errors.Is(refused, mpa.ErrOffer) { // a Start Key has no room for data
			answer.PrivateData = nil
			reply, refused = r.Accept(d.now, answer)
		}
		if refused != nil {
			t.Fatalf("%s: % x: %v", p.name, frame, refused)
		}
		lines = append(lines, "sends "+mpa.DescribeStartup(reply))
	}
	if sent := d.m.Output(); len(sent) > 0 {
		lines = append(lines, "sends "+mpa.DescribeStartup(sent))
	}
	if left := len(frame) - taken; left > 0 && err == nil {
		lines = append(lines, fmt.Sprintf("leaves what follows %d bytes", taken))
	}
	return append(lines, outcomeText(d.m, err)...)
}

// outcomeText says what became of a startup.
func outcomeText(m machine, err error) []string {
	var s *mpa.StartupError
	if errors.As(err, &s) {
		line := fmt.Sprintf("%v, code %d", s.Failure, s.Err.Code)
		if s.Fallback {
			line += ", fall back to revision 1"
		}
		return []string{line, s.Error()}
	}
	if i, ok := m.(*mpa.Initiator); ok && i.Rejected() != nil {
		return []string{"rejected", i.Rejected().Error()}
	}
	if !m.Done() {
		return []string{fmt.Sprintf("waits for %d bytes", m.Want())}
	}
	return []string{negotiatedText(m.Negotiated())}
}

func negotiatedText(n mpa.Negotiated) string {
	mark := func(set bool, name string) string {
		if set {
			return ", " + name
		}
		return ""
	}
	s := fmt.Sprintf("up: %v, revision %d sent, %d received, DDP %d",
		n.Dialect, n.Revision, n.PeerRevision, n.DDPVersion)
	s += mark(n.MarkersReceive, "markers received") + mark(n.MarkersSend, "markers sent") + mark(n.CRC, "CRC")
	if n.Enhanced {
		s += fmt.Sprintf(", IRD %v, ORD %v, peer's %v and %v", n.IRD, n.ORD, n.PeerIRD, n.PeerORD)
	}
	if n.PeerToPeer {
		s += fmt.Sprintf(", RTR %v", n.RTR)
	}
	s += mark(n.SendFirst, "may send first")
	if n.TerminateCode != 0 {
		s += fmt.Sprintf(", ends with Terminate code %d", n.TerminateCode)
	}
	if len(n.PrivateData) > 0 {
		s += fmt.Sprintf(", %d bytes of private data", len(n.PrivateData))
	}
	return s
}
