//go:build !unix

package tcp

import "net"

// rawConn does not exist here: the net package's calls are used.
type rawConn struct{ rx *rx }

func newRaw(net.Conn) *rawConn { return nil }

func (*rawConn) recv() error                         { panic("unreachable") }
func (*rawConn) tryRecv() (bool, error)              { panic("unreachable") }
func (*rawConn) recvNow() (bool, error)              { panic("unreachable") }
func (*rawConn) look() (bool, bool)                  { panic("unreachable") }
func (*rawConn) outcome() error                      { panic("unreachable") }
func (*rawConn) trySend([][]byte) (int, bool, error) { panic("unreachable") }
func (*rawConn) send([][]byte) (int, error)          { panic("unreachable") }
func (*rawConn) limits() (int, int)                  { return 0, 0 }
func (*rawConn) over() (bool, int, error)            { return false, 0, nil }
func (*rawConn) awaitOver() (bool, error)            { return false, nil }
func (*rawConn) gone() error                         { return nil }
func (*rawConn) finishes(bool)                       {}
func (*rawConn) endRecords(bool) bool                { return false }
