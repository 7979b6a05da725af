package carrier

import "net"

// A SegmentedConn is a connection of an MPA-aware TCP: iwarp.SegmentedConn, which says what its methods promise.
type SegmentedConn interface {
	net.Conn
	CloseWrite() error
	Reset() error
	ShowAhead(f func(at uint64, octets []byte))
	EMSS() int
	WriteFPDUs(fpdus [][]byte) (octets int, err error)
}
