package iwarp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// Default depths of RDMA Reads, where the consumer does not say: what RNICs
// commonly offer, and what a peer may have them grown to.
const (
	DefaultReadDepth = 32
	DefaultMaxIRD    = 128
)

// startupMachine is an mpa.Initiator or mpa.Responder.
type startupMachine interface {
	Output() []byte
	Input(now time.Time, b []byte) (n int, err error)
	Want() int
	Deadline() time.Time
	HandleTimeout(now time.Time) error
	PeerClosed(cause error) error
}

// A guard ends reads and writes on a connection with a context.
type guard struct {
	ctx  context.Context
	conn net.Conn
	stop func() bool
}

func watch(ctx context.Context, c net.Conn) guard {
	return guard{ctx, c, context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })}
}

// until sets the deadline of what follows; zero is none. The context is looked
// at last: what it has set may just have been overwritten.
func (g guard) until(t time.Time) error {
	if err := g.conn.SetDeadline(t); err != nil {
		return err
	}
	return g.ctx.Err()
}

// lift takes the guard off. It fails if the context has ended: then the deadline
// may still be set.
func (g guard) lift() error {
	if !g.stop() {
		return g.ctx.Err()
	}
	return g.conn.SetDeadline(time.Time{})
}

// cause is the context's error, if it has ended, or that of a read or write.
func (g guard) cause(err error) error {
	if g.ctx.Err() != nil {
		return g.ctx.Err()
	}
	return err
}

// exchange sends frame, if there is one, and feeds a machine from the connection
// until it wants no more. Not one octet beyond the startup frames is read: what
// follows is the first FPDU's, or the consumer's. [Q13]
func exchange(ctx context.Context, log *slog.Logger, c net.Conn, m startupMachine, frame []byte) error {
	g := watch(ctx, c)
	defer g.stop()
	if err := g.until(m.Deadline()); err != nil {
		return g.cause(m.PeerClosed(err))
	}
	for len(frame) > 0 || m.Want() > 0 {
		err := writeFrame(log, c, m, frame)
		if err == nil {
			frame, err = readFrame(log, c, m)
		}
		if err != nil {
			err = g.cause(err)
			g.part(log, m, err)
			return err
		}
	}
	return g.lift()
}

// part closes a connection in order if the two ends differ in the revision, behind
// the last word that there may be. The caller closes it in any case.
//
// draft-carrier-rddp-rnic-interop-00, section 5.2.1: it "would send an MPA Reply
// Frame with the Rev field equal to one and then gracefully close the connection",
// and section 5.2.2: "will gracefully close the connection after it reads the
// incompatible Rev field". Where there is a second attempt, that does not wait. [N04]
func (g guard) part(log *slog.Logger, m startupMachine, err error) {
	var s *mpa.StartupError
	if !errors.As(err, &s) || s.Failure != mpa.FailureRevision {
		return
	}
	if g.until(time.Now().Add(mpa.DefaultRequestTimeout)) == nil && writeFrame(log, g.conn, m, m.Output()) == nil {
		g.linger()
	}
}

// linger sends a FIN and waits for the peer's, until the deadline: what it sends
// meanwhile must not meet with a RST, which might overtake our last words.
func (g guard) linger() {
	if tcp.CloseWrite(g.conn) == nil {
		_, _ = io.Copy(io.Discard, g.conn)
	}
}

// writeFrame sends a frame in one write: some RNICs want it in one segment.
func writeFrame(log *slog.Logger, c net.Conn, m startupMachine, frame []byte) error {
	if len(frame) == 0 {
		return nil
	}
	if _, err := c.Write(frame); err != nil {
		return startupError(m, err)
	}
	logFrame(log, c, "sent", frame)
	return nil
}

