package startup

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// part closes a connection in order if the two ends differ in the revision, after the machine's last
// frame if it has one. The caller closes it in any case.
//
// draft-carrier-rddp-rnic-interop-00, section 5.2.1: it "would send an MPA Reply Frame with the Rev field
// equal to one and then gracefully close the connection", and section 5.2.2: "will gracefully close the
// connection after it reads the incompatible Rev field". Where there is a second attempt, that does not
// wait. [N04]
func (p Phase) part(g guard, m Machine, err error) {
	var s *mpa.StartupError
	if !errors.As(err, &s) || s.Failure != mpa.FailureRevision || g.until(time.Now().Add(writeLimit)) != nil {
		return
	}
	if frame := m.Output(); len(frame) > 0 {
		if _, err := p.Conn.Write(frame); err != nil {
			return
		}
		p.trace(true, frame)
	}
	p.linger()
}

// TurnDown sends an FPDU, if there is one, on a connection that is up and cannot be used, and closes it
// in order.
func (p Phase) TurnDown(ctx context.Context, fpdu []byte) {
	defer func() { _ = p.Conn.Close() }()
	g := watch(ctx, p.Conn)
	defer g.stop()
	if g.until(time.Now().Add(writeLimit)) != nil {
		return
	}
	if len(fpdu) > 0 {
		if _, err := p.Conn.Write(fpdu); err != nil {
			return
		}
	}
	p.linger()
}

// linger sends a FIN and waits for the peer's, until the deadline: what the peer sends meanwhile must not
// meet with a RST, which might overtake our last words.
func (p Phase) linger() {
	if tcp.CloseWrite(p.Conn) == nil {
		_, _ = io.Copy(io.Discard, p.Conn)
	}
}
