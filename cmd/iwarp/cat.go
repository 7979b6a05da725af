package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/stream"
)

// catCmd is netcat over package stream.
type catCmd struct {
	Peer []string `arg:"" optional:"" placeholder:"HOST[:PORT]" help:"Connect to this address (default port: ${rping_port}). HOST PORT works, too, as with netcat."`

	Listen  string        `short:"l" xor:"role" placeholder:"[HOST][:PORT]" help:"Wait for one connection at this address (port 0: any free port). Prints the address on standard error, or on standard output with --out."`
	Connect string        `xor:"role" placeholder:"HOST[:PORT]" help:"Connect to another iwarp cat, or an rsockets program, at this address."`
	In      string        `placeholder:"FILE" help:"Send this file instead of standard input."`
	Out     string        `placeholder:"FILE" help:"Write received data to this file instead of standard output. FILE appears when all is there. If a copy fails, .FILE.iwarp-part has the part that came."`
	Ring    byteCount     `placeholder:"SIZE" default:"${stream_ring}" help:"Receive buffer for the peer, such as 64K (default: ${stream_ring})."`
	Timeout time.Duration `placeholder:"TIME" help:"Time limit for connecting."`

	networkFlag
	tlsFlags
}

// Help is what --help adds.
func (*catCmd) Help() string {
	return `Copies standard input to a peer, and the peer's data to standard output, with RDMA Writes (the protocol of rdma-core's
rsockets). When the input ends, the peer reads the end of the stream. The command ends when both directions have ended, or the
peer has closed the connection. It succeeds only if the connection closed in order and the peer got all that was read. An
interrupt is a failure at both ends; it ends --listen without a connection.`
}

// Run copies both ways.
func (c *catCmd) Run(ctx context.Context, std streams) error {
	if err := c.checkOptions(); err != nil {
		return err
	}
	in, out, err := c.open(std)
	if err != nil {
		return err
	}
	defer in.Close()
	over := c.over()
	defer over.Close()
	conn, err := c.meet(ctx, over, std)
	if err == nil {
		err = attend(ctx, conn, (*iwarp.QP).Abort, func() error { return exchange(conn, in, out) })
	}
	if conn != nil || c.Connect != "" { // not a server that still waits for a client
		err = cutCopy(ctx, "cat", err)
	}
	return join(err, out.finish(err))
}

// A sink takes the received data.
type sink interface {
	io.Writer
	// finish closes the sink, after a run that has ended with err.
	finish(err error) error
}

// shown is standard output.
type shown struct{ io.WriteCloser }

func (s shown) finish(error) error { return s.Close() }

// attend uses a connection and closes it. If the context ends first, cut ends it: so that the peer sees an incomplete
// stream.
func attend(ctx context.Context, conn *stream.Conn, cut func(*iwarp.QP) error, use func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = cut(conn.QP()) })
	err := use()
	if !stop() {
		_ = cut(conn.QP()) // the other cut may still be running
		err = context.Cause(ctx)
	}
	return join(err, leave(conn, err))
}

// leave closes the connection, in order only without an error: otherwise the peer would take its part for everything.
func leave(conn *stream.Conn, err error) error {
	if err == nil {
		return conn.Close()
	}
	_ = conn.QP().Abort()
	_ = conn.Close() // its error adds nothing to err
	return nil
}

func (c *catCmd) checkOptions() error {
	if err := cmp.Or(c.check("cat", ""), c.takePeer()); err != nil {
		return err
	}
	c.Listen, c.Connect = atDefault(c.Listen), atDefault(c.Connect)
	if c.Listen == "" && c.Connect == "" {
		return usage("cat: give HOST to connect, or --listen to wait for a connection, such as --listen :7174")
	}
	if err := cmp.Or(
		c.checkTLS("cat", c.Listen != "", c.over()),
		c.apart("cat", "there is no --listen or --connect"),
		notNegative("cat: --timeout", c.Timeout),
	); err != nil {
		return err
	}
	switch {
	case c.Ring <= 0 || int64(c.Ring) > math.MaxInt32:
		return usage("cat: --ring: %d: must be at least 1 byte, and less than 2G", c.Ring)
	case c.Listen != "":
		return wantListen("cat: --listen", c.Listen)
	}
	return wantPeer("cat: --connect", c.Connect)
}

