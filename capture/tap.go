package capture

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/neterr"
)

// Tap opens a Flow for a TCP connection, and returns a connection that does the
// same and records what it reads and writes: bytes before they are written, so
// that no answer comes ahead of them, and after they are read; a FIN when its own
// end is closed or an end of file was read; a RST when the connection breaks. ours is
// Forward if this end has opened the connection.
//
// It reads as much as there is, ahead of its reader: a frame that comes in one
// piece is one in the record, however it is picked up.
//
// When a write takes fewer bytes than it was given, the next one is expected to
// begin with the rest. An error of w does not affect the connection: w.Flush returns it.
//
// The result has CloseWrite if conn has, SetLinger, and WriteBuffers, which keeps
// several slices together as net.Buffers does on a TCP connection. It has no
// SyscallConn, since bytes would pass it by; NetConn returns conn, to ask it things.
//
// Where w records the other end already, in this process too, the result is conn
// itself: a record has each packet once.
//
// A connected socket of UDP has no Flow: its datagrams are recorded, as those of [TapUDP].
//
// An error is about the addresses of conn, and leaves conn as it was.
func Tap(conn net.Conn, w *Writer, ours Dir) (net.Conn, error) {
	if local, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		return tapConnected(conn, local, w)
	}
	var ends [2]netip.AddrPort
	for d, a := range map[Dir]net.Addr{ours: conn.LocalAddr(), ours.Peer(): conn.RemoteAddr()} {
		tcp, ok := a.(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("capture: %v is not an address of TCP", a)
		}
		ends[d] = unmapped(tcp.AddrPort())
	}
	if !w.tap(ends, ours) {
		return conn, nil
	}
	f, err := w.Open(ends[Forward], ends[Backward], time.Time{})
	if f == nil {
		w.untap(ends, ours)
		return nil, err
	}
	t := &tap{Conn: conn, flow: f, ours: ours, untap: func() { w.untap(ends, ours) }}
	if h, ok := conn.(halfCloser); ok {
		return &tapHalves{t, h}, nil
	}
	return t, nil
}

// tap notes that one end of a connection is recorded, unless the other one is.
func (w *Writer) tap(ends [2]netip.AddrPort, ours Dir) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d, ok := w.taps[ends]; ok && d != ours {
		return false
	}
	w.taps[ends] = ours
	return true
}

// untap forgets that, as the same ends may be connected again.
func (w *Writer) untap(ends [2]netip.AddrPort, ours Dir) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d, ok := w.taps[ends]; ok && d == ours {
		delete(w.taps, ends)
	}
}

// TapListener returns a listener whose connections are tapped.
func TapListener(l net.Listener, w *Writer) net.Listener { return &tapListener{l, w} }

type tapListener struct {
	net.Listener
	w *Writer
}

func (l *tapListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tapped, err := Tap(conn, l.w, Backward)
	if err != nil {
		_ = conn.Close()
	}
	return tapped, err
}

// A halfCloser can be closed by halves.
type halfCloser interface{ CloseWrite() error }

// A tap is a connection that is recorded. Errors of the record stay in its Writer.
type tap struct {
	net.Conn
	flow  *Flow
	ours  Dir
	untap func() // at the end

	readMu sync.Mutex // of a Read
	unread []byte     // recorded, and not yet picked up
	buf    []byte     // that unread is in

	mu    sync.Mutex // of a Write
	ahead int        // bytes that are recorded and not written
	fresh [][]byte   // of record

	lingerMu sync.Mutex
	abort    bool // Close sends a RST
}

// readAhead is how many bytes are read at once, at most, for a reader that wants fewer.
const readAhead = 64 << 10

func (t *tap) Read(b []byte) (int, error) {
	t.readMu.Lock()
	defer t.readMu.Unlock()
	if len(b) == 0 || len(b) >= readAhead && len(t.unread) == 0 {
		return t.read(b)
	}
	if len(t.unread) == 0 {
		if t.buf == nil {
			t.buf = make([]byte, readAhead)
		}
		n, err := t.read(t.buf)
		if t.unread = t.buf[:n]; n == 0 {
			return 0, err
		} // or the error will come again
	}
	n := copy(b, t.unread)
	t.unread = t.unread[n:]
	return n, nil
}

// read reads from the connection, and records that.
func (t *tap) read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	if n > 0 {
		_ = t.flow.Send(t.ours.Peer(), time.Time{}, b[:n])
	}
	switch {
	case errors.Is(err, io.EOF):
		_ = t.flow.Close(t.ours.Peer(), time.Time{})
	case neterr.PeerReset(err):
		_ = t.flow.Reset(t.ours.Peer(), time.Time{})
	}
	return n, err
}

func (t *tap) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := t.record([][]byte{b})
	n, err := t.Conn.Write(b)
	t.wrote(size, int64(n), err)
	return n, err
}

// WriteBuffers writes all of v as one, and consumes what was written.
func (t *tap) WriteBuffers(v *net.Buffers) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := t.record(*v)
	n, err := v.WriteTo(t.Conn)
	t.wrote(size, n, err)
	return n, err
}

// record adds what is about to be written, except for what was recorded before, and
// returns how many bytes there are in all.
func (t *tap) record(v [][]byte) (size int) {
	known := t.ahead
	t.fresh = t.fresh[:0]
	for _, b := range v {
		size += len(b)
		n := min(known, len(b))
		known -= n
		t.fresh = append(t.fresh, b[n:])
	}
	_ = t.flow.Send(t.ours, time.Time{}, t.fresh...)
	clear(t.fresh)
	return size
}

// wrote notes how many bytes of those recorded were written.
func (t *tap) wrote(size int, n int64, err error) {
	t.ahead = max(t.ahead, size) - int(n)
	if neterr.PeerReset(err) {
		_ = t.flow.Reset(t.ours.Peer(), time.Time{})
	}
}

// SetLinger is that of a TCP connection, if conn has it: with 0, Close sends a RST.
func (t *tap) SetLinger(sec int) error {
	l, ok := t.Conn.(interface{ SetLinger(int) error })
	if !ok {
		return errors.ErrUnsupported
	}
	err := l.SetLinger(sec)
	if err == nil {
		t.lingerMu.Lock()
		t.abort = sec == 0
		t.lingerMu.Unlock()
	}
	return err
}

func (t *tap) Close() error {
	t.lingerMu.Lock()
	end := t.flow.Close
	if t.abort {
		end = t.flow.Reset
	}
	t.lingerMu.Unlock()
	_ = end(t.ours, time.Time{})
	t.untap()
	return t.Conn.Close()
}

// NetConn returns the connection that is recorded. What was read ahead is not there.
func (t *tap) NetConn() net.Conn { return t.Conn }

// A tapHalves is a tap of a connection that can be closed by halves.
type tapHalves struct {
	*tap
	conn halfCloser
}

// CloseWrite sends a FIN.
func (t *tapHalves) CloseWrite() error {
	_ = t.flow.Close(t.ours, time.Time{})
	return t.conn.CloseWrite()
}
