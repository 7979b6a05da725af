package neterr_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp/internal/neterr"
)

func TestGone(t *testing.T) {
	for err, want := range map[error]struct{ peer, reset bool }{
		syscall.ECONNRESET: {true, true},
		io.EOF:             {true, false}, io.ErrUnexpectedEOF: {true, false}, io.ErrClosedPipe: {true, false},
		syscall.EPIPE: {true, false}, syscall.ECONNABORTED: {true, false},
		net.ErrClosed: {}, os.ErrDeadlineExceeded: {}, errors.New("untrusted"): {},
	} {
		wrapped := &net.OpError{Op: "read", Err: err}
		if peer, reset := neterr.PeerGone(wrapped),
			neterr.PeerReset(wrapped); peer != want.peer || reset != want.reset {
			t.Errorf("%v: the peer is gone: %v, by a reset: %v", err, peer, reset)
		}
	}
}

// TestSocket has a peer of the operating system's TCP reset its connection.
func TestSocket(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = peer.(*net.TCPConn).SetLinger(0), peer.Close()
	if _, err := c.Read(make([]byte, 1)); !neterr.PeerReset(err) || !neterr.PeerGone(err) {
		t.Errorf("after a RST: %v", err)
	}
}
