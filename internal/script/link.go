package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// A Link is one end of a connection that is played by hand. It is used by one
// goroutine. Methods that wait take the time until which they do; with the zero time,
// the connection's own read deadline holds, if it has one.
type Link struct {
	conn  net.Conn
	in    []byte // received and not yet taken
	taken uint64 // bytes
	end   End
	err   error // with which reading ended
	op    *operation
	heard bool // an FPDU of the other end's was taken
	spoke bool // an FPDU was framed
}

// NewLink returns a Link over a connection.
func NewLink(conn net.Conn) *Link { return &Link{conn: conn} }

// Conn returns the connection.
func (l *Link) Conn() net.Conn { return l.conn }

// An End is how the other end's half of a connection has ended.
type End uint8

// The ends.
const (
	Open End = iota // it has not
	FIN             // closed in order
	RST             // reset, or lost
)

// String returns "open", "closed by FIN" or "reset".
func (e End) String() string {
	names := [...]string{"open", "closed by FIN", "reset"}
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("end %d", uint8(e))
}

// EndOf returns what the error of a Read or Write says of the connection. A deadline
// that has passed leaves it Open.
func EndOf(err error) End {
	var timeout net.Error
	switch {
	case err == nil, errors.As(err, &timeout) && timeout.Timeout():
		return Open
	case errors.Is(err, io.EOF):
		return FIN
	}
	return RST
}

// A MissingError is what was waited for and has not come.
type MissingError struct {
	Got int   // bytes of it that have come
	End End   // of the connection; Open: the time was over
	Err error // of the connection
}

// Error says how much has come, and why no more.
func (e *MissingError) Error() string {
	if e.End == Open {
		return fmt.Sprintf("got %d bytes of it in the time: %v", e.Got, e.Err)
	}
	return fmt.Sprintf("got %d bytes of it, and then the connection was %v: %v", e.Got, e.End, e.Err)
}

// Unwrap returns the connection's error.
func (e *MissingError) Unwrap() error { return e.Err }

// Send sends the pieces in one write.
func (l *Link) Send(pieces ...[]byte) error {
	_, err := l.conn.Write(bytes.Join(pieces, nil))
	return err
}

// SendSplit sends each piece in a write of its own. The gap between two keeps TCP
// from joining them; it may be zero.
func (l *Link) SendSplit(gap time.Duration, pieces ...[]byte) error {
	for i, p := range pieces {
		if i > 0 && gap > 0 {
			time.Sleep(gap)
		}
		if err := l.Send(p); err != nil {
			return err
		}
	}
	return nil
}

// Split cuts bytes into pieces of n bytes; the last one may be shorter.
func Split(b []byte, n int) (pieces [][]byte) {
	for len(b) > 0 {
		k := min(n, len(b))
		pieces = append(pieces, b[:k:k])
		b = b[k:]
	}
	return pieces
}

// End returns how the other end's half has ended, as far as Receive has come.
func (l *Link) End() End { return l.end }

// Received returns the bytes that were received and not taken. They stay.
func (l *Link) Received() []byte { return l.in }

// Receive waits for bytes, or for the end of the connection. The error is a
// *MissingError if neither comes in time. At the end of the connection there is none:
// see [Link.End].
func (l *Link) Receive(until time.Time) error {
	if l.end != Open {
		return nil
	}
	if !until.IsZero() {
		if err := l.conn.SetReadDeadline(until); err != nil {
			return err
		}
	}
	var buf [16 << 10]byte
	n, err := l.conn.Read(buf[:])
	l.in = append(l.in, buf[:n]...)
	if n > 0 || err == nil {
		return nil
	}
	if l.end = EndOf(err); l.end == Open {
		return &MissingError{len(l.in), Open, err}
	}
	l.err = err
	return nil
}

// Need waits until n bytes are there. The error is a *MissingError.
func (l *Link) Need(n int, until time.Time) error {
	for len(l.in) < n {
		if l.end != Open {
			return &MissingError{len(l.in), l.end, l.err}
		}
		if err := l.Receive(until); err != nil {
			return err
		}
	}
	return nil
}

