package peersim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// version is that of DDP and RDMAP: all peers here are IETF RNICs.
const version = 1

// maxPayload is what a peer puts into one FPDU, in bytes: it fits an Ethernet's.
const maxPayload = 1400

// A Session is a connection in Full Operation. It is used by one goroutine.
type Session struct {
	Request, Reply mpa.StartupFrame
	// RTR is the indication that was sent or received; 0 is none.
	RTR mpa.RTR
	// HoldReads keeps Read Requests unanswered until AnswerReads. More than the IRD
	// end the connection.
	HoldReads bool

	peer    *peer
	inbox   [][]byte
	part    []byte // of a Send that is not whole
	held    []rdmap.ReadRequest
	reads   int // ours that wait for their Response
	maySend bool
	msn     struct{ send, read uint32 } // to be received
}

// session begins Full Operation: the C of both frames decides on CRCs, and the M of
// the other end's on markers.
func (p *peer) session(request, reply mpa.StartupFrame) *Session {
	theirs := reply
	if p.role == mpa.RoleResponder {
		theirs = request
	}
	p.Operate(script.Terms{MarkersSend: theirs.M(), CRC: request.C() || reply.C(), Version: version})
	s := &Session{Request: request, Reply: reply, peer: p}
	s.msn.send, s.msn.read = ddp.FirstMSN, ddp.FirstMSN
	return s
}

// Send sends a message. A Responder first waits for the FPDU that lets it send, unless
// the peer sends early.
func (s *Session) Send(b []byte) error {
	for !s.maySend {
		if err := s.step(); err != nil {
			return err
		}
	}
	h := s.peer.Header(rdmap.OpSend)
	var out []byte
	for {
		n := min(len(b)-int(h.MO), maxPayload)
		h.Last = int(h.MO)+n == len(b)
		out = append(out, s.peer.Segment(h, b[h.MO:int(h.MO)+n])...)
		if h.MO += uint32(n); h.Last {
			return s.peer.Send(out)
		}
	}
}

// Receive returns the next message. The error is io.EOF after the other end has closed,
// and a *Terminated after it has sent a Terminate.
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

// Echo sends one message back, and waits for the other end to close.
func (s *Session) Echo() error {
	text, err := s.Receive()
	if err == nil {
		err = s.Send(text)
	}
	if err != nil {
		return err
	}
	if _, err := s.Receive(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}

// Ask sends a message, and wants it to come back.
func (s *Session) Ask(message []byte) error {
	if err := s.Send(message); err != nil {
		return err
	}
	got, err := s.Receive()
	if err == nil && !bytes.Equal(got, message) {
		err = errors.New("another message came back")
	}
	return err
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
		out = append(out, s.peer.Tagged(rdmap.OpReadResponse, r.SinkSTag, r.SinkTO, nil)...)
	}
	s.held = nil
	return s.peer.Send(out)
}

// Read sends n zero-length Reads at once, and waits for their Responses.
func (s *Session) Read(n int) error {
	var out []byte
	for range n {
		out = append(out, s.peer.EmptyRead()...)
		s.reads++
	}
	if err := s.peer.Send(out); err != nil {
		return err
	}
	for s.reads > 0 {
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

// SetReadDeadline bounds the waits of the session.
func (s *Session) SetReadDeadline(t time.Time) error { return s.peer.Conn().SetReadDeadline(t) }

// Terminate sends a Terminate without headers and closes the connection.
func (s *Session) Terminate(code rdmap.Code) error {
	t := rdmap.Terminate{Code: code}
	b := t.Append(nil)
	if s.peer.SwapsTerminate {
		b[0] = b[0]<<4 | b[0]>>4
	}
	err := s.peer.Send(s.peer.Message(rdmap.OpTerminate, b))
	s.peer.Leave(patience)
	return err
}

// Close closes the connection by FIN, and waits for that of the other end.
func (s *Session) Close() error {
	s.peer.Leave(patience)
	return nil
}

// A Terminated is a Terminate from the other end.
type Terminated struct{ rdmap.Terminate }

// Error gives the Terminate as it reads.
func (t *Terminated) Error() string { return "peersim: got " + t.Terminate.String() }

// next waits for a segment. The error is io.EOF at an end between FPDUs, and
// io.ErrUnexpectedEOF at one within an FPDU.
func (s *Session) next() (ddp.Segment, error) {
	seg, err := s.peer.NextSegment(time.Time{})
	var missing *script.MissingError
	if errors.As(err, &missing) && missing.End == script.FIN && missing.Got > 0 {
		err = io.ErrUnexpectedEOF
	}
	return seg, err
}

// refuse ends the connection because of something received.
func (s *Session) refuse(code rdmap.Code, format string, args ...any) error {
	err := s.Terminate(code)
	return &Refusal{Peer: s.peer.Name, Role: s.peer.role, End: peers.Closes,
		Why: fmt.Sprintf(format, args...), Err: err}
}