// readFrame reads until the machine has something to send, which it returns, or
// wants no more.
func readFrame(log *slog.Logger, c net.Conn, m startupMachine) (next []byte, err error) {
	var buf [mpa.StartupHeaderLen + mpa.MaxPrivateData]byte
	have := 0
	for m.Want() > 0 && len(next) == 0 {
		n, err := c.Read(buf[have : have+m.Want()])
		if n > 0 {
			_, err = m.Input(time.Now(), buf[have:have+n])
			have += n
		} else if err != nil {
			err = startupError(m, err)
		}
		if err != nil {
			return nil, err
		}
		next = m.Output()
	}
	logFrame(log, c, "received", buf[:have])
	return next, nil
}

// startupError says what a failed read or write means to the startup.
func startupError(m startupMachine, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && !m.Deadline().IsZero() {
		// The system's clock for deadlines may be a little ahead of ours.
		return m.HandleTimeout(maxTime(time.Now(), m.Deadline()))
	}
	return m.PeerClosed(err)
}

func maxTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// answer sends a Reply, or the last message of the streaming mode, in one write.
func answer(ctx context.Context, c net.Conn, b []byte) error {
	g := watch(ctx, c)
	defer g.stop()
	if err := g.until(time.Now().Add(mpa.DefaultRequestTimeout)); err != nil {
		return err
	}
	if _, err := c.Write(b); err != nil {
		return g.cause(err)
	}
	return g.lift()
}

// depths gives depths to an offer that has none, and keeps them within the RNIC's
// limit. [Z29]
func (r *RNIC) depths(o mpa.Offer, noReads bool) (mpa.Offer, error) {
	most := mpa.NoNegotiation
	if r.limits.IRD > 0 {
		most = min(r.limits.IRD, most)
	}
	if int(o.IRD) > most && o.IRD != mpa.NoNegotiation {
		return o, &LimitError{Resource: "IRD of a connection", Limit: int64(most), Wanted: int64(o.IRD)}
	}
	if o.IRD == 0 && o.ORD == 0 && !noReads {
		o.IRD, o.ORD = uint16(min(DefaultReadDepth, most)), DefaultReadDepth
	}
	if o.MaxIRD == 0 && !noReads {
		o.MaxIRD = DefaultMaxIRD
	}
	o.MaxIRD = uint16(min(int(o.MaxIRD), most))
	return o, nil
}

// resolve puts numbers where 0x3FFF left the depths to the ULP: the default, or
// what is known of the peer.
func (r *RNIC) resolve(n *mpa.Negotiated) {
	if n.ORD == mpa.NoNegotiation {
		n.ORD = min(DefaultReadDepth, n.PeerIRD)
	}
	if n.IRD == mpa.NoNegotiation {
		n.IRD = DefaultReadDepth
		if n.PeerORD != mpa.NoNegotiation {
			n.IRD = max(n.IRD, min(n.PeerORD, DefaultMaxIRD))
		}
	}
	if r.limits.IRD > 0 {
		n.IRD = uint16(min(int(n.IRD), r.limits.IRD))
	}
}

// turnDown ends a connection that the startup frames have brought up and that
// cannot be used: the peer learns why by a Terminate, which is given the time to
// arrive. A Responder that must wait for an FPDU sends none: it closes in order.
// [E05] [E10] [E11] [Q11]
func turnDown(ctx context.Context, c net.Conn, n mpa.Negotiated) error {
	defer func() { _ = c.Close() }()
	qp := engine.New(engine.Config{})
	if err := qp.Connect(engine.Params{Negotiated: n, MULPDU: mpa.MinMULPDU}); err != nil {
		return err
	}
	err := publicError(qp.Cause())
	g := watch(ctx, c)
	defer g.stop()
	if g.until(time.Now().Add(mpa.DefaultRequestTimeout)) != nil {
		return err
	}
	bufs := net.Buffers(qp.Output(time.Now(), engine.NewGather()))
	if _, failed := tcp.WriteBuffers(c, &bufs); failed == nil {
		g.linger()
	}
	return err
}
