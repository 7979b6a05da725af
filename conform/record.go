package conform

import (
	"net"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
)

// recorded is a connection that the record is of, if there is one.
func (s *session) recorded(conn net.Conn) net.Conn {
	if s.opts.Record == nil {
		return conn
	}
	ours := capture.Forward
	if s.role() == mpa.RoleInitiator {
		ours = capture.Backward
	}
	tapped, err := capture.Tap(conn, s.opts.Record, ours)
	if err != nil {
		_ = conn.Close()
		s.inconclusive("the connection cannot be recorded: %v", err)
	}
	return tapped
}

// recordedSocket is one whose datagrams the record is of, if there is one.
func recordedSocket(pc *net.UDPConn, record *capture.Writer) script.Socket {
	if record == nil {
		return pc
	}
	return struct {
		capture.UDPSocket
		deadline
	}{capture.TapUDP(pc, record), pc}
}

// deadline is what a recorded socket has of its own.
type deadline interface{ SetReadDeadline(time.Time) error }
