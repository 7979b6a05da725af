package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// Proves D10, D41: a ULPDU too short for its header is an error without a header to give back.
func TestShortULPDU(t *testing.T) {
	for _, tt := range []struct {
		n     int  // bytes
		first byte // the control byte
		short bool
	}{
		{0, 0, true},
		{1, 0xc1, true}, {1, 0x41, true},
		{13, 0xc1, true}, {14, 0xc1, false},
		{13, 0x41, true}, {14, 0x41, true}, {17, 0x41, true}, {18, 0x41, false},
	} {
		p := responder(t)
		p.receive(1)
		b := write(0, 0, nil).ulpdu()
		if tt.first == 0x41 {
			b = send(1, nil).ulpdu()
		}
		p.sendRaw(b[:min(tt.n, len(b))])
		if !tt.short {
			p.wantNothing()
			p.wantState(RTS)
			continue
		}
		p.wantTerminate(terminate(rdmap.CodeDDPLocalCatastrophic))
	}
}

// damage changes the bytes of one FPDU.
type damage struct {
	name string
	crc  bool
	f    func(b []byte)
	ok   bool
	says string // what the error says beside the place, of what the peer does
}

var damages = []damage{
	{"none", true, func([]byte) {}, true, ""},
	{"CRC inverted", true, func(b []byte) { b[len(b)-1] ^= 0xff }, false, "damaged on the way"},
	{"CRC zero", true, func(b []byte) { clear(b[len(b)-4:]) }, false,
		"it must send CRCs if either side declared C=1, or both must declare C=0"},
	{"CRC in the other byte order", true, func(b []byte) {
		crc := b[len(b)-4:]
		binary.BigEndian.PutUint32(crc, binary.LittleEndian.Uint32(crc))
	}, false, "the peer must send the CRC least significant byte first"},
	{"pad not zero, CRC as for zeros", true, func(b []byte) { b[len(b)-5] = 1 }, false, ""},
	{"pad not zero, CRC right", true, func(b []byte) {
		b[len(b)-5] = 1
		copy(b[len(b)-4:], layout.AppendCRC(nil, layout.CRC32C(0, b[:len(b)-4])))
	}, true, ""},
	{"CRC not zero, and not in use", false, func(b []byte) { b[len(b)-1] = 1 }, true, ""},
	{"pad not zero, CRC not in use", false, func(b []byte) { b[len(b)-5] = 1 }, true, ""},
}

// Proves D06, D34, Q16: an FPDU that its CRC condemns is not delivered and is
// reported upward with MPA's own code, 2; TCP stays for the Terminate.
func TestDamage(t *testing.T) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			p := responder(t, func(s *setup) { s.CRC = d.crc })
			buf := make([]byte, 8)
			r := p.region(buf, remoteAll)
			p.send(write(r.STag(), 7, []byte("x")))
			at := p.w.Offset()
			b := p.w.Append(nil, write(r.STag(), 0, []byte("abcde")).ulpdu()) // 19 bytes, 3 of pad
			d.f(b)
			p.sendBytes(b)
			if d.ok {
				p.wantNothing()
				p.wantState(RTS)
				return
			}
			p.wantTerminate(terminate(rdmap.CodeMPACRC))
			f := p.wantCause(rdmap.CodeMPACRC, false)
			if where := fmt.Sprintf("at stream offset %d: bad CRC at byte %d of the FPDU",
				at, len(b)-4); f.Err == nil || f.Offset != at || !strings.Contains(f.Error(), where) {
				t.Errorf("%+v, want it %s", f, where)
			}
			if !strings.Contains(f.Error(), d.says) {
				t.Errorf("%q, want %q in it", f.Error(), d.says)
			}
			if string(buf) != "\x00\x00\x00\x00\x00\x00\x00x" {
				t.Errorf("%q", buf)
			}
		})
	}
}

// Proves D06: a bit flipped anywhere in an FPDU keeps it from DDP, or has the
// reader wait for bytes that do not come.
func TestFlippedBits(t *testing.T) {
	for bit := range 8 * 28 {
		p := responder(t)
		buf := make([]byte, 8)
		r := p.region(buf, remoteAll)
		b := p.w.Append(nil, write(r.STag(), 0, []byte("abcdefgh")).ulpdu())
		b[bit/8] ^= 1 << (bit % 8)
		p.sendBytes(b)
		if !bytes.Equal(buf, make([]byte, 8)) {
			t.Fatalf("bit %d: placed", bit)
		}
	}
}

// Proves Q16: a marker that disagrees with the length is code 3.
func TestMarkerError(t *testing.T) {
	p := responder(t, func(s *setup) { s.MarkersReceive, s.CRC = true, false })
	b := p.w.Append(nil, send(1, nil).ulpdu())
	b[3] = 4
	p.sendBytes(b)
	p.wantNothing() // a Responder that has heard nothing valid must not send
	p.wantCause(rdmap.CodeMPAMarker, false)

	p = responder(t, func(s *setup) { s.MarkersReceive = true })
	p.receive(1)
	p.send(send(1, nil))
	b = p.w.Append(nil, send(2, numbered(600)).ulpdu())
	at := 512 - 28 // the first FPDU has a marker in front
	b[at+3] ^= 8
	copy(b[len(b)-4:], layout.AppendCRC(nil, layout.CRC32C(0, b[:len(b)-4])))
	p.sendBytes(b)
	p.wantTerminate(terminate(rdmap.CodeMPAMarker))
}

