package perf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// A connection of plain TCP comes to the address that QPs come to, so that it goes the same way, through a relay or a
// firewall too. It begins as theirs do, with an MPA Request, and the responder rejects that with the hello as private
// data, after which both use the TCP connection as it is. RFC 5044, section 7.1.2, on a rejection: "the implementation
// MUST exit MPA, leaving the TCP connection open." Over a network whose QPs have no sockets of TCP, it comes to a port
// of its own, and begins with the hello alone.

// helloWait is how long a plain TCP connection to a port of its own may take to say whose it is.
const helloWait = 2 * time.Second

// besideQP is what an initiator says when plain TCP does not come up.
const besideQP = "perf: plain TCP beside the QP (it can be left out): %w"

// errNotPlain is an answer to a connection of plain TCP that is none of a responder's.
var errNotPlain = errors.New("the peer has accepted it as a QP, and is no responder of iwarp perf it seems")

// errNotOverTCP tells an initiator that has stated a network with sockets of TCP, and has not come by it.
var errNotOverTCP = errors.New("perf: plain TCP beside the QP: the connection that measures is none of TCP, as the network that was stated is")

// openPlain returns where the responder takes plain TCP, if there is to be any.
func (a *respondent) openPlain() (ans answer, err error) {
	if a.opts.NoBaseline {
		return ans, nil
	}
	over, err := open(a.opts.Network)
	if err != nil {
		return ans, err
	}
	if _, tcp := a.ctl.qp.LocalAddr().(*net.TCPAddr); over.Sockets && !tcp {
		return ans, errNotOverTCP
	}
	if over.Sockets {
		return answer{TCPHere: true}, nil
	}
	host, err := plainHost(over, a.ctl.qp.LocalAddr())
	if err != nil {
		return ans, err
	}
	if a.baseline, err = new(net.ListenConfig).Listen(context.Background(), "tcp",
		net.JoinHostPort(host, "0")); err != nil {
		return ans, err
	}
	return answer{TCPPort: a.baseline.Addr().(*net.TCPAddr).Port}, nil
}

// expected returns how many connections the initiator opens to the Listener: QPs, and plain TCP if that comes there.
func (a *respondent) expected() int {
	if a.opts.NoBaseline || a.baseline != nil {
		return len(a.qps)
	}
	return len(a.qps) + len(a.tcps)
}

// acceptPlain takes in a connection of plain TCP that has come to the Listener.
func (a *respondent) acceptPlain(in arrival) error {
	if a.opts.NoBaseline || a.baseline != nil || !a.lacksTCP(in.hello) {
		return a.unexpected(in)
	}
	conn, err := in.req.RejectKeep(in.encode(), 0, 0)
	close(in.taken)
	if err != nil {
		return fmt.Errorf("perf: plain TCP beside the QP: %w", err)
	}
	l := a.tcps[in.index]
	l.use(beneath(conn), &a.bytes)
	if l.conn != conn {
		l.began = conn
	}
	return nil
}

// lacksTCP reports whether there is to be a connection of plain TCP that is not there yet.
func (a *respondent) lacksTCP(h hello) bool {
	return int(h.index) < len(a.tcps) && a.tcps[h.index].conn == nil
}

// beneath returns the connection that one which encrypts or records is built on, as its method tells. After the
// hello neither end has sent anything that is still to be read there.
func beneath(conn net.Conn) net.Conn {
	for {
		on, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = on.NetConn()
	}
}

// acceptAlone takes in what comes to a port of plain TCP's own.
func (a *respondent) acceptAlone(ctx context.Context) error {
	defer context.AfterFunc(ctx, a.closeBaseline)()
	for taken := 0; taken < len(a.tcps); {
		conn, err := a.baseline.Accept()
		if err != nil {
			return err
		}
		if a.acceptTCP(conn) {
			taken++
		}
	}
	return nil
}

// acceptTCP takes a plain TCP connection in, if it is one of this measurement.
func (a *respondent) acceptTCP(conn net.Conn) bool {
	text := make([]byte, helloLen)
	conn.SetDeadline(time.Now().Add(helloWait))
	_, err := io.ReadFull(conn, text)
	h, bad := parseHello(text)
	if err != nil || bad != nil || h.session != a.id || !a.lacksTCP(h) {
		conn.Close()
		return false
	}
	conn.SetDeadline(time.Time{})
	a.tcps[h.index].use(conn, &a.bytes)
	return true
}

// dialTCP opens the plain TCP connection beside a QP where the responder takes it.
func (d *dialing) dialTCP(ctx context.Context, i int, at answer) (net.Conn, error) {
	addr, err := d.plainAddr(at)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: dialTimeout, Control: d.opts.control(initiator)}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf(besideQP, err)
	}
	h := hello{plain: true, session: d.id, index: uint16(i)}
	if at.TCPHere {
		err = d.announce(ctx, conn, h)
	} else {
		_, err = conn.Write(h.encode())
	}
	if err != nil {
		_ = conn.Close() // or it is
		return nil, fmt.Errorf(besideQP, err)
	}
	return conn, nil
}

// plainAddr returns where plain TCP is dialed: at the address that the control connection has reached, unless it has a
// port of its own.
func (d *dialing) plainAddr(at answer) (string, error) {
	addr := d.ctl.qp.RemoteAddr()
	if at.TCPHere {
		return addr.String(), nil
	}
	host, err := plainHost(d.over, addr)
	return net.JoinHostPort(host, strconv.Itoa(at.TCPPort)), err
}

// announce says on a connection to the address of QPs that it is plain TCP, and waits for the responder to take it. In
// case of an error it may be closed.
func (d *dialing) announce(ctx context.Context, conn net.Conn, h hello) error {
	through := conn
	if d.secure != nil {
		var err error
		if through, err = d.secure(conn); err != nil {
			return err
		}
	}
	dialer := iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRFC6581, PrivateData: h.encode()}, Timeout: dialTimeout}
	qp, err := dialer.Initiate(ctx, through, nil)
	if err == nil {
		qp.Abort()
		return errNotPlain
	}
	var rejected *iwarp.RejectError
	switch {
	case errors.As(err, &rejected) && rejected.Conn != nil && bytes.Equal(rejected.PrivateData, h.encode()):
		return nil
	case rejected == nil && ctx.Err() == nil:
		// What is said of dialects is no help here: the QP beside it has come up.
		return fmt.Errorf("the responder did not take the connection: %w", withoutAdvice(err))
	}
	return refusal(err)
}

// withoutAdvice is what an error of the startup is about, without what can be done about that with a QP.
func withoutAdvice(err error) error {
	for _, known := range []error{io.EOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}
