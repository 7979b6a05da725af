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

type peerGone struct{}

func (peerGone) Error() string { return "the peer has closed the connection, and reads no more" }
func (peerGone) Unwrap() error { return iwarp.ErrPeerClosed }

// opError is an error as package net has it. io.EOF is returned as it is.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // It is never wrapped.
		return err
	}
	return &net.OpError{Op: op, Net: c.network, Source: c.local, Addr: c.remote, Err: err}
}

// lost is the error of a connection that has ended with no word of the peer's.
func lost(err error) error {
	if errors.Is(err, iwarp.ErrPeerClosed) {
		return io.ErrUnexpectedEOF
	}
	return err
}
