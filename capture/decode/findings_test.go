package decode_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

const (
	fw = capture.Forward
	bw = capture.Backward
)

// exchange sends something of every kind, in both directions, in Full Operation.
func exchange(s *script) {
	s.message(fw, "hello")
	s.message(bw, "hello yourself")
	s.write(fw, 7, 4096, make([]byte, 700))
	s.read(fw, rdmap.ReadRequest{SinkSTag: 9, SinkTO: 16, Size: 300, SrcSTag: 7, SrcTO: 4096})
	s.respond(bw, 9, 16, make([]byte, 300))
	s.read(fw, rdmap.ReadRequest{SinkSTag: 9, SrcSTag: 7})
	s.respond(bw, 9, 0, nil)
}

// startupCases are startups with something wrong, and what is found: nothing else is.
var startupCases = []struct {
	name     string
	request  mpa.Enhanced
	reply    mpa.Enhanced
	findings []string
}{
	{"right", mpa.Enhanced{IRD: 4, ORD: 4}, mpa.Enhanced{IRD: 4, ORD: 4}, nil},
	{"depth lowered", mpa.Enhanced{IRD: 4, ORD: 8}, mpa.Enhanced{IRD: 4, ORD: 4}, []string{"note reply-ird-below-ord"}},
	{"ORD above the IRD", mpa.Enhanced{IRD: 4, ORD: 4}, mpa.Enhanced{IRD: 4, ORD: 5}, []string{"error reply-ord-above-ird"}},
	{"ORD of siw", mpa.Enhanced{IRD: 4, ORD: 4}, mpa.Enhanced{IRD: 128, ORD: 128}, []string{"warning reply-ord-above-ird"}},
	{"nothing negotiated", mpa.Enhanced{IRD: 0x3fff, ORD: 0x3fff}, mpa.Enhanced{IRD: 0x3fff, ORD: 0x3fff}, nil},
	{"negotiated all the same", mpa.Enhanced{IRD: 0x3fff, ORD: 0x3fff}, mpa.Enhanced{IRD: 128, ORD: 128}, []string{"error reply-without-0x3fff", "error reply-without-0x3fff"}},
	{"not negotiated", mpa.Enhanced{IRD: 4, ORD: 4}, mpa.Enhanced{IRD: 0x3fff, ORD: 0x3fff}, []string{"note reply-0x3fff-unasked", "note reply-0x3fff-unasked"}},
	{"A not answered", mpa.Enhanced{A: true, C: true}, mpa.Enhanced{}, []string{"error reply-model"}},
	{"A unasked", mpa.Enhanced{}, mpa.Enhanced{A: true, C: true}, []string{"error reply-model"}},
	{"A without a kind", mpa.Enhanced{A: true}, mpa.Enhanced{A: true, C: true}, []string{"warning no-rtr-kind", "warning no-common-rtr"}},
	{"answer without a kind", mpa.Enhanced{A: true, C: true}, mpa.Enhanced{A: true}, []string{"error reply-no-rtr-kind"}},
	{"kinds without A", mpa.Enhanced{C: true}, mpa.Enhanced{}, []string{"warning rtr-flags-without-a"}},
	{"no common kind", mpa.Enhanced{A: true, C: true}, mpa.Enhanced{A: true, D: true}, []string{"warning no-common-rtr"}},
}

// TestStartupFindings has startups whose Reply does not fit the Request.
func TestStartupFindings(t *testing.T) {
	for _, c := range startupCases {
		s := newScript(t, 0)
		s.send(fw, enhanced(mpa.KeyRequest, c.request))
		s.send(bw, enhanced(mpa.KeyReply, c.reply))
		r := run(t, s.close())
		if !slices.Equal(r.findings, c.findings) {
			t.Errorf("%s: found %q, want %q", c.name, r.texts, c.findings)
		}
	}
}

// spoiled sends an FPDU with a byte of it changed.
func spoiled(s *script, d capture.Dir, at int) {
	b := s.fpdu(d, s.untagged(d, rdmap.OpSend), make([]byte, 40))
	b[(at+len(b))%len(b)] ^= 0x40
	s.send(d, b)
}