// takePeer uses the arguments as --connect.
func (c *catCmd) takePeer() error {
	switch {
	case len(c.Peer) == 0:
		return nil
	case c.Listen != "" || c.Connect != "":
		return usage("cat: %.60q: use only one of HOST, --connect and --listen", c.Peer[0])
	case len(c.Peer) > 2:
		return usage("cat: %.60q: expected HOST[:PORT], and nothing more", c.Peer[2])
	}
	c.Connect = c.Peer[0]
	if len(c.Peer) == 2 {
		c.Connect = net.JoinHostPort(c.Peer[0], c.Peer[1])
	}
	return nil
}

// open returns the input and the output. For a terminal the output is escaped: the peer must not control it.
func (c *catCmd) open(std streams) (in io.ReadCloser, out sink, err error) {
	in, out = os.Stdin, shown{os.Stdout}
	if term.IsTerminal(int(os.Stdout.Fd())) {
		out = shown{guarded{std.out}}
	}
	if c.In != "" {
		if in, err = os.Open(c.In); err != nil {
			return nil, nil, fmt.Errorf("cat: %w", err)
		}
	}
	if c.Out == "" {
		return in, out, nil
	}
	file, err := openOutput("cat", "out", c.Out, c.In)
	if err != nil {
		return nil, nil, join(err, in.Close())
	}
	return in, file, nil
}

// guarded is a terminal.
type guarded struct{ io.Writer }

// Close leaves it open.
func (guarded) Close() error { return nil }

// meet returns the connection.
func (c *catCmd) meet(ctx context.Context, over *network.Network, std streams) (conn *stream.Conn, err error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	cfg := stream.Config{Ring: int(c.Ring)}
	if c.Connect != "" {
		wrap, err := c.wrap("cat", c.Connect, over, nil)
		if err != nil {
			return nil, err
		}
		d, name, err := over.Dialer(&iwarp.Dialer{Wrap: wrap})
		if err != nil {
			return nil, err
		}
		return (&stream.Dialer{RDMA: d, Config: cfg}).Dial(ctx, name, c.Connect)
	}
	under, err := c.listenOver(ctx, "cat", c.Listen, over, &iwarp.ListenConfig{})
	if err != nil {
		return nil, err
	}
	ln := (&stream.Acceptor{Config: cfg}).NewListener(under)
	defer ln.Close()
	said := std.err
	if c.Out != "" {
		said = std.out
	}
	fmt.Fprintf(said, "listening on %v\n", ln.Addr())
	return acceptOne(ctx, ln)
}

// acceptOne waits for one connection.
func acceptOne(ctx context.Context, ln net.Listener) (*stream.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	conn, err := ln.Accept()
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return conn.(*stream.Conn), nil
}

// exchange copies both ways, until both directions have ended or the peer has closed the connection. Without an error
// the peer has got all that was read.
func exchange(conn *stream.Conn, in io.Reader, out io.Writer) error {
	err := bothWays(conn, in, out)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &namedError{"cat: the other end has left before all was there, as a server does that is shut down, or after its --idle without anything that moves", err}
	}
	return err
}

func bothWays(conn *stream.Conn, in io.Reader, out io.Writer) error {
	sent := make(chan error, 1)
	go func() {
		_, err := conn.ReadFrom(in)
		if err == nil {
			err = conn.CloseWrite()
		}
		sent <- err
	}()
	if _, err := conn.WriteTo(out); err != nil {
		return err
	}
	gone := conn.QP().Done()
	if finite(in) {
		gone = nil // a file is copied to its end, even if the peer closes
	}
	select {
	case err := <-sent:
		return err
	case <-gone: // no more input is needed
		return conn.CloseWrite() // fails if the peer did not take all that was read
	}
}

// finite reports whether reading surely ends: a file ends, but a terminal or a pipe may block for ever.
func finite(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}
