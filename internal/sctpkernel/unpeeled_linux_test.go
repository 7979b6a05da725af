package sctpkernel

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/sctp"
)

// overTCP returns a Conn whose socket is one of TCP, in the place of SCTP's, and its peer: the kernel counts there,
// too, what is not acknowledged.
func overTCP(t *testing.T) (c *Conn, peer net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer func() { testrig.Must(t, l.Close()) }()
	ours, err := net.Dial("tcp", l.Addr().String())
	testrig.Must(t, err)
	peer, err = l.Accept()
	testrig.Must(t, err)
	f, err := ours.(*net.TCPConn).File()
	testrig.Must(t, err)
	testrig.Must(t, ours.Close())
	rc, err := f.SyscallConn()
	testrig.Must(t, err)
	c = &Conn{s: &socket{f, rc}, largest: 1000, sent: map[uint16]uint64{}, acked: map[uint16]uint64{}}
	t.Cleanup(func() { c.s.close(); _ = peer.Close() })
	return c, peer
}

// TestUnsettled: nothing has arrived of any stream while the kernel says that something is not acknowledged, and all
// has when it says that nothing is.
func TestUnsettled(t *testing.T) {
	c, peer := overTCP(t)
	if got := c.settled(); len(got) != 0 {
		t.Errorf("before the first message: %v", got)
	}
	n := int64(0)
	for { // until the peer's window is closed
		err := c.s.do(func(fd int) error { return sendmsg(fd, make([]byte, 1000), nil) })
		if again(err) {
			break
		}
		testrig.Must(t, err)
		n += 1000
	}
	c.sent[3] = uint64(n / 1000)
	if got := c.settled(); len(got) != 0 {
		t.Errorf("with bytes that are not acknowledged: %v", got)
	}
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	for over := testrig.Within(t); ; time.Sleep(time.Millisecond) {
		testrig.Must(t, over.Err())
		if got := c.settled(); len(got) > 0 {
			if got[3] != c.sent[3] || len(got) != 1 {
				t.Errorf("%v have arrived, of %v", got, c.sent)
			}
			break
		}
	}
	c.sent[3]++
	c.s.close()
	if got := c.settled(); len(got) != 0 {
		t.Errorf("of a socket that is closed: %v", got)
	}
}

// TestLook: the socket of an association knows our address, and leaves to the kernel what was sent. One that is none of
// SCTP's says so.
func TestLook(t *testing.T) {
	c, peer := overTCP(t)
	err := c.s.do(func(fd int) error { return errors.Join(abortOnClose(fd, true), c.look(fd)) })
	if !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("TCP has an association: %v", err)
	}
	if at := netip.AddrPortFrom(c.bound, c.port).String(); at != peer.RemoteAddr().String() ||
		c.LocalAddr().String() != at {
		t.Errorf("we are %v, and say %v; to the peer we are %v", at, c.LocalAddr(), peer.RemoteAddr())
	}
	if c.largest != sctp.MinMaxMessage || c.MaxMessage() != sctp.MinMaxMessage {
		t.Errorf("messages of %d, and now of %d", c.largest, c.MaxMessage())
	}
	testrig.Must(t, c.s.do(func(fd int) error {
		b := make([]byte, 8)
		err := getsockopt(fd, unix.SOL_SOCKET, unix.SO_LINGER, b)
		if native.Uint32(b) != 0 {
			t.Error("it is aborted when it is closed")
		}
		return err
	}))
	if err := c.look(-1); !errors.Is(err, unix.EBADF) {
		t.Errorf("no socket: %v", err)
	}
}

// TestFollowPath: who sends asks the kernel again after a time, and not before. One that does not tell leaves the limit
// as it is.
func TestFollowPath(t *testing.T) {
	c, _ := overTCP(t)
	c.limit.Store(1000)
	for _, ago := range []time.Duration{time.Hour, 0} {
		c.asked = time.Now().Add(-ago)
		was := c.asked
		testrig.Must(t, c.Send(sctp.Message{Data: []byte("bytes")}))
		if asked := c.asked != was; asked != (ago > 0) || c.MaxMessage() != 1000 {
			t.Errorf("after %v: asked again %t, messages of %d", ago, asked, c.MaxMessage())
		}
	}
}

// TestTurnedAway: an association for which there is no room, or that cannot be peeled off, is aborted, hears why, and
// takes no room.
func TestTurnedAway(t *testing.T) {
	c := newStandIn(t)
	l := &Listener{s: c.s, cfg: Config{MaxAssociations: 2}}
	for open, want := range map[int64]string{0: "getsockopt", 1: "getsockopt", 2: "too many associations",
		3: "too many associations"} {
		l.open.Store(open)
		if got := l.welcome(notification{assoc: 7}, netip.AddrPort{}); got != nil {
			t.Errorf("with %d others: %+v", open, got)
		}
		if said := c.sees(); !strings.Contains(said, want) {
			t.Errorf("with %d others it hears %q, want %q", open, said, want)
		}
		if n := l.open.Load(); n != open {
			t.Errorf("with %d others there are %d", open, n)
		}
	}
}
