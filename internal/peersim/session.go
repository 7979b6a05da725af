package peersim

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// version is that of DDP and RDMAP: all peers here are of the IETF's kind.
const version = 1

// maxPayload is what a peer puts into one FPDU, in octets: it fits an Ethernet's.
const maxPayload = 1400

// A Session is a connection in Full Operation. It is used by one goroutine.
type Session struct {
	Request, Reply mpa.StartupFrame
	// RTR is the indication that was sent or received; 0 is none.
	RTR mpa.RTR
	// HoldReads keeps Read Requests unanswered until AnswerReads. More than the IRD
	// end the connection.
	HoldReads bool

	conn    net.Conn
	peer    *peer
	tx      mpa.Writer
	rx      mpa.Reader
	in      []byte // read and not looked at
	inbox   [][]byte
	part    []byte // of a Send that is not whole
	held    []rdmap.ReadRequest
	reads   int // ours that wait for their Response
	maySend bool
	msn     struct{ send, recv, read, ask uint32 }
}

// session begins Full Operation: ours and the peer's C decide on CRCs, the peer's M
// on markers.
func (p *peer) session(peer mpa.StartupFrame, c, markers bool) *Session {
	crc := c || peer.C()
	s := &Session{conn: p.conn, peer: p, tx: mpa.NewWriter(markers, crc), rx: mpa.NewReader(false, crc), in: p.behind}
	s.msn.send, s.msn.recv, s.msn.read, s.msn.ask = ddp.FirstMSN, ddp.FirstMSN, ddp.FirstMSN, ddp.FirstMSN
	return s
}

// IRD and ORD return the depths in effect.
func (s *Session) IRD() uint16 { return s.peer.ird }

// ORD is described with IRD.
func (s *Session) ORD() uint16 { return s.peer.ord }

// Send sends a message. A Responder waits for the first FPDU before it sends one
// itself, unless the peer is one that does not.
func (s *Session) Send(b []byte) error {
	for !s.maySend {
		if err := s.step(); err != nil {
			return err
		}
	}
	h := rdmap.OpSend.Header(version)
	h.MSN = s.msn.send
	s.msn.send++
	var out []byte
	for {
		n := min(len(b)-int(h.MO), maxPayload)
		h.Last = int(h.MO)+n == len(b)
		out = s.tx.Append(out, h.Append(nil), b[h.MO:int(h.MO)+n])
		if h.MO += uint32(n); h.Last {
			return s.write(out)
		}
	}
}

// Receive returns the next message. The error is io.EOF when the other end has
// closed, and a *Terminated when it has sent a Terminate.
func (s *Session) Receive() ([]byte, error) {
	for len(s.inbox) == 0 {
		if err := s.step(); err != nil {
			return nil, err
		}
	}
	b := s.inbox[0]
	s.inbox = s.inbox[1:]
	return b, nil
}

// AwaitReads waits until n Read Requests are held.
func (s *Session) AwaitReads(n int) error {
	for len(s.held) < n {
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

// AnswerReads answers those that are held.
func (s *Session) AnswerReads() error {
	var out []byte
	for _, r := range s.held {
		h := rdmap.OpReadResponse.Header(version)
		h.Last, h.STag, h.TO = true, r.SinkSTag, r.SinkTO
		out = s.tx.Append(out, h.Append(nil))
	}
	s.held = nil
	return s.write(out)
}

// Read sends n zero-length Reads at once, and waits for their Responses.
func (s *Session) Read(n int) error {
	var out []byte
	for range n {
		out = append(out, s.readRequest()...)
	}
	if err := s.write(out); err != nil {
		return err
	}
	return s.awaitResponses()
}

// SetReadDeadline bounds the waits of the session.
func (s *Session) SetReadDeadline(t time.Time) error { return s.conn.SetReadDeadline(t) }

// Terminate sends a Terminate without headers and closes the connection.
func (s *Session) Terminate(code rdmap.Code) error {
	t := rdmap.Terminate{Code: code}
	b := t.Append(nil)
	if s.peer.SwapsTerminate {
		b[0] = b[0]<<4 | b[0]>>4
	}
	h := rdmap.OpTerminate.Header(version)
	h.Last, h.MSN = true, ddp.FirstMSN
	err := s.write(s.tx.Append(nil, h.Append(nil), b))
	closeInOrder(s.conn)
	return err
}

// Close closes the connection by FIN, and waits for the other end's.
func (s *Session) Close() error {
	closeInOrder(s.conn)
	return nil
}

// A Terminated is a Terminate from the other end.
type Terminated struct{ rdmap.Terminate }

// Error gives the Terminate as it reads.
func (t *Terminated) Error() string { return "peersim: got " + t.Terminate.String() }

func (s *Session) write(b []byte) error {
	_, err := s.conn.Write(b)
	return err
}

// next reads one segment.
func (s *Session) next() (seg ddp.Segment, err error) {
	for {
		f, n, err := s.rx.Next(s.in)
		if err != nil {
			return seg, err
		}
		if n > 0 {
			s.in = s.in[n:]
			return ddp.Parse(f.ULPDU)
		}
		b := make([]byte, 64<<10)
		k, err := s.conn.Read(b)
		if k == 0 && err != nil {
			return seg, s.ended(err)
		}
		s.in = append(s.in[:len(s.in):len(s.in)], b[:k]...)
	}
}

// ended tells an end between FPDUs from one within.
func (s *Session) ended(err error) error {
	if errors.Is(err, io.EOF) && len(s.in) > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// refuse ends the connection because of something received.
func (s *Session) refuse(code rdmap.Code, format string, args ...any) error {
	err := s.Terminate(code)
	return &Refusal{Peer: s.peer.Name, Role: s.peer.role, End: Closes, Why: fmt.Sprintf(format, args...), Err: err}
}
