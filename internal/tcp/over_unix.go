//go:build unix && !linux

package tcp

import "io"

type loss struct{}

func (*rawConn) finishes(bool) {}

// end is the peer's FIN: here a write after a reset fails with EPIPE, and leaves the reset to who reads.
func (*rawConn) endError() error { return io.EOF }

func (*rawConn) gone() error                            { return nil }
func (*rawConn) over() (over bool, owed int, err error) { return false, 0, nil }
func (*rawConn) awaitOver() (known bool, err error)     { return false, nil }
