package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/mpa"
)

// A Request is a peer's wish for a connection: accept or reject it, or Close.
type Request struct {
	ln     *Listener // nil: of Respond
	rnic   *RNIC
	pd     *PD
	conn   net.Conn
	m      *mpa.Responder
	counts tally
	preset *Preset // the Listener's, or that of the last Accept

	mu       sync.Mutex
	answered bool
}

// AcceptConfig says how to accept a Request. The zero value will do.
type AcceptConfig struct {
	// PD is where the QP is created; the Listener's, if nil.
	PD *PD
	// QP configures the QP that Accept creates.
	QP QPConfig
	// Preset, if there is one, has what the peer needs where the settings here are
	// zero. If nil, the Listener's.
	Preset *Preset
	// MPA is what we answer. Kind may narrow that of the QP, which it is if zero;
	// Markers adds to what QP and RNIC ask for. If IRD and ORD are zero they become
	// DefaultReadDepth.
	MPA mpa.Offer
	// NoReads leaves an IRD and ORD of zero as they are: no RDMA Reads.
	NoReads bool
	// Prepare, if it is set, gets the QP before the connection comes up: the
	// place to post receives.
	Prepare func(*QP) error
}

// read reads the peer's MPA Request.
func (r *Request) read(ctx context.Context, cfg *ListenConfig) error {
	r.counts.count(func(s *StartupStats) { s.Started++ })
	r.preset = cfg.Preset
	r.m = mpa.NewResponder(mpa.ResponderConfig{
		Timeout: cfg.RequestTimeout, Kind: r.rnic.kind, Dialects: cfg.Preset.serves(cfg.Dialects), Messages: cfg.Messages,
		Markers: cfg.Markers || r.rnic.markers, NoCRC: cfg.NoCRC,
	})
	r.m.Start(time.Now())
	return exchange(ctx, r.rnic.log, r.conn, r.m, nil)
}

// MPA returns the peer's MPA Request: private data, IRD and ORD, revision,
// dialect, and the rest.
func (r *Request) MPA() *mpa.Request { return r.m.Request() }

// PrivateData returns what the peer's consumer has to say.
func (r *Request) PrivateData() []byte { return r.m.Request().PrivateData }

// IRD and ORD return the peer's depths of RDMA Reads as sent; 0x3FFF where it
// negotiates none.
func (r *Request) IRD() uint16 { return r.m.Request().IRD }

// ORD is described with IRD.
func (r *Request) ORD() uint16 { return r.m.Request().ORD }

// Revision returns the revision of the peer's MPA Request.
func (r *Request) Revision() uint8 { return r.m.Request().Revision }

// Dialect returns the startup dialect.
func (r *Request) Dialect() mpa.Dialect { return r.m.Request().Dialect }

// PeerToPeer reports whether either side may send first.
func (r *Request) PeerToPeer() bool { return r.m.Request().PeerToPeer }

// RemoteAddr returns the peer's address.
func (r *Request) RemoteAddr() net.Addr { return r.conn.RemoteAddr() }

// LocalAddr returns our address.
func (r *Request) LocalAddr() net.Addr { return r.conn.LocalAddr() }

// Accept creates a QP and brings up the connection. In some dialects the peer owes a
// frame behind our answer, which Accept waits for. If the error wraps ErrLimit,
// ErrInvalid, ErrVersion, ErrMarkersRequired or mpa.ErrOffer the Request can still be
// answered. (Behind a private data message the peer's wish for markers comes with its
// Start Key: then our answer is out, and another is ErrBadState.)
func (r *Request) Accept(ctx context.Context, cfg AcceptConfig) (*QP, error) {
	qp, err := r.accept(ctx, cfg)
	if err != nil {
		return nil, &OpError{Op: "accept", Addr: r.RemoteAddr(), Err: err}
	}
	return qp, nil
}

