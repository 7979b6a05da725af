package peer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/mempipe"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// DefaultTimeout bounds a wait for the other end.
const DefaultTimeout = 5 * time.Second

// A Conn is one end of a connection, played by a script. One goroutine uses it at a time. New, Dial, Listen and Pipe
// make one; of any other, Err is an error from its first method on.
//
// It keeps its first error: see the package comment.
type Conn struct {
	// Timeout bounds each wait for the other end. If zero, DefaultTimeout.
	Timeout time.Duration
	// Trace, if it is set, gets each step: what was sent, received or done.
	Trace func(Step)

	link           *script.Link
	role           mpa.Role
	request, reply mpa.StartupFrame
	framed         string // what the FPDU says that was built last
	err            error
}

// A Step is one of a Conn's.
type Step struct {
	Text           string // what it is, with the fields of what was sent or received
	Sent, Received []byte // nil for other steps, such as a FIN
}

// New returns a Conn over a connection, which it owns. If that is nil, Err says so. A FIN takes a CloseWrite method, and
// a RST takes a SetLinger or Reset method: a net.TCPConn has the first two. Without them, CloseWrite and Reset are
// errors that wrap errors.ErrUnsupported.
func New(conn net.Conn) *Conn {
	c := new(Conn)
	if conn != nil {
		c.link = script.NewLink(conn)
	}
	c.ok()
	return c
}

// errNoConn is of a Conn that has no connection.
var errNoConn = errors.New("peer: there is no connection: New needs one, and Dial, Listen and Pipe make one")

// ok reports whether the Conn has no error. One that nobody has made gets a connection that is closed.
func (c *Conn) ok() bool {
	if c.link == nil {
		ours, theirs := mempipe.Pipe("peer", "nobody")
		_, _ = ours.Close(), theirs.Close()
		c.link, c.err = script.NewLink(ours), errNoConn
	}
	return c.err == nil
}

// Dial connects to a TCP address.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return New(conn), nil
}

// Pipe returns a Conn and its other end, which are connected in memory. The connection ends as TCP's does, by FIN or
// RST, and works in virtual time, within testing/synctest.
func Pipe() (*Conn, net.Conn) {
	ours, theirs := mempipe.Pipe("peer", "tested")
	return New(ours), theirs
}

// Err returns the first error of the Conn, or nil.
func (c *Conn) Err() error {
	c.ok()
	return c.err
}

// Send sends the pieces in one write. That the other end has closed or reset the connection meanwhile is no error here:
// the next Expect method finds it.
func (c *Conn) Send(pieces ...[]byte) {
	c.write("", [][]byte{bytes.Join(pieces, nil)})
}

// SendSplit sends each piece in a TCP segment of its own: 10 ms pass between two.
func (c *Conn) SendSplit(pieces ...[]byte) {
	c.write(fmt.Sprintf(" in %d pieces", len(pieces)), pieces)
}

// segmentGap keeps TCP from joining two writes.
const segmentGap = 10 * time.Millisecond

func (c *Conn) write(how string, pieces [][]byte) {
	if !c.ok() {
		return
	}
	all := bytes.Join(pieces, nil)
	text := cmp.Or(c.framed, fmt.Sprintf("%d bytes%s", len(all), script.DescribeStartup(all)))
	c.framed = ""
	c.step(Step{Text: text + how, Sent: all})
	c.keep(all, mpa.RoleInitiator)
	_ = c.link.Conn().SetWriteDeadline(c.deadline())
	switch err := c.link.SendSplit(segmentGap, pieces...); {
	case err == nil:
	case script.EndOf(err) == script.RST:
		c.step(Step{Text: "not all could be sent: " + err.Error()})
	default:
		c.fail(fmt.Sprintf("the other end to take %d bytes", len(all)), err.Error(), nil, err)
	}
}

// keep keeps a Request and a Reply in mind, which settle how FPDUs are framed. The role is ours if b is a Request.
func (c *Conn) keep(b []byte, role mpa.Role) {
	f, err := mpa.ParseStartup(b)
	switch {
	case err != nil || c.link.Operating():
	case f.Key() == mpa.KeyRequest:
		c.request, c.role = bytes.Clone(f), role
	case f.Key() == mpa.KeyReply:
		c.reply = bytes.Clone(f)
	}
}

// CloseWrite sends a FIN. The other end may still send.
func (c *Conn) CloseWrite() {
	if c.ok() {
		c.step(Step{Text: "FIN"})
		if c.err = c.link.CloseWrite(); errors.Is(c.err, errors.ErrUnsupported) {
			c.err = fmt.Errorf("peer: this connection has no FIN of its own: %w", c.err)
		}
	}
}

// Reset ends the connection by a RST.
func (c *Conn) Reset() {
	if c.ok() {
		c.step(Step{Text: "RST"})
		c.err = c.reset()
	}
}

func (c *Conn) reset() error {
	if !c.link.CanReset() {
		return fmt.Errorf("peer: this connection has no RST: %w", errors.ErrUnsupported)
	}
	return c.link.Reset()
}

// Close ends the connection in order, also after an error: it sends a FIN, drops what comes until that of the other
// end, for Timeout at most, and closes the connection. It returns Err.
func (c *Conn) Close() error {
	c.ok()
	c.link.Leave(c.timeout())
	return c.err
}

func (c *Conn) timeout() time.Duration { return cmp.Or(c.Timeout, DefaultTimeout) }

func (c *Conn) deadline() time.Time { return time.Now().Add(c.timeout()) }

func (c *Conn) step(s Step) {
	if c.Trace != nil {
		c.Trace(s)
	}
}
