package decode_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// atomic sends an Atomic Request.
func (s *script) atomic(d capture.Dir, r rdmap.AtomicRequest) {
	s.segment(d, s.untagged(d, rdmap.OpAtomicRequest), r.Append(nil))
}

// answer sends an Atomic Response.
func (s *script) answer(d capture.Dir, id uint32, value uint64) {
	r := rdmap.AtomicResponse{ID: id, Value: value}
	s.segment(d, s.untagged(d, rdmap.OpAtomicResponse), r.Append(nil))
}

// extensions is a connection with every message of RFC 7306, and nothing wrong.
func extensions(s *script) {
	add := rdmap.FetchAdd(5, 1<<31)
	add.ID, add.STag, add.TO = 1, 0x1234, 64
	swap := rdmap.CmpSwap(1, 2, 3, 4)
	swap.ID, swap.STag = 2, 0x1234
	s.atomic(fw, add)
	s.read(fw, rdmap.ReadRequest{SinkSTag: 9, Size: 4})
	s.atomic(fw, swap)
	s.answer(bw, 1, 37)
	s.respond(bw, 9, 0, []byte("read"))
	s.answer(bw, 2, 42)
	s.write(fw, 7, 0, []byte("written"))
	s.segment(fw, s.untagged(fw, rdmap.OpImmediateData), rdmap.AppendImmediateData(nil, 0xabcd))
	s.segment(bw, s.untagged(bw, rdmap.OpImmediateDataSE), rdmap.AppendImmediateData(nil, 1))
}