func (r *Request) accept(ctx context.Context, cfg AcceptConfig) (*QP, error) {
	qp, err := r.createQP(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Prepare != nil {
		err = cfg.Prepare(qp)
	}
	if err == nil {
		err = r.bringUp(ctx, qp, cfg)
	}
	if err != nil {
		qp.destroy()
		return nil, err
	}
	return qp, nil
}

func (r *Request) createQP(cfg AcceptConfig) (*QP, error) {
	pd := cmp.Or(cfg.PD, r.pd)
	if pd != nil {
		return pd.CreateQP(cfg.QP)
	}
	pd, err := r.rnic.allocPD(true)
	if err != nil {
		return nil, err
	}
	qp, err := pd.CreateQP(cfg.QP)
	if err != nil {
		_ = pd.Close()
	}
	return qp, err
}

// AcceptQP brings up the connection on a QP in StateIdle; PD, QP and Prepare of
// the AcceptConfig are not used. If it fails the connection is closed, unless
// the QP or the offer was at fault: then the Request can still be answered.
func (r *Request) AcceptQP(ctx context.Context, qp *QP, cfg AcceptConfig) error {
	if err := r.bringUp(ctx, qp, cfg); err != nil {
		return &OpError{Op: "accept", Addr: r.RemoteAddr(), Err: err}
	}
	return nil
}

func (r *Request) bringUp(ctx context.Context, qp *QP, cfg AcceptConfig) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return errAnswered
	}
	if err := qp.claim(); err != nil {
		return err
	}
	defer qp.unclaim()
	reply, err := r.reply(qp, &cfg)
	if err != nil {
		return err
	}
	r.answered = true
	if err := r.start(ctx, qp, reply); err != nil {
		_ = r.conn.Close()
		if !errors.Is(err, ErrEvicted) { // which was counted
			r.counts.failed(err)
		}
		return err
	}
	r.counts.count(func(s *StartupStats) { s.Established++ })
	return nil
}

// reply returns the accepting answer, if the QP can have the connection at all.
func (r *Request) reply(qp *QP, cfg *AcceptConfig) ([]byte, error) {
	r.preset = cmp.Or(cfg.Preset, r.preset)
	offer, err := r.preset.settle(qp.rnic, r.m.Request(), cfg.MPA, cfg.NoReads)
	if err == nil {
		offer.Dialect = r.Dialect()
		offer, err = qp.narrow(offer)
	}
	if err != nil {
		return nil, err
	}
	if err := qp.stream().answerable(r.m.Request(), offer.Kind); err != nil {
		return nil, err
	}
	return r.m.Accept(time.Now(), offer)
}

func (r *Request) start(ctx context.Context, qp *QP, reply []byte) error {
	if err := r.send(ctx, reply); err != nil {
		return err
	}
	if !r.m.Done() {
		if err := r.await(ctx); err != nil {
			return err
		}
	}
	return enter(ctx, qp, r.conn, Negotiated{Negotiated: r.preset.heed(r.m.Negotiated())})
}

// await waits for the frame that the peer owes behind our answer: an Rtr frame or a
// Start Key. Until then the connection is half-open again. [Z04]
func (r *Request) await(ctx context.Context) error {
	if r.ln == nil {
		return exchange(ctx, r.rnic.log, r.conn, r.m, nil)
	}
	release := r.ln.hold(r.conn)
	err := exchange(ctx, r.rnic.log, r.conn, r.m, nil)
	if evicted := release(); evicted {
		return ErrEvicted
	}
	return err
}

var errAnswered = fmt.Errorf("%w: the request was answered before", ErrBadState)

// Reject refuses the connection, with private data for the peer's consumer. TCP
// stays open and belongs to the caller: use it as a byte stream, or close it. With
// mpa.DialectStartKey closing TCP is the rejection: the Conn is closed already.
func (r *Request) Reject(privateData []byte) (net.Conn, error) {
	return r.RejectDepths(privateData, 0, 0)
}

// RejectDepths is Reject with the IRD and ORD that would have been acceptable:
// the peer's IRD must be at least ord (RFC 6581, section 9.1).
func (r *Request) RejectDepths(privateData []byte, ird, ord uint16) (net.Conn, error) {
	if err := r.reject(privateData, ird, ord); err != nil {
		return nil, &OpError{Op: "reject", Addr: r.RemoteAddr(), Err: err}
	}
	return r.conn, nil
}

func (r *Request) reject(privateData []byte, ird, ord uint16) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return errAnswered
	}
	if err := r.preset.checkPrivateData(r.m.Request().Dialect, len(privateData)); err != nil {
		return err
	}
	reply, err := r.m.Reject(privateData, ird, ord)
	if err != nil {
		return err
	}
	r.answered = true
	if err := r.send(context.Background(), reply); err != nil {
		_ = r.conn.Close()
		r.counts.failed(err)
		return err
	}
	r.counts.count(func(s *StartupStats) { s.Rejected++ })
	if !r.m.KeepsTCP() {
		return r.conn.Close()
	}
	return nil
}

// send sends the Reply, if there is one.
func (r *Request) send(ctx context.Context, reply []byte) error {
	if len(reply) == 0 {
		return nil
	}
	if err := answer(ctx, r.conn, reply); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
			return err
		}
		return r.m.PeerClosed(err)
	}
	logFrame(r.rnic.log, r.conn, "sent", reply)
	return nil
}

// Close drops the request without an answer: the connection is closed. An
// Initiator may take that for a peer that does not know revision 2, and try again.
func (r *Request) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return &OpError{Op: "close request", Addr: r.RemoteAddr(), Err: errAnswered}
	}
	r.answered = true
	return r.conn.Close()
}
