package carrier

import (
	"net"
	"time"
)

// A SegmentedConn is a connection of an MPA-aware TCP: iwarp.SegmentedConn, which says what its methods promise.
type SegmentedConn interface {
	net.Conn
	CloseWrite() error
	Reset() error
	ShowAhead(f func(at uint64, octets []byte))
	EMSS() int
	WriteFPDUs(fpdus [][]byte) (octets int, err error)
}

// RoundTrip is what a [SegmentedConn] may have besides: how long the way to the peer and back takes, by its TCP's estimate. Zero: not known.
type RoundTrip interface{ RoundTrip() time.Duration }
