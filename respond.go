package iwarp

import (
	"bufio"
	"context"
	"net"

	"github.com/goiwarp/iwarp/internal/tcp"
)

// Buffered returns conn with what r has buffered put in front of it, for a connection that was read through r up to
// now: the first octets of MPA may have come along with the last of the streaming mode. A QP takes those first, and
// uses the connection itself from then on. r must read from conn directly.
//
// r may be used again after a rejection, too: octets are taken from it only by reading, and none are read
// ahead into it.
func Buffered(conn net.Conn, r *bufio.Reader) net.Conn { return tcp.NewBuffered(conn, r) }

// Respond waits for the MPA Request on a TCP connection on which the two sides have agreed to start MPA,
// this side as Responder (RFC 5044, section 7.1.3) or Active (CULLEY). lastMessage, if it is not empty,
// is the last message of the streaming mode, and is sent first. All data of the streaming mode must have
// been read; if a bufio.Reader has read ahead, pass Buffered. After an error the connection is closed.
func Respond(ctx context.Context, conn net.Conn, lastMessage []byte, cfg ListenConfig) (*Request, error) {
	if conn == nil {
		return nil, &OpError{Op: "respond", Err: errNoConnGiven}
	}
	rnic := cfg.rnic()
	r := &Request{rnic: rnic, named: cfg.named(), pd: cfg.PD, conn: conn, counts: tally{&rnic.startup}}
	if err := r.respond(ctx, lastMessage, &cfg); err != nil {
		_ = conn.Close()
		return nil, &OpError{Op: "respond", Addr: conn.RemoteAddr(), Err: err}
	}
	return r, nil
}

// respond ends the streaming mode and reads the Request.
func (r *Request) respond(ctx context.Context, lastMessage []byte, cfg *ListenConfig) error {
	if err := cfg.consistent(); err != nil {
		return err
	}
	if len(lastMessage) > 0 {
		if err := r.rnic.phase(r.conn).Send(ctx, lastMessage); err != nil {
			return err
		}
	}
	err := r.read(ctx, cfg)
	if err != nil {
		r.counts.failed(err)
	}
	return err
}