// fullCases are connections with something wrong in Full Operation, and what is found.
var fullCases = []struct {
	name     string
	markers  bool
	play     func(s *script)
	findings []string
}{
	{"right", false, exchange, nil},
	{"right with markers", true, exchange, nil},
	{"CRC", false, func(s *script) { spoiled(s, fw, -1); exchange(s) }, []string{"error crc-wrong", "note found-again"}},
	{"payload", false, func(s *script) { spoiled(s, fw, 30); exchange(s) }, []string{"error crc-wrong", "note found-again"}},
	{"CRC off though agreed on", false, func(s *script) {
		for range 6 {
			s.junked(bw, "hello")
		}
	}, []string{"error crc-wrong", "warning not-as-agreed"}},
	{"markers though not agreed on", false, func(s *script) {
		s.mpa[bw] = mpa.NewWriter(true, true)
		for range 6 {
			s.message(bw, strings.Repeat("hello", 100))
		}
	}, []string{"error crc-wrong", "warning not-as-agreed"}},
	{"no markers though agreed on", true, func(s *script) {
		s.mpa[bw] = mpa.NewWriter(false, true)
		for range 6 {
			s.message(bw, strings.Repeat("hello", 100))
		}
	}, []string{"error crc-wrong", "warning not-as-agreed"}},
	{"CRC in the other byte order", false, func(s *script) {
		b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), make([]byte, 40))
		slices.Reverse(b[len(b)-4:])
		s.send(fw, b)
	}, []string{"error crc-wrong"}},
	{"marker", true, func(s *script) {
		b := s.fpdu(fw, s.untagged(fw, rdmap.OpSend), make([]byte, 600))
		for i := 20; i < len(b); i++ {
			if (s.sent[fw]-24+i)%512 == 3 {
				b[i] += 8 // FPDUPTR, and the CRC is right for it
			}
		}
		s.send(fw, layout.AppendCRC(b[:len(b)-4], layout.CRC32C(0, b[:len(b)-4])))
		exchange(s)
	}, []string{"error marker-wrong"}},
	{"MSN left out", false, func(s *script) { s.msn[fw][0]++; exchange(s) }, []string{"error msn"}},
	{"MSN from 0", false, func(s *script) { s.msn[bw][0] = 0; exchange(s) }, []string{"error msn"}},
	{"MO left out", false, func(s *script) {
		h := s.untagged(fw, rdmap.OpSend)
		h.Last = false
		s.segment(fw, h, make([]byte, 100))
		h.Last, h.MO = true, 200
		s.segment(fw, h, make([]byte, 100))
		exchange(s)
	}, []string{"error mo"}},
	{"DDP version", false, func(s *script) {
		h := s.untagged(fw, rdmap.OpSend)
		h.Version = 0
		s.segment(fw, h, nil)
	}, []string{"error version"}},
	{"RDMAP version", false, func(s *script) {
		h := s.untagged(fw, rdmap.OpSend)
		h.RsvdULP &= 0x3f
		s.segment(fw, h, nil)
	}, []string{"error version"}},
	{"opcode", false, func(s *script) {
		h := s.untagged(fw, rdmap.OpSend)
		h.RsvdULP |= 0xf
		s.segment(fw, h, nil)
	}, []string{"error opcode"}},
	{"queue", false, func(s *script) {
		h := s.untagged(fw, rdmap.OpSend)
		h.QN = 4
		s.segment(fw, h, nil)
	}, []string{"error queue"}},
	{"reserved bits", false, func(s *script) {
		h := s.untagged(fw, rdmap.OpSend)
		h.Rsvd = 1
		s.segment(fw, h, nil)
	}, []string{"note reserved-bits"}},
	{"no DDP header", false, func(s *script) { s.send(fw, s.mpa[fw].Append(nil, []byte{1, 2, 3})) }, []string{"error ddp-too-short"}},
	{"Read Request too short", false, func(s *script) { s.segment(fw, s.untagged(fw, rdmap.OpReadRequest), make([]byte, 8)) }, []string{"error message-form"}},
	{"Read Request of 32 bytes, and MSN across queues", false, func(s *script) {
		exchange(s)
		h := s.untagged(fw, rdmap.OpReadRequest)
		h.MSN = s.msn[fw][0] + s.msn[fw][1] - 2
		s.segment(fw, h, make([]byte, 32))
		s.respond(bw, 0, 0, nil)
		s.msn[fw][0]++
		s.message(fw, "x")
	}, []string{"error read-request-32-bytes", "error msn", "error msn"}},
	{"MSN after a message of no form", false, func(s *script) {
		s.segment(fw, s.untagged(fw, rdmap.OpReadRequest), make([]byte, 8))
		s.respond(bw, 9, 0, make([]byte, 4))
		exchange(s)
		h := s.untagged(fw, rdmap.OpSend)
		h.RsvdULP |= 0xf
		s.segment(fw, h, nil)
		s.msn[fw][0]++
		s.message(fw, "one is left out")
	}, []string{"error message-form", "error opcode", "error msn"}},
	{"Send on the queue of Reads", false, func(s *script) {
		h := s.untagged(fw, rdmap.OpSend)
		h.QN = rdmap.QNRead
		s.segment(fw, h, nil)
		s.msn[fw][0]--
		exchange(s)
	}, []string{"error opcode"}},
	{"Response without Request", false, func(s *script) { exchange(s); s.respond(bw, 9, 16, make([]byte, 10)) }, []string{"error read-response"}},
	{"Response to another STag", false, func(s *script) {
		s.message(fw, "x")
		s.read(fw, rdmap.ReadRequest{SinkSTag: 9, Size: 10})
		s.respond(bw, 8, 0, make([]byte, 10))
	}, []string{"error read-response"}},
	{"Response too short", false, func(s *script) {
		s.read(fw, rdmap.ReadRequest{SinkSTag: 9, Size: 10})
		s.respond(bw, 9, 0, make([]byte, 9))
	}, []string{"error read-response"}},
	{"too many Reads", false, func(s *script) {
		for range 5 {
			s.read(fw, rdmap.ReadRequest{SinkSTag: 9, Size: 10})
		}
	}, []string{"error too-many-reads"}},
	{"two STags in a message", false, func(s *script) {
		h := rdmap.OpWrite.Header(1)
		h.STag = 1
		s.segment(fw, h, make([]byte, 10))
		s.write(fw, 2, 10, make([]byte, 10))
	}, []string{"error tagged-message-mixed"}},
	{"Terminate", false, func(s *script) {
		exchange(s)
		s.terminate(bw, rdmap.Terminate{Code: rdmap.CodeDDPInvalidSTag})
	}, []string{"warning terminate"}},
	{"Terminate of siw", false, func(s *script) {
		exchange(s)
		s.segment(bw, s.untagged(bw, rdmap.OpTerminate), []byte{0x11, 0, 3, 0, 0, 14, 0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	}, []string{"warning terminate", "note terminate-swapped"}},
	{"after a Terminate", false, func(s *script) {
		exchange(s)
		s.terminate(bw, rdmap.Terminate{Code: rdmap.CodeDDPInvalidSTag})
		s.message(bw, "and yet")
	}, []string{"warning terminate", "error after-terminate"}},
	{"cut off", false, func(s *script) {
		s.send(fw, s.fpdu(fw, s.untagged(fw, rdmap.OpSend), make([]byte, 40))[:20])
	}, []string{"warning fpdu-cut-off"}},
}

// TestFullFindings spoils connections in Full Operation in one way each.
func TestFullFindings(t *testing.T) {
	for _, c := range fullCases {
		s := newScript(t, 0)
		s.startup(c.markers)
		c.play(s)
		r := run(t, s.close())
		if !slices.Equal(r.findings, c.findings) {
			t.Errorf("%s: found %q, want %q", c.name, r.texts, c.findings)
		}
	}
}

// openingCases are the first FPDUs of a connection.
var openingCases = []struct {
	name     string
	request  mpa.Enhanced
	reply    mpa.Enhanced
	play     func(s *script)
	findings []string
}{
	{"client-server", mpa.Enhanced{}, mpa.Enhanced{}, exchange, nil},
	{"responder first, client-server", mpa.Enhanced{}, mpa.Enhanced{}, func(s *script) { s.message(bw, "first"); exchange(s) }, []string{"warning responder-first"}},
	{"responder first, peer-to-peer", mpa.Enhanced{A: true, C: true}, mpa.Enhanced{A: true, C: true}, func(s *script) {
		s.message(bw, "first")
		s.write(fw, 1, 0, nil)
	}, []string{"error responder-first"}},
	{"no RTR", mpa.Enhanced{A: true, C: true}, mpa.Enhanced{A: true, C: true}, exchange, []string{"error no-rtr"}},
	{"RTR of the wrong kind", mpa.Enhanced{A: true, C: true, D: true}, mpa.Enhanced{A: true, D: true}, func(s *script) { s.write(fw, 1, 0, nil); exchange(s) }, []string{"error rtr-kind"}},
	{"RTR by a Send instead", mpa.Enhanced{A: true, C: true}, mpa.Enhanced{A: true, C: true}, func(s *script) { s.message(fw, "") }, []string{"error rtr-kind"}},
	{"RTR with STag 0", mpa.Enhanced{A: true, C: true}, mpa.Enhanced{A: true, C: true}, func(s *script) { s.write(fw, 0, 0, nil); exchange(s) }, []string{"note rtr-stag-0"}},
	{"RTR by a Read", mpa.Enhanced{A: true, D: true}, mpa.Enhanced{A: true, D: true}, func(s *script) {
		s.read(fw, rdmap.ReadRequest{SrcSTag: 1})
		s.respond(bw, 0, 0, nil)
	}, nil},
	{"RTR unasked", mpa.Enhanced{}, mpa.Enhanced{}, func(s *script) {
		s.read(fw, rdmap.ReadRequest{SrcSTag: 1})
		s.respond(bw, 0, 0, nil)
	}, []string{"note rtr-not-negotiated"}},
}

// TestOpeningFindings has connections begin in ways that were agreed on, or not.
func TestOpeningFindings(t *testing.T) {
	for _, c := range openingCases {
		c.request.IRD, c.request.ORD, c.reply.IRD, c.reply.ORD = 4, 4, 4, 4
		s := newScript(t, 0)
		s.send(fw, enhanced(mpa.KeyRequest, c.request))
		s.send(bw, enhanced(mpa.KeyReply, c.reply))
		s.operate(false, true)
		c.play(s)
		r := run(t, s.close())
		if !slices.Equal(r.findings, c.findings) {
			t.Errorf("%s: found %q, want %q", c.name, r.texts, c.findings)
		}
	}
}

// frameCases are startups that fail, or that are remarkable.
var frameCases = []struct {
	name     string
	frames   []string // alternately from each end
	startups int
	findings []string
}{
	{"wrong key", []string{request1, "HTTP/1.1 400 Bad Request\r\n\r\n"}, 1, []string{"error wrong-key", "note not-decoded"}},
	{"two Initiators", []string{request1, request1}, 2, []string{"error wrong-key"}},
	{"two Responders", []string{reply1, reply1}, 2, []string{"error reply-without-request"}},
	{"unknown revision", []string{string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, Rev: 9}))}, 1, []string{"error bad-request"}},
	{"private data too long", []string{string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, Rev: 1, PrivateData: make([]byte, 600)}))}, 1, []string{"error bad-request", "note not-decoded"}},
	{"revision 0 to a non-permissive RNIC", []string{string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, M: true, C: true})), reply1}, 2, []string{"warning revisions-do-not-fit"}},
	{"revision 2 to an RDMAC RNIC", []string{string(enhanced(mpa.KeyRequest, mpa.Enhanced{})), string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, M: true, C: true}))}, 2, []string{"warning revisions-do-not-fit"}},
	{"revision 1 to an RDMAC RNIC", []string{request1, string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, M: true, C: true}))}, 2, nil},
	{"revision 2 answered with 1", []string{string(enhanced(mpa.KeyRequest, mpa.Enhanced{})), reply1}, 2, []string{"error bad-answer"}},
	{"no answer", []string{request1}, 1, []string{"warning closed-at-startup"}},
	{"bytes before the answer", []string{request1 + "early", reply1}, 2, []string{"error bytes-before-the-answer", "warning fpdu-cut-off"}},
	{"rejected", []string{request1, string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, R: true, Rev: 1}))}, 2, []string{"note rejected"}},
	{"reserved bits", []string{string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, Res: 8, Rev: 1})), string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, Res: 8, Rev: 1}))}, 2, []string{"note startup-reserved", "note reserved-echoed"}},
	{"Start Key of revision 1", []string{string(mpa.AppendStartKey(nil, &mpa.StartKeyFields{Rev: 1}))}, 1, []string{"error bad-start-key", "warning closed-at-startup"}},
	{"Rtr frame", []string{request1S, reply1S, rtr(true)}, 3, nil},
	{"Rtr frame without C", []string{request1S, reply1S, rtr(false)}, 3, []string{"error bad-rtr-frame"}},
	{"S echoed", []string{request1S, reply1S, "\x00\x12\x41\x43\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"}, 2, []string{"warning no-rtr-frame", "warning fpdu-cut-off"}},
	{"plain revision 0", []string{string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest})), string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply}))}, 2, []string{"note revision-0-plain"}},
	{"delayed", []string{"hello\n", "hello\n", request1, reply1}, 4, nil},
	{"delayed, within segments", []string{"hello\n" + request1, "hello\n" + reply1}, 4, nil},
	{"again after a rejection", []string{request1, string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, R: true, Rev: 1})), "sorry", "try again", request1, reply1}, 6, []string{"note rejected"}},
	{"messages before Start Keys", []string{"\x00\x03abc", "\x00\x02ok", startKey, startKey}, 4, nil},
}

