package stream

import (
	"errors"
	"io"
	"net"

	"github.com/goiwarp/iwarp"
)

var (
	// ErrByteOrder says that the peer's host has another byte order, which rdma-core cannot do on iWARP; see Config.BigEndian.
	ErrByteOrder = errors.New("the peer's byte order is another: dial with the opposite of Config.BigEndian")
	// ErrNotMapped says that WriteAt found no memory that the peer has mapped there.
	ErrNotMapped = errors.New("the peer has mapped no memory there")
	// ErrNoMaps says that the peer takes no maps, or no more of them.
	ErrNoMaps = errors.New("the peer takes no more maps")
	// ErrWriteEnded says that CloseWrite was called before.
	ErrWriteEnded = errors.New("the direction was ended by CloseWrite")
	// ErrPeerGone says that the peer has closed the connection and reads no more. It wraps iwarp.ErrPeerClosed.
	ErrPeerGone = error(peerGone{})
)

// errDeaf ends a connection whose peer breaks the protocol: it cannot know that it may send.
var errDeaf = errors.New("the peer takes nothing that it is told, and sends more than it may")

type peerGone struct{}

func (peerGone) Error() string { return "the peer has closed the connection, and reads no more" }
func (peerGone) Unwrap() error { return iwarp.ErrPeerClosed }

// opError is an error as package net has it. io.EOF is returned as it is. It is a net.ErrClosed only if this end was closed: so package net has it, and
// programs say nothing of it then.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // It is never wrapped.
		return err
	}
	if text := brief(op, err); err != errClosed && errors.Is(err, net.ErrClosed) { //nolint:errorlint // It is our own.
		err = briefer{notClosed{err}, text.Error()}
	} else {
		err = text
	}
	return &net.OpError{Op: op, Net: c.network, Source: c.local, Addr: c.remote, Err: err}
}

// briefer is an error within a *net.OpError. Its text does not name again what that names: the call, and the peer.
type briefer struct {
	error
	text string
}

// Error is the brief text.
func (b briefer) Error() string { return b.text }

// Unwrap returns the error as it was.
func (b briefer) Unwrap() error { return b.error }

// Timeout reports whether the error is a timeout: package net asks its outermost layer alone.
func (b briefer) Timeout() bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](b.error)
	return ok && t.Timeout()
}

// notClosed is an error of a connection that has ended, and that was not closed at this end. Package iwarp has a net.ErrClosed for all that have ended.
type notClosed struct{ error }

// Is reports what the error is, except for net.ErrClosed.
func (n notClosed) Is(target error) bool {
	return target != net.ErrClosed && errors.Is(n.error, target)
}

// As finds what the error wraps.
func (n notClosed) As(target any) bool { return errors.As(n.error, target) }

// brief gives an error of iwarp's a text that names neither the package nor, if it is about the call, call and peer.
func brief(op string, err error) error {
	if text, ours := iwarp.Brief(op, err); ours {
		return briefer{err, text}
	}
	return err
}

// lost is the error of a connection that has ended with no word of the peer's.
func lost(err error) error {
	if errors.Is(err, iwarp.ErrPeerClosed) {
		return io.ErrUnexpectedEOF
	}
	return err
}