// TestExtensions prints the messages of RFC 7306 with their fields, in all forms.
func TestExtensions(t *testing.T) {
	s := newScript(t, 0)
	s.startup(false)
	extensions(s)
	file := s.close()
	if r := run(t, file); len(r.findings) > 0 || r.reads != 1 {
		t.Errorf("found %q, %d Reads", r.texts, r.reads)
	}
	var text, object bytes.Buffer
	lines := decode.NewText(&text, decode.TextConfig{Hex: true})
	objects := decode.NewJSON(&object, decode.JSONConfig{FPDUs: true})
	for _, c := range []interface {
		decode.Consumer
		Flush() error
	}{lines, objects} {
		_, err := decode.Run(bytes.NewReader(file), decode.Config{}, c)
		testrig.Must(t, err)
		testrig.Must(t, c.Flush())
	}
	for _, want := range []string{
		"Atomic Request qn 1 msn 1 mo 0 FetchAdd 0x5 mask 0x80000000 at STag 0x00001234 TO 0x40, request 1 last",
		"CmpSwap 0x1 mask 0x2 to 0x3 mask 0x4",
		"Atomic Response qn 3 msn 2 mo 0 original 0x2a, of request 2 last",
		"Immediate Data qn 0 msn 1 mo 0 data 0xabcd last",
		"Immediate Data with SE qn 0",
		"Request Identifier", "Add Mask", "Compare Data", "Original Value", "Immediate Data ",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	for _, want := range []string{
		`"atomic_request":{"operation":"FetchAdd","id":1,"stag":4660,"to":64,"data":5,"mask":2147483648,"compare":0,"compare_mask":18446744073709551615}`,
		`"atomic_response":{"id":2,"value":42}`, `"immediate_data":43981`,
	} {
		if !strings.Contains(object.String(), want) {
			t.Errorf("no %s in\n%s", want, object.String())
		}
	}
}

// extensionCases spoil it in one way each.
var extensionCases = []struct {
	name     string
	play     func(s *script)
	findings []string
}{
	{"unknown AOpCode", func(s *script) { s.atomic(fw, rdmap.AtomicRequest{Op: 1}) }, []string{"error opcode"}},
	{"header too short", func(s *script) { s.segment(fw, s.untagged(fw, rdmap.OpAtomicRequest), make([]byte, 51)) },
		[]string{"error message-form"}},
	{"Immediate Data of 4 bytes", func(s *script) {
		s.segment(fw, s.untagged(fw, rdmap.OpImmediateData),
			make([]byte, 4))
	}, []string{"error message-form"}},
	{"response without request", func(s *script) { exchange(s); s.answer(bw, 1, 1) }, []string{"error read-response"}},
	{"response to another", func(s *script) {
		s.message(fw, "x")
		s.atomic(fw, rdmap.AtomicRequest{ID: 1})
		s.answer(bw, 2, 1)
	}, []string{"error read-response"}},
	{"before the Read's", func(s *script) {
		s.read(fw, rdmap.ReadRequest{SinkSTag: 9, Size: 4})
		s.atomic(fw, rdmap.AtomicRequest{ID: 1})
		s.answer(bw, 1, 1)
	}, []string{"error read-response"}},
	{"a Read's before it", func(s *script) {
		s.atomic(fw, rdmap.AtomicRequest{ID: 1})
		s.read(fw, rdmap.ReadRequest{SinkSTag: 9, Size: 4})
		s.respond(bw, 9, 0, make([]byte, 4))
	}, []string{"error read-response"}},
	{"too many of both", func(s *script) {
		for i := range uint32(2) {
			s.atomic(fw, rdmap.AtomicRequest{ID: i})
			s.read(fw, rdmap.ReadRequest{SinkSTag: 9, Size: 4})
		}
		s.atomic(fw, rdmap.AtomicRequest{ID: 3})
	}, []string{"error too-many-reads"}},
	{"a peer that does not know them", func(s *script) {
		s.atomic(fw, rdmap.AtomicRequest{ID: 1})
		s.terminate(bw, rdmap.Terminate{Code: rdmap.CodeUnexpectedOpcode})
	}, []string{"warning terminate"}},
}

// TestExtensionFindings spoils connections with messages of RFC 7306.
func TestExtensionFindings(t *testing.T) {
	for _, c := range extensionCases {
		s := newScript(t, 0)
		s.startup(false)
		c.play(s)
		r := run(t, s.close())
		if !slices.Equal(r.findings, c.findings) {
			t.Errorf("%s: found %q, want %q", c.name, r.texts, c.findings)
		}
		if c.name == "a peer that does not know them" &&
			!strings.Contains(r.texts[0], "does not know the messages of RFC 7306") {
			t.Error(r.texts)
		}
	}
}

// outstanding returns a capture with several requests of both kinds under way at a time.
func outstanding(t *testing.T) []byte {
	s := newScript(t, 1440)
	s.startup(false)
	for i := range uint32(8) {
		for id := 2 * i; id < 2*i+2; id++ {
			s.atomic(fw, rdmap.AtomicRequest{ID: id})
			s.read(fw, rdmap.ReadRequest{SinkSTag: 9 + id, Size: 4})
		}
		for id := 2 * i; id < 2*i+2; id++ {
			s.answer(bw, id, 7)
			s.respond(bw, 9+id, 0, []byte("read"))
		}
		s.segment(fw, s.untagged(fw, rdmap.OpImmediateData), make([]byte, 8))
	}
	return s.close()
}

// TestExtensionsLost has captures that lack a packet, or two, or begin in the middle: nothing is blamed on the ends.
func TestExtensionsLost(t *testing.T) {
	file := outstanding(t)
	if r := run(t, file); len(r.findings) > 0 || r.reads != 16 {
		t.Fatalf("%q, %d Reads", r.texts, r.reads)
	}
	for first := uint64(6); first < 80; first++ {
		for _, gap := range []uint64{0, 1, 2, 5, 9} {
			r := lossy(t, file, func(p *capture.Packet) bool {
				return p.Number == first ||
					gap > 0 && p.Number == first+gap
			})
			if s := r.serious(); len(s) > 0 {
				t.Fatalf("without packets %d and %d after it: %q", first, gap, r.texts)
			}
		}
		r := lossy(t, file, func(p *capture.Packet) bool { return p.Number < first })
		if s := r.serious(); len(s) > 0 {
			t.Fatalf("from packet %d: %q", first, r.texts)
		}
	}
}
