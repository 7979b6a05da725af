package lowerlayer

import "net"

// A SegmentedConn is a connection of an MPA-aware TCP: iwarp.Stack says what its methods promise.
type SegmentedConn interface {
	net.Conn
	CloseWrite() error
	Reset() error
	ShowAhead(f func(at uint64, data []byte))
	EMSS() int
	WriteFPDUs(fpdus [][]byte) (n int, err error)
}