// Take takes n of the bytes received; they must be there.
func (l *Link) Take(n int) []byte {
	b := l.in[:n:n]
	l.in = l.in[n:]
	l.taken += uint64(n)
	return b
}

// Taken returns how many bytes of the connection were taken.
func (l *Link) Taken() uint64 { return l.taken }

// Bytes waits for n bytes and takes them.
func (l *Link) Bytes(n int, until time.Time) ([]byte, error) {
	if err := l.Need(n, until); err != nil {
		return nil, err
	}
	return l.Take(n), nil
}

// Frame waits for a whole Request, Reply or Rtr Frame and takes it. Nothing of it is
// judged, and its private data has what PD_Length says, up to 65535 bytes.
func (l *Link) Frame(until time.Time) (mpa.StartupFrame, error) {
	if err := l.Need(mpa.StartupHeaderLen, until); err != nil {
		return nil, err
	}
	n := mpa.StartupHeaderLen + int(mpa.StartupFrame(l.in).PDLength())
	return l.Bytes(n, until)
}

// MaxRest bounds what the other end may still send before its end, in bytes.
const MaxRest = 1 << 20

// ErrEndless is why a Link no longer waits for the end: MaxRest bytes came instead.
var ErrEndless = errors.New("the other end sends without an end")

// Until waits for the end of the connection, whatever comes before, which is kept. The error is a
// *MissingError if the connection does not end in time, or if MaxRest bytes come before its end;
// then it wraps ErrEndless.
func (l *Link) Until(until time.Time) error {
	for l.end == Open {
		if len(l.in) >= MaxRest {
			return &MissingError{len(l.in), Open, ErrEndless}
		}
		if err := l.Receive(until); err != nil {
			return err
		}
	}
	return nil
}

// Rest is Until, and takes all that has come.
func (l *Link) Rest(until time.Time) ([]byte, error) {
	if err := l.Until(until); err != nil {
		return nil, err
	}
	return l.Take(len(l.in)), nil
}

// CloseWrite sends a FIN. The error is errors.ErrUnsupported if the connection cannot
// be closed by halves.
func (l *Link) CloseWrite() error {
	c, ok := l.conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return c.CloseWrite()
}

// CanReset reports whether the connection is one that Reset can end by a RST.
func (l *Link) CanReset() bool {
	switch l.conn.(type) {
	case interface{ Reset() error }, interface{ SetLinger(sec int) error }:
		return true
	}
	return false
}

// Reset ends the connection by a RST, if it is one that can.
func (l *Link) Reset() error {
	if c, ok := l.conn.(interface{ Reset() error }); ok {
		return c.Reset()
	}
	if c, ok := l.conn.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0)
	}
	return l.conn.Close()
}

// Close closes the connection as the system does: by a RST if bytes were not read.
func (l *Link) Close() error { return l.conn.Close() }

// Leave sends a FIN, and waits for that of the other end, so that no byte that was
// not read makes a RST of the end. Then it closes the connection.
func (l *Link) Leave(patience time.Duration) {
	if l.CloseWrite() == nil {
		_ = l.conn.SetReadDeadline(time.Now().Add(patience))
		_, _ = io.CopyN(io.Discard, l.conn, MaxRest)
	}
	_ = l.conn.Close()
}

// CarryTo passes on what was and is received until the end, a FIN as a FIN and a RST
// as a RST. Each piece is handed to keep, if it is not nil, before it is passed on. It
// returns the error with which reading ended, io.EOF after a FIN.
func (l *Link) CarryTo(to net.Conn, keep func([]byte)) error {
	for l.end == Open {
		if len(l.in) > 0 {
			if keep != nil {
				keep(l.in)
			}
			if _, err := to.Write(l.Take(len(l.in))); err != nil {
				_ = l.Reset()
			}
		}
		if err := l.Receive(time.Time{}); err != nil {
			return err
		}
	}
	if l.end == FIN {
		_ = NewLink(to).CloseWrite()
	} else {
		_ = NewLink(to).Reset()
	}
	return l.err
}