// Proves Q11, Q16: an error in the first FPDU that a Responder receives is not
// answered, not even with a Terminate: nothing was validated. A FIN would look like an orderly end, so the connection
// is reset.
func TestErrorBeforeResponderMaySend(t *testing.T) {
	p := responder(t)
	p.receive(1)
	p.post(work(2, OpSend))
	b := p.w.Append(nil, send(1, nil).ulpdu())
	b[len(b)-1] ^= 1
	p.sendBytes(b)
	p.wantCause(rdmap.CodeMPACRC, false)
	p.completion(flushed(2, OpSend), flushed(1, OpReceive))
	p.wantNotices()
	p.wantNothing()
	p.wantState(Error)
	p.wantLLP(Reset)
}

// Proves Q11: nor may it send when the consumer, a timeout or a close wants it to.
func TestResponderIsSilent(t *testing.T) {
	for name, f := range map[string]func(p *peer){
		"a Send":      func(p *peer) { p.post(work(1, OpSend)) },
		"a Read":      func(p *peer) { p.post(work(1, OpRead)) },
		"Terminate":   func(p *peer) { p.modify(Terminate) },
		"close":       func(p *peer) { p.closeOrderly() },
		"half close":  func(p *peer) { p.Machine.BeginHalfClose(p.clock); p.collectOutputs() },
		"time passes": func(p *peer) { p.advance(1 << 40) },
	} {
		t.Run(name, func(t *testing.T) {
			p := responder(t, func(s *setup) { s.Nudge = 1 })
			f(p)
			if p.Machine.Pending() {
				t.Error("pending")
			}
			p.wantNothing()
		})
	}
}

// Proves Q11: one valid FPDU, even one in error, allows it to send.
func TestResponderMaySend(t *testing.T) {
	p := responder(t)
	p.receive(1)
	p.post(work(2, OpSend))
	p.wantNothing()
	p.send(send(1, nil))
	p.want(send(1, nil))

	p = responder(t)
	p.send(send(7, nil))
	p.wantTerminate(terminateFor(0x1203, send(7, nil)))

	p = responder(t, func(s *setup) { s.SendFirst = true }) // where the dialect lets it
	p.post(work(2, OpSend))
	p.want(send(1, nil))
}

// Proves D04, R06: FPDUs of any size, one or several in a delivery, each once.
func TestFPDUSizes(t *testing.T) {
	for _, n := range []int{1, 1426, 1430, 4100, 4101, 4102, 4103, 4120, 16 << 10, layout.MaxMULPDU - 14,
		layout.MaxULPDULength - 14} {
		for _, marked := range []bool{false, true} {
			p := responder(t, func(s *setup) { s.MarkersReceive = marked })
			buf := make([]byte, 2*n)
			r := p.region(buf, remoteAll)
			b := p.w.Append(nil, write(r.STag(), 0, numbered(n)).ulpdu())
			b = p.w.Append(b, write(r.STag(), uint64(n), numbered(n)).ulpdu())
			p.sendBytes(b)
			if !bytes.Equal(buf, append(numbered(n), numbered(n)...)) || len(p.unread) > 0 {
				t.Errorf("%d bytes, markers %t: not in place", n, marked)
			}
			if s := p.Machine.Stats(); s.RecvFPDUs != 2 || s.RecvStream != uint64(len(b)) ||
				s.Received[rdmap.OpWrite].Bytes != uint64(2*n) {
				t.Errorf("%d bytes: %+v", n, s)
			}
		}
	}
}

// Every pad, and the stream split at every byte of it and of the CRC.
//
// Proves R06: no bytes reach DDP twice, wherever the stream is split.
func TestPadSplit(t *testing.T) {
	for n := range 5 {
		p := responder(t)
		buf := make([]byte, 5)
		r := p.region(buf, memory.RemoteWrite)
		b := p.w.Append(nil, write(r.STag(), 0, numbered(n)).ulpdu())
		for cut := range b {
			p := responder(t, func(s *setup) { s.Memory.Table = p.table })
			p.input(b[:cut])
			p.input(b[cut:])
			if p.Machine.Stats().RecvFPDUs != 1 || !bytes.Equal(buf[:n], numbered(n)) {
				t.Errorf("%d bytes, split at %d", n, cut)
			}
			clear(buf)
		}
	}
}

// How many bytes the reader wants at once is told.
func TestNeed(t *testing.T) {
	p := responder(t)
	b := p.w.Append(nil, send(1, numbered(100)).ulpdu())
	if n := p.Machine.Need(); n < 2 || n > 8 {
		t.Errorf("%d bytes for the smallest FPDU", n)
	}
	p.input(b[:2])
	if p.Machine.Need() != len(b) {
		t.Errorf("%d bytes, want %d", p.Machine.Need(), len(b))
	}
}
