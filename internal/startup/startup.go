// Package startup carries the startup frames of one connection between a machine of package mpa and a
// net.Conn, with timeouts and contexts, and ends a connection that the startup did not bring up.
//
// RFC 5044, section 7.1, and RFC 6581, section 9, say what the frames are; the machines know that. This
// package knows the connection: what is read, written, waited for and closed.
package startup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// writeLimit bounds a write after which nothing is awaited: no machine has a deadline for it.
const writeLimit = mpa.DefaultRequestTimeout

// Machine is an [mpa.Initiator] or an [mpa.Responder].
type Machine interface {
	Output() []byte
	Input(now time.Time, b []byte) (n int, err error)
	Want() int
	Deadline() time.Time
	HandleTimeout(now time.Time) error
	GiveUp(now time.Time, cause error) error
	PeerClosed(cause error) error
}

// A Phase is the startup phase of one connection.
type Phase struct {
	Conn net.Conn
	// Trace, if it is set, is called with each startup frame that was sent or received.
	Trace func(sent bool, frame []byte)
	// Verify, if it is set, is called when the peer's last frame has arrived, before
	// the machine's answer to it is sent, if there is one. Exchange ends with its error.
	Verify func() error
}

// Exchange sends first, if there is something in it, and then feeds the machine from the connection
// until it wants no more; what the machine has to send goes out in between. It reads no byte beyond the
// startup frames: what follows belongs to the first FPDU (RFC 5044, section 7.1.2), or to the consumer.
//
// An error is the machine's, or wraps that of the context. The connection stays open.
func (p Phase) Exchange(ctx context.Context, m Machine, first []byte) error {
	g := watch(ctx, p.Conn)
	defer g.stop()
	for frame := first; len(frame) > 0 || m.Want() > 0; {
		err := p.send(g, m, frame)
		awaited := m.Want() > 0
		frame = nil
		if err == nil && awaited {
			frame, err = p.receive(g, m)
		}
		if err == nil && awaited && m.Want() == 0 && p.Verify != nil {
			if err := p.Verify(); err != nil {
				_ = g.lift()
				return err
			}
		}
		if err != nil {
			p.part(g, m, err)
			return err
		}
	}
	return g.lift()
}

// Send sends bytes that belong to no machine's exchange, such as the last message of the streaming
// mode, in one write.
func (p Phase) Send(ctx context.Context, b []byte) error {
	g := watch(ctx, p.Conn)
	defer g.stop()
	if err := g.until(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	if _, err := p.Conn.Write(b); err != nil {
		return g.cause(err)
	}
	return g.lift()
}

// send sends a frame in one write: some RNICs want it in one segment. It leaves the machine's deadline
// set for the reads that follow.
func (p Phase) send(g guard, m Machine, frame []byte) error {
	deadline := m.Deadline()
	last := deadline.IsZero() && m.Want() == 0
	if last {
		deadline = time.Now().Add(writeLimit)
	}
	if err := g.until(deadline); err != nil {
		return g.failed(m, err)
	}
	if len(frame) == 0 {
		return nil
	}
	switch _, err := p.Conn.Write(frame); {
	case last && errors.Is(err, os.ErrDeadlineExceeded) && g.ctx.Err() == nil:
		return fmt.Errorf("the peer did not read our startup frame within %v: %w", writeLimit, err)
	case err != nil:
		return g.failed(m, err)
	}
	p.trace(true, frame)
	return nil
}

// firstRead is the room, in bytes, for what is read at first: most startup frames need no more with their private
// data. It grows as the machine wants more.
const firstRead = 64

// receive reads until the machine has something to send, which it returns, or wants no more.
func (p Phase) receive(g guard, m Machine) (next []byte, err error) {
	buf := make([]byte, firstRead)
	have := 0
	for m.Want() > 0 && len(next) == 0 {
		buf = slices.Grow(buf[:have], m.Want())[:have+m.Want()]
		n, err := p.Conn.Read(buf[have:])
		if n > 0 {
			_, err = m.Input(time.Now(), buf[have:have+n])
			have += n
		} else if err != nil {
			err = g.failed(m, err)
		}
		if err != nil {
			return nil, err
		}
		next = m.Output()
	}
	p.trace(false, buf[:have])
	return next, nil
}

func (p Phase) trace(sent bool, frame []byte) {
	if p.Trace != nil && len(frame) > 0 {
		p.Trace(sent, frame)
	}
}

// Await waits for bytes after the startup frames, no longer than a limit if that is positive. It returns the
// connection with them in front.
func (p Phase) Await(ctx context.Context, limit time.Duration) (net.Conn, error) {
	g := watch(ctx, p.Conn)
	defer g.stop()
	var by time.Time
	if limit > 0 {
		by = time.Now().Add(limit)
	}
	if err := g.until(by); err != nil {
		return nil, err
	}
	ahead := bufio.NewReaderSize(p.Conn, firstRead)
	if _, err := ahead.Peek(1); err != nil {
		return nil, g.cause(err)
	}
	return tcp.NewBuffered(p.Conn, ahead), g.lift()
}
