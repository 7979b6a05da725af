package conform

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/script"
)

// An SCTPListener is where the active end of DDP over SCTP, in UDP (RFC 6951), connects. If it has a command, the
// command is started for each association that a case needs, and ended after the case; without one, the peer has to
// come again by itself.
type SCTPListener struct {
	pc   *net.UDPConn
	wait time.Duration
	starter
}

// ListenSCTP listens on an address of UDP, whose port is that of SCTP, too. In the words of command, {host} and {port}
// stand for the address. wait bounds the wait for an association; if zero, DefaultWait.
func ListenSCTP(ctx context.Context, addr string, command []string, wait time.Duration) (*SCTPListener, error) {
	pc, err := new(net.ListenConfig).ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, err
	}
	return &SCTPListener{pc.(*net.UDPConn), cmp.Or(wait, DefaultWait), newStarter(command, pc.LocalAddr())}, nil
}

// Addr returns the address listened on.
func (l *SCTPListener) Addr() net.Addr { return l.pc.LocalAddr() }

// Close ends listening.
func (l *SCTPListener) Close() error {
	l.Release()
	return l.pc.Close()
}

// associate waits for an association.
func (l *SCTPListener) associate(ctx context.Context, ours chunk.Setup,
	record *capture.Writer) (a *script.Association, err error) {
	l.Release()
	err = l.await(ctx, l.wait, func(ctx context.Context) error {
		a, err = script.Answer(ctx, recordedSocket(l.pc, record), ours, time.Now().Add(l.wait))
		return err
	})
	return a, err
}
