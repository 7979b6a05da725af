package iwarp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/engine"
)

// TestOpErrorText composes the texts of errors in errors: each names its part once.
func TestOpErrorText(t *testing.T) {
	addr := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4791}
	refused := os.NewSyscallError("connect", errors.New("connection refused"))
	for _, c := range []struct {
		err  error
		want string
	}{
		{&iwarp.OpError{Op: "dial", To: "tcp 192.0.2.1:4791", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: refused}},
			"iwarp: dial tcp 192.0.2.1:4791: connect: connection refused"},
		{&iwarp.OpError{Op: "dial", To: "tcp host:1", Err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "host"}}},
			"iwarp: dial tcp host:1: lookup host: no such host"},
		{&iwarp.OpError{Op: "accept", Addr: addr, Err: &net.OpError{Op: "read", Net: "tcp", Addr: addr, Err: refused}},
			"iwarp: accept 192.0.2.1:4791: read tcp 192.0.2.1:4791: connect: connection refused"},
		{&iwarp.OpError{Op: "dial", To: "tcp host:1", Err: &iwarp.OpError{Op: "create QP", Err: iwarp.ErrInvalid}},
			"iwarp: dial tcp host:1: create QP: invalid argument"},
		{&iwarp.OpError{Op: "send", Err: &iwarp.WCError{Op: iwarp.OpSend, ID: 7, Status: iwarp.StatusFlushed, Cause: &iwarp.ConnectionError{Err: refused}}},
			"iwarp: send: Send (work request 7): " + iwarp.StatusFlushed.String() + ": connect: connection refused"},
		{&iwarp.OpError{Op: "dial", Err: errors.New("dial is part of this text")}, "iwarp: dial: dial is part of this text"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestOnlyTimeoutsAreTimeouts asks errors whether they are timeouts, and whether they are something else.
func TestOnlyTimeoutsAreTimeouts(t *testing.T) {
	for what, c := range map[string]struct {
		err  error
		late bool
	}{
		"OpError":                    {&iwarp.OpError{Op: "send", Err: iwarp.ErrInvalid}, false},
		"OpError, late":              {&iwarp.OpError{Op: "send", Err: context.DeadlineExceeded}, true},
		"ConnectionError":            {&iwarp.ConnectionError{Err: iwarp.ErrConnectionLost}, false},
		"ConnectionError, late":      {&iwarp.ConnectionError{Err: engine.ErrTimeout}, true},
		"ConnectionError, TCP's end": {&iwarp.ConnectionError{Err: &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}}, true},
	} {
		var n net.Error
		if !errors.As(c.err, &n) || n.Timeout() != c.late || errors.Is(c.err, os.ErrDeadlineExceeded) != c.late {
			t.Errorf("%s: whether it is a timeout should be %t", what, c.late)
		}
		if errors.Is(c.err, io.EOF) {
			t.Errorf("%s is taken for another error", what)
		}
	}
}

// TestBrief: within an error that names what failed itself, one of this package names neither that nor the package.
func TestBrief(t *testing.T) {
	refused := os.NewSyscallError("connect", errors.New("connection refused"))
	dialed := &iwarp.OpError{Op: "dial", To: "tcp host:1", Err: &net.OpError{Op: "dial", Net: "tcp", Err: refused}}
	for _, c := range []struct {
		op   string
		err  error
		want string
		ours bool
	}{
		{"dial", dialed, "connect: connection refused", true},
		{"read", dialed, "dial tcp host:1: connect: connection refused", true},
		{"read", &iwarp.ConnectionError{Err: refused}, "connect: connection refused", true},
		{"dial", refused, "", false},
		{"dial", errors.Join(dialed), "", false},
	} {
		if got, ours := iwarp.Brief(c.op, c.err); got != c.want || ours != c.ours {
			t.Errorf("%s, %v: got %q, %v", c.op, c.err, got, ours)
		}
	}
}
