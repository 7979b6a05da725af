package engine

import (
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// An Initiator that does not take our Reply sends a Terminate in place of a first
// message: what it may not have liked is part of the error, also where siw sends it
// without a CRC. After a first FPDU nothing is guessed.
func TestReplyDisliked(t *testing.T) {
	enhanced := func(s *setup) { s.CRC, s.Enhanced, s.PeerIRD, s.PeerORD = true, true, 3, 4 }
	offered := func(kinds mpa.RTR) func(*setup) { return func(s *setup) { s.OfferedRTR = kinds } }
	const (
		byRTR    = "the peer offers RTR by write and we have read"
		byDepths = "the peer asked for IRD 3 and ORD 4 and may not take our Reply's"
	)
	for _, c := range []struct {
		name   string
		change []func(*setup)
		later  bool
		want   string
	}{
		{"no common RTR", []func(*setup){enhanced, p2p(mpa.RTRRead), offered(mpa.RTRWrite)}, false, byRTR},
		{"a common RTR", []func(*setup){enhanced, p2p(mpa.RTRRead),
			offered(mpa.RTRWrite | mpa.RTRRead)}, false, byDepths},
		{"client-server", []func(*setup){enhanced}, false, byDepths},
		{"second FPDU", []func(*setup){enhanced, p2p(mpa.RTRRead), offered(mpa.RTRWrite)}, true, ""},
		{"revision 1", []func(*setup){func(s *setup) { s.CRC = true }}, false, ""},
	} {
		for _, crc := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				p := responder(t, c.change...)
				if c.later {
					p.send(write(1, 0, nil))
				}
				code, b := rdmap.CodeMPANoMatchingRTR, p.w.Append(nil, terminate(rdmap.CodeMPANoMatchingRTR).ulpdu())
				if !crc {
					code = rdmap.CodeMPACRC
					clear(b[len(b)-4:])
				}
				p.sendBytes(b)
				got := p.wantCause(code, crc).Reason
				if crc && got != c.want || !strings.HasSuffix(got, c.want) || c.want == "" &&
					strings.Contains(got, "a Terminate without a CRC") {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		}
	}
}

// A Terminate that nobody knows the reason of comes with what its code may mean, with the
// memory that it names. One that cannot be read says only that.
func TestTerminateAdvice(t *testing.T) {
	bad := write(0x77, 0x1234, []byte("abc"))
	siw := message(rdmap.OpTerminate, append([]byte{0x11, 0x01, 0x03, 0, 0, 3}, bad.H.Append(nil)...))
	const leaves = "the Write leaves the memory that the peer has registered (STag 0x00000077, TO 0x1234)"
	for _, c := range []struct {
		got  fpdu
		code rdmap.Code
		want string
	}{
		{terminateFor(rdmap.CodeDDPBaseOrBounds, bad), rdmap.CodeDDPBaseOrBounds, leaves},
		{siw, rdmap.CodeDDPBaseOrBounds, "laid out as Linux's siw does, Layer and EType swapped; " + leaves},
		{terminateFor(rdmap.CodeDDPMessageTooLong, send(1, nil)), rdmap.CodeDDPMessageTooLong,
			"the Send is longer than the receive that the peer has posted for it: send less, or let it post longer ones"},
		{terminateFor(rdmap.CodeUnexpectedOpcode, bad), rdmap.CodeUnexpectedOpcode, ""},
	} {
		p := initiator(t)
		p.send(c.got)
		if f := p.wantCause(c.code, true); f.Reason != c.want {
			t.Errorf("got %q, want %q", f.Reason, c.want)
		}
		if n := p.Machine.Stats().TerminatesRecv[c.code]; n != 1 {
			t.Errorf("%v: %d Terminates received", c.code, n)
		}
	}

	p := initiator(t)
	cut := terminateFor(rdmap.CodeDDPBaseOrBounds, write(0x77, 0x1234, []byte("abc")))
	cut.Payload = cut.Payload[:8]
	p.send(cut)
	if f := p.wantCause(rdmap.CodeDDPBaseOrBounds, true); !strings.HasPrefix(f.Reason,
		"its Terminate cannot be read") || strings.Contains(f.Reason, "leaves the memory") {
		t.Error(f.Reason)
	}

	p = initiator(t)
	p.send(send(1, []byte("abc"))) // for which there is no receive
	if f := p.wantCause(rdmap.CodeDDPInvalidMSNNoBuffer, false); !strings.Contains(f.Reason,
		": no receive is posted; set QPConfig.Receives") {
		t.Error(f.Reason)
	}
	if n := p.Machine.Stats().TerminatesSent[rdmap.CodeDDPInvalidMSNNoBuffer]; n != 1 {
		t.Errorf("%d Terminates sent", n)
	}

	p = initiator(t)
	p.receive(1)
	p.send(send(1, []byte("abc")))
	if f := p.wantCause(rdmap.CodeDDPMessageTooLong, false); strings.Contains(f.Reason, "no receive") {
		t.Error(f.Reason)
	}
}

// An Initiator that got the depths that it asked for, and ends the connection for a reason of its own, is not said to
// dislike them.
func TestReplyAsAsked(t *testing.T) {
	for depth, guessed := range map[mpa.Depth]bool{8: false, 9: true} {
		p := responder(t, func(s *setup) { s.Enhanced, s.PeerIRD, s.PeerORD, s.IRD, s.ORD = true, depth, depth, 8, 8 })
		p.send(terminate(rdmap.CodeLocalCatastrophic))
		got := p.wantCause(rdmap.CodeLocalCatastrophic, true).Reason
		if strings.Contains(got, "may not take our Reply's") != guessed ||
			!strings.Contains(got, "for a reason of its own, such as memory") {
			t.Errorf("it asked for %v: %q", depth, got)
		}
	}
	for code, ird := range map[rdmap.Code]mpa.Depth{rdmap.CodeLocalCatastrophic: 9, rdmap.CodeUnexpectedOpcode: 8} {
		p := responder(t, func(s *setup) { s.Enhanced, s.PeerIRD, s.PeerORD, s.IRD, s.ORD = true, ird, 8, 8, 8 })
		p.send(terminate(code))
		if got := p.wantCause(code, true).Reason; !strings.Contains(got, "may not take our Reply's") {
			t.Errorf("it asked for IRD %v: %q", ird, got)
		}
	}
}

// A refused Read is told with the memory that it was to read, as a refused Write is.
func TestReadRefusalNamesMemory(t *testing.T) {
	p := initiator(t)
	r := rdmap.ReadRequest{Size: 100, SrcSTag: 0x77, SrcTO: 0x1234}
	refused := rdmap.TerminateFor(rdmap.CodeBaseOrBounds,
		&ddp.Segment{Header: ddp.Header{Last: true, QN: rdmap.QNRead, MSN: 1, Version: 1,
			RsvdULP: rdmap.Control(1, rdmap.OpReadRequest)}, Payload: r.Append(nil)})
	p.send(message(rdmap.OpTerminate, refused.Append(nil)))
	const want = "the Read leaves the memory that the peer has registered (STag 0x00000077, TO 0x1234, 100 bytes)"
	if f := p.wantCause(rdmap.CodeBaseOrBounds, true); f.Reason != want {
		t.Errorf("got %q, want %q", f.Reason, want)
	}
}

// A Terminate is read whole, however long it is and wherever markers stand in it.
func TestLongTerminate(t *testing.T) {
	p := initiator(t, func(s *setup) { s.MarkersReceive = true })
	long := terminateFor(rdmap.CodeDDPBaseOrBounds, write(0x77, 0x1234, []byte("abc")))
	long.Payload = append(long.Payload, make([]byte, 5000)...)
	p.send(long)
	if f := p.wantCause(rdmap.CodeDDPBaseOrBounds, true); !strings.Contains(f.Reason, "STag 0x00000077") {
		t.Error(f.Reason)
	}
}

// A Terminate in answer to the Rtr frame: siw has taken that for a broken FPDU.
func TestTerminateForRtrFrame(t *testing.T) {
	for dialect, hint := range map[mpa.Dialect]bool{mpa.DialectRtr: true, mpa.DialectRFC5044: false} {
		p := initiator(t, func(s *setup) { s.Dialect = dialect })
		p.send(terminate(rdmap.CodeMPACRC))
		if f := p.wantCause(rdmap.CodeMPACRC, true); strings.Contains(f.Reason, "Rtr frame") != hint {
			t.Errorf("%v: %v", dialect, f)
		}
	}
}
