package page_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

const (
	forth = capture.Forward
	back  = capture.Backward
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A script tells a page of one connection, as package decode would.
type script struct {
	page   *page.Page
	conn   *decode.Connection
	ends   [2]uint64
	packet uint64
	msn    [2]uint32
	tell   decode.Consumer
}

// newScript begins a connection, and its TCP handshake.
func newScript(p *page.Page, number int) *script {
	tcp := &capture.Connection{Number: number}
	tcp.Halves[forth].Addr = netip.MustParseAddrPort("10.0.0.1:40000")
	tcp.Halves[back].Addr = netip.MustParseAddrPort("[2001:db8::2]:4791")
	tcp.First.Time = epoch
	s := &script{page: p, tell: p, conn: &decode.Connection{
		TCP: tcp, Dialect: mpa.DialectRFC6581, Revisions: [2]int{2, 2}, Agreed: true, CRC: true,
		Markers: [2]bool{true, false}, Version: 1,
	}}
	s.tell.Found(s.conn)
	s.segment(forth, capture.SYN, 0)
	s.segment(back, capture.SYN|capture.ACK, 0)
	return s
}

// stamp is the next packet's.
func (s *script) stamp() capture.Stamp {
	s.packet++
	return capture.Stamp{Number: s.packet, Time: epoch.Add(time.Duration(s.packet) * 7 * time.Microsecond)}
}

// segment tells of a TCP segment at the end of the direction.
func (s *script) segment(d capture.Dir, flags capture.Flags, length int) capture.Stamp {
	order := capture.OrderNext
	if length == 0 {
		order = capture.OrderEmpty
	}
	at := s.stamp()
	s.tell.Segment(s.conn, &decode.Segment{Packet: at, Dir: d, Flags: flags, Offset: s.ends[d], Length: length,
		Captured: length, Order: order})
	return at
}

// startup tells of an MPA Request with private data, and its Reply.
func (s *script) startup(private []byte) {
	key := [2]string{mpa.KeyRequest, mpa.KeyReply}
	for _, d := range []capture.Dir{forth, back} {
		b := mpa.AppendStartup(nil, &mpa.StartupFields{Key: key[d], C: true, Rev: 2, PrivateData: private})
		at := s.segment(d, capture.ACK|capture.PSH, len(b))
		frame := decode.FrameRequest
		if d == back {
			frame = decode.FrameReply
		}
		s.tell.Startup(s.conn, &decode.Startup{
			Frame: frame, Dir: d, Offset: s.ends[d], Size: len(b), First: at, Last: at, Bytes: b,
			Fields: mpa.StartupFrame(b), PrivateData: private,
		})
		s.ends[d] += uint64(len(b))
	}
}

// fpdu tells of an FPDU in a TCP segment of its own.
func (s *script) fpdu(d capture.Dir, op rdmap.Opcode, payload int) *decode.FPDU {
	g := ddp.Segment{Payload: make([]byte, payload)}
	g.Last, g.STag, g.TO = true, 0xabcd0001, 0x7fff_0000_0000+s.ends[d]
	g.Tagged = op == rdmap.OpWrite || op == rdmap.OpReadResponse
	if !g.Tagged {
		s.msn[d]++
		g.STag, g.TO, g.MSN = 0, 0, s.msn[d]
	}
	length := g.Header.Len() + payload
	f := &decode.FPDU{
		Dir: d, Offset: s.ends[d], Length: length, CRC: decode.CRCRight, Begins: true, Ends: true,
		HasSegment: true, Segment: g, Op: op, ULPDU: make([]byte, length),
	}
	if op == rdmap.OpReadRequest {
		f.ReadRequest = &rdmap.ReadRequest{SinkSTag: 7, SinkTO: 1 << 40, Size: 4096, SrcSTag: 9, SrcTO: 1<<63 + 5}
	}
	size := layout.ContentLen(f.Length) // the page takes offsets as it is told them: markers need no room here
	f.End = f.Offset + uint64(size)
	if s.conn.Markers[d] {
		for at := f.Offset + uint64(layout.NextMarker(f.Offset)); at < f.End; at += layout.MarkerInterval {
			f.Markers = append(f.Markers, decode.Marker{Offset: at, FPDUPTR: uint16(at - f.Offset), Valid: true})
		}
	}
	f.First = s.segment(d, capture.ACK, size)
	f.Last = f.First
	s.ends[d] = f.End
	return f
}

// send is fpdu, and tells of it.
func (s *script) send(d capture.Dir, op rdmap.Opcode, payload int) *decode.FPDU {
	f := s.fpdu(d, op, payload)
	s.tell.FPDU(s.conn, f)
	return f
}

// finding tells of a finding at an offset.
func (s *script) finding(severity decode.Severity, d capture.Dir, offset uint64, text string) {
	s.conn.Findings[severity]++
	s.tell.Finding(s.conn, &decode.Finding{
		Severity: severity, Name: "crc-wrong", ID: "F04", Dir: d, Offset: offset,
		Packet: capture.Stamp{Number: s.packet, Time: epoch}, Text: text, Advice: "look at the sender",
	})
}

// finish ends the connection.
func (s *script) finish() {
	s.segment(forth, capture.FIN|capture.ACK, 0)
	s.tell.Ended(s.conn)
}

// long tells of a connection with n FPDUs in both directions, and of a finding in FPDUs
// that it returns the rows of.
func (s *script) long(n int) (rows []int) {
	s.startup([]byte("hello"))
	for i := range n {
		d, op, payload := forth, rdmap.OpWrite, 1400
		switch i % 10 {
		case 7:
			d, op, payload = back, rdmap.OpReadRequest, 0
		case 8:
			op, payload = rdmap.OpReadResponse, 1000
		case 9:
			d, op, payload = back, rdmap.OpSend, 40+i%100
		}
		f := s.fpdu(d, op, payload)
		if i%(n/4) == n/8 {
			f.CRC, f.Err = decode.CRCWrong, failure("it is wrong")
			s.finding(decode.Error, f.Dir, f.Offset, fmt.Sprintf("the CRC is wrong in row %d", i))
			rows = append(rows, i)
		}
		if i%1000 == 500 {
			s.tell.Segment(s.conn, &decode.Segment{
				Packet: s.stamp(), Dir: d, Offset: f.Offset, Length: f.Size(),
				Order: capture.OrderRepeat, Repeated: f.Size(),
			})
		}
		s.tell.FPDU(s.conn, f)
	}
	s.finish()
	return rows
}

// written returns the page.
func written(t testing.TB, p shown) []byte {
	t.Helper()
	var b bytes.Buffer
	testrig.Must(t, p.Write(&b))
	return b.Bytes()
}

// failure is an error of an FPDU, in words of the peer's.
func failure(text string) *mpa.Error { return &mpa.Error{Field: "CRC", Reason: text} }