var (
	request1  = string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, C: true, Rev: 1}))
	reply1    = string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, C: true, Rev: 1}))
	request1S = string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRequest, C: true, S: true, Rev: 1}))
	reply1S   = string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, C: true, S: true, Rev: 1}))
	startKey  = string(mpa.AppendStartKey(nil, &mpa.StartKeyFields{C: true}))
)

func rtr(c bool) string {
	return string(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyRtr, C: c, Rev: 1}))
}

// TestFrames has startups of frames as they are.
func TestFrames(t *testing.T) {
	for _, c := range frameCases {
		for _, mss := range []int{1440, 7, 1} {
			s := newScript(t, mss)
			for i, f := range c.frames {
				s.send(capture.Dir(i%2), []byte(f))
			}
			r := run(t, s.close())
			if !slices.Equal(r.findings, c.findings) || len(r.startups) != c.startups {
				t.Errorf("%s, in segments of %d: found %q, want %q; frames %q", c.name, mss, r.texts, c.findings, r.startups)
			}
		}
	}
}

// TestSwappedTerminate has Terminates whose code there is in the RFC's layout and in
// siw's: they mean what was just found in the other direction.
func TestSwappedTerminate(t *testing.T) {
	noRTR := func(s *script) {
		s.send(fw, enhanced(mpa.KeyRequest, mpa.Enhanced{A: true, C: true}))
		s.send(bw, enhanced(mpa.KeyReply, mpa.Enhanced{A: true, D: true}))
		s.operate(false, true)
	}
	opcode := func(s *script) {
		s.startup(false)
		h := s.untagged(bw, rdmap.OpSend)
		h.RsvdULP |= 0xf
		s.segment(bw, h, nil)
	}
	for _, c := range []struct {
		name  string
		begin func(s *script)
		byte  [2]byte
		want  rdmap.Code
	}{
		{"RTR, swapped", noRTR, [2]byte{0x02, 7}, rdmap.CodeMPANoMatchingRTR},
		{"RTR", noRTR, [2]byte{0x20, 7}, rdmap.CodeMPANoMatchingRTR},
		{"nothing found", func(s *script) { s.startup(false) }, [2]byte{0x02, 7}, rdmap.CodeCatastrophicStream},
		{"opcode, swapped", opcode, [2]byte{0x20, 6}, rdmap.CodeUnexpectedOpcode},
		{"opcode", opcode, [2]byte{0x02, 6}, rdmap.CodeUnexpectedOpcode},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, 0)
			c.begin(s)
			s.segment(fw, s.untagged(fw, rdmap.OpTerminate), []byte{c.byte[0], c.byte[1], 0, 0})
			r := run(t, s.close())
			r.wantTexts(t, fmt.Sprintf("Terminate: %v", c.want))
			answers := strings.Contains(fmt.Sprint(r.texts), "it is the answer to ")
			if answers != (c.name != "nothing found") {
				t.Errorf("%q", r.texts)
			}
		})
	}
}

// TestEqualNotes has one note many times: it is told of once, and counted.
func TestEqualNotes(t *testing.T) {
	s := newScript(t, 0)
	s.startup(false)
	for range 7 {
		h := s.untagged(fw, rdmap.OpSend)
		h.Rsvd = 1
		s.segment(fw, h, nil)
	}
	r := run(t, s.close())
	if c := r.conns[0]; !slices.Equal(r.findings, []string{"note reserved-bits"}) || c.Findings[decode.Note] != 7 || c.Suppressed["reserved-bits"] != 6 {
		t.Errorf("%q, %v, %v", r.texts, c.Findings, c.Suppressed)
	}
}
