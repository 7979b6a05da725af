package iwarp_test

import (
	"net"
	"testing"
	"time"
)

// pipeConn is a connection of two pipes, one for each direction, so that it can
// be closed by halves as TCP can. Its deadlines obey virtual time. It holds no
// octets: a write waits for its reader.
type pipeConn struct {
	in, out net.Conn
}

// newPipe returns the two ends of a connection.
func newPipe(t testing.TB) (a, b net.Conn) {
	ra, wb := net.Pipe()
	rb, wa := net.Pipe()
	a, b = &pipeConn{in: ra, out: wa}, &pipeConn{in: rb, out: wb}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func (p *pipeConn) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p *pipeConn) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p *pipeConn) CloseWrite() error           { return p.out.Close() }

func (p *pipeConn) Close() error {
	_ = p.in.Close()
	return p.out.Close()
}

func (p *pipeConn) LocalAddr() net.Addr  { return p.in.LocalAddr() }
func (p *pipeConn) RemoteAddr() net.Addr { return p.in.RemoteAddr() }

func (p *pipeConn) SetDeadline(t time.Time) error {
	_ = p.in.SetReadDeadline(t)
	return p.out.SetWriteDeadline(t)
}

func (p *pipeConn) SetReadDeadline(t time.Time) error  { return p.in.SetReadDeadline(t) }
func (p *pipeConn) SetWriteDeadline(t time.Time) error { return p.out.SetWriteDeadline(t) }
