package probe_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestExtensions finds that our own endpoint knows RFC 7306, whatever it begins with, and asks
// only if that is wanted.
//
// Proves A42.
func TestExtensions(t *testing.T) {
	for _, dialects := range [][]mpa.Dialect{nil, {mpa.DialectRFC5044}} {
		r := responder{dialects: dialects}.probed(t, probe.Config{Extensions: true})
		x := r.Extensions
		if len(x) < 3 {
			t.Fatalf("%v: %+v\n%s", dialects, x, text(t, r))
		}
		if x["unknown_opcode"].Outcome != probe.Terminated {
			t.Errorf("%v: %+v", dialects, x["unknown_opcode"])
		}
		for key, a := range x {
			if (a.Knows == probe.Knows) != (key != "unknown_opcode") {
				t.Errorf("%v: %s: %+v\n%s", dialects, key, a, text(t, r))
			}
		}
		for _, want := range []string{"Atomic Operations",
			"known: terminate: RDMAP/Remote Protection/invalid STag (0x0100)", "Immediate Data"} {
			if !strings.Contains(text(t, r), want) {
				t.Errorf("no %q in\n%s", want, text(t, r))
			}
		}
	}
	if r := (responder{}).probed(t, probe.Config{}); r.Extensions != nil || strings.Contains(text(t, r), "Atomic") {
		t.Errorf("asked without being told to: %+v", r.Extensions)
	}
}

// TestExtensionsOfPeers finds that none of the known peers know them: their scripts have what
// RFC 5040 has.
//
// Proves A42.
func TestExtensionsOfPeers(t *testing.T) {
	for _, b := range peers.All() {
		r := probing(t, probe.Config{Extensions: true}, playing(b, peersim.Consumer{}, func(error) {}))
		for key, a := range r.Extensions {
			if (a.Knows == probe.KnowsNot) != (key != "unknown_opcode") {
				t.Errorf("%s: %s: %+v\n%s", b.Name, key, a, text(t, r))
			}
		}
		if len(r.Extensions) < 3 {
			t.Errorf("%s: %d answers", b.Name, len(r.Extensions))
		}
	}
}

// TestExtensionsOfDeaf asks a responder that says nothing after its Reply: nothing is known then.
func TestExtensionsOfDeaf(t *testing.T) {
	r := probing(t, probe.Config{Extensions: true}, func(c net.Conn) {
		buf := make([]byte, 1024)
		for n, err := c.Read(buf); err == nil; n, err = c.Read(buf) {
			if f, ok := mpa.ParseStartup(buf[:n]); ok == nil && f.Rev() == 1 {
				_, _ = c.Write(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, Rev: 1, C: true}))
			}
		}
	})
	if r.Extensions != nil {
		t.Errorf("%+v", r.Extensions)
	}
}

// responding is a Responder of revision 1 that takes a zero-length Read, and says something to the next message.
func responding(answer func(op rdmap.Opcode, w *mpa.Writer) []byte) func(net.Conn) {
	return func(c net.Conn) {
		l := script.NewLink(c)
		until := time.Now().Add(time.Minute)
		if l.Need(mpa.StartupHeaderLen, until) != nil {
			return
		}
		f := mpa.StartupFrame(l.Take(len(l.Received())))
		if f.Key() != mpa.KeyRequest || f.Rev() != 1 || f.S() || f.M() {
			return
		}
		_ = l.Send(mpa.AppendStartup(nil, &mpa.StartupFields{Key: mpa.KeyReply, Rev: 1, C: true}))
		l.Operate(script.Terms{CRC: true, Version: 1})
		if s, err := l.NextSegment(until); err != nil || rdmap.OpcodeOf(&s.Header) != rdmap.OpReadRequest {
			return
		}
		w := mpa.NewWriter(false, true)
		_ = l.Send(w.Append(nil, ulpdu(rdmap.OpReadResponse, func(h *ddp.Header) { h.STag = script.RTRSTag }, nil)))
		if s, err := l.NextSegment(until); err == nil {
			_ = l.Send(answer(rdmap.OpcodeOf(&s.Header), &w))
		}
	}
}

// ulpdu is a message of one segment.
func ulpdu(op rdmap.Opcode, change func(*ddp.Header), payload []byte) []byte {
	h := op.Header(1)
	h.Last = true
	if !h.Tagged {
		h.MSN = ddp.FirstMSN
	}
	change(&h)
	return append(h.Append(nil), payload...)
}

// terminated is a Terminate in an FPDU.
func terminated(w *mpa.Writer, code rdmap.Code) []byte {
	t := rdmap.Terminate{Code: code}
	return w.Append(nil, ulpdu(rdmap.OpTerminate, func(*ddp.Header) {}, t.Append(nil)))
}

// TestExtensionsUnclear asks responders whose answers tell little.
//
// Proves A42.
func TestExtensionsUnclear(t *testing.T) {
	const yes, no, unsure = probe.Knows, probe.KnowsNot, probe.KnowsUnsure
	for _, c := range []struct {
		name               string
		answer             func(op rdmap.Opcode, w *mpa.Writer) []byte
		atomics, immediate probe.Knowledge
	}{
		{"it looks at MSNs before opcodes", func(op rdmap.Opcode, w *mpa.Writer) []byte {
			if op == rdmap.OpAtomicRequest {
				return terminated(w, rdmap.CodeUnexpectedOpcode)
			}
			return terminated(w, rdmap.CodeDDPInvalidMSNRange)
		}, no, unsure},
		{"one code for everything", func(_ rdmap.Opcode,
			w *mpa.Writer) []byte {
			return terminated(w, rdmap.CodeCatastrophicStream)
		}, unsure, unsure},
		{"it says nothing", func(rdmap.Opcode, *mpa.Writer) []byte { return nil }, unsure, unsure},
		{"no FPDU", func(rdmap.Opcode, *mpa.Writer) []byte { return make([]byte, 8) }, unsure, unsure},
		{"no DDP segment", func(_ rdmap.Opcode, w *mpa.Writer) []byte { return w.Append(nil, []byte{1}) }, unsure,
			unsure},
		{"no whole Terminate", func(_ rdmap.Opcode, w *mpa.Writer) []byte {
			return w.Append(nil, ulpdu(rdmap.OpTerminate, func(*ddp.Header) {}, []byte{2, 6}))
		}, unsure, unsure},
		{"it carries out what it is asked for at STag 0", func(op rdmap.Opcode, w *mpa.Writer) []byte {
			r := rdmap.AtomicResponse{}
			if op == rdmap.OpAtomicRequest {
				return w.Append(nil, ulpdu(rdmap.OpAtomicResponse, func(*ddp.Header) {}, r.Append(nil)))
			}
			return terminated(w, rdmap.CodeUnexpectedOpcode)
		}, yes, no},
	} {
		x := probing(t, probe.Config{Extensions: true}, responding(c.answer)).Extensions
		if x == nil || x["atomics"].Knows != c.atomics || x["immediate_data"].Knows != c.immediate {
			t.Errorf("%s: %+v", c.name, x)
		}
	}
}
