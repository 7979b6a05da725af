package stream

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/goiwarp/iwarp"
)

var (
	// ErrByteOrder says that the peer's host has another byte order, which rdma-core does not support on iWARP: see
	// Config.BigEndian.
	ErrByteOrder = errors.New("the peer's byte order is another: dial with the opposite of Config.BigEndian")
	// ErrNotMapped says that the peer has mapped no memory where WriteAt was to write.
	ErrNotMapped = errors.New("the peer has mapped no memory there")
	// ErrNoMaps says that the peer takes no maps, or no more of them.
	ErrNoMaps = errors.New("the peer takes no more maps")
	// ErrWriteEnded says that CloseWrite was called before.
	ErrWriteEnded = errors.New("the direction was ended by CloseWrite")
	// ErrPeerGone says that the peer has closed the connection and reads no more. It wraps iwarp.ErrPeerClosed.
	ErrPeerGone = error(peerGone{})
)

// errOverrun ends a connection whose peer breaks the protocol: see Conn.checkNotice.
var errOverrun = errors.New("the peer does not receive, and sends more than it has credits for")

// Errors of calls with nil, or with an object that nobody has made.
var (
	errNoDialer   = fmt.Errorf("%w: the Dialer is nil; use new(Dialer)", iwarp.ErrInvalid)
	errNoAcceptor = fmt.Errorf("%w: the Acceptor is nil; use new(Acceptor)", iwarp.ErrInvalid)
	errNoListener = fmt.Errorf("%w: the Listener is nil or a zero value; Listen makes one", iwarp.ErrInvalid)
	errNoConn     = fmt.Errorf("%w: the Conn is nil or a zero value; Dial or Listener.Accept makes one", iwarp.ErrInvalid)
	errNoMapping  = fmt.Errorf("%w: the Mapping is nil or a zero value; Conn.Map makes one", iwarp.ErrInvalid)
	errNoRequest  = fmt.Errorf("%w: the Request is nil or a zero value; iwarp.Listener.Accept makes one", iwarp.ErrInvalid)
)

type peerGone struct{}

func (peerGone) Error() string { return "the peer has closed the connection, and reads no more" }
func (peerGone) Unwrap() error { return iwarp.ErrPeerClosed }

// opError wraps an error as package net does, except for io.EOF. The result is net.ErrClosed only if this end was
// closed: programs do not report that one, as it is their own doing.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // It is never wrapped.
		return err
	}
	if !c.made() {
		return &net.OpError{Op: op, Err: err}
	}
	if text := brief(op, err); err != errClosed && errors.Is(err, net.ErrClosed) { //nolint:errorlint // It is our own.
		err = briefError{notClosed{err}, text.Error()}
	} else {
		err = text
	}
	return &net.OpError{Op: op, Net: c.network, Source: c.local, Addr: c.remote, Err: err}
}

// A briefError is an error within a *net.OpError. Its text leaves out what that already names: the call and the peer.
type briefError struct {
	error
	text string
}

func (b briefError) Error() string { return b.text }
func (b briefError) Unwrap() error { return b.error }

// Timeout reports whether the error is a timeout. net.OpError asks only the error that it wraps directly.
func (b briefError) Timeout() bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](b.error)
	return ok && t.Timeout()
}

// notClosed hides net.ErrClosed in the error of a connection that has ended, and was not closed at this end. For
// package iwarp every connection that has ended is net.ErrClosed.
type notClosed struct{ error }

// Is finds what the error wraps, except for net.ErrClosed.
func (n notClosed) Is(target error) bool {
	return target != net.ErrClosed && errors.Is(n.error, target)
}

// As finds what the error wraps.
func (n notClosed) As(target any) bool { return errors.As(n.error, target) }

// brief takes the name of the package out of the text of an error of iwarp's, and the call and the peer if it names
// op.
func brief(op string, err error) error {
	if text, ours := iwarp.Brief(op, err); ours {
		return briefError{err, text}
	}
	return err
}

// unexpectedEnd is the error of a connection that has ended without a word of the peer.
func unexpectedEnd(err error) error {
	if errors.Is(err, iwarp.ErrPeerClosed) {
		return io.ErrUnexpectedEOF
	}
	return err
}
