package iwarp

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// A Request is a peer's wish for a connection: accept or reject it, or Close.
type Request struct {
	rnic *RNIC
	pd   *PD
	conn net.Conn
	m    *mpa.Responder

	mu       sync.Mutex
	answered bool
}

// AcceptConfig says how to accept a Request. The zero value will do.
type AcceptConfig struct {
	// PD is where the QP is created; the Listener's, if nil.
	PD *PD
	// QP configures the QP that Accept creates.
	QP QPConfig
	// MPA is what we answer. If IRD and ORD are zero they become DefaultReadDepth.
	MPA mpa.Offer
	// NoReads leaves an IRD and ORD of zero as they are: no RDMA Reads.
	NoReads bool
	// Prepare, if it is set, gets the QP before the connection comes up: the
	// place to post receives.
	Prepare func(*QP) error
}

// Respond waits for the MPA Request on a TCP connection on which the two sides
// have agreed to start MPA, this side as Responder (RFC 5044, section 7.1.3).
// lastMessage, if there is one, is the last of the streaming mode: it is sent
// first. There must be nothing unread on the connection. After an error it is
// closed.
func Respond(ctx context.Context, conn net.Conn, lastMessage []byte, cfg ListenConfig) (*Request, error) {
	rnic := cfg.RNIC
	if rnic == nil && cfg.PD != nil {
		rnic = cfg.PD.rnic
	}
	if rnic == nil {
		rnic = NewRNIC(RNICConfig{})
	}
	if len(lastMessage) > 0 {
		if _, err := conn.Write(lastMessage); err != nil {
			_ = conn.Close()
			return nil, &OpError{Op: "respond", Addr: conn.RemoteAddr(), Err: err}
		}
	}
	r, err := respond(ctx, conn, rnic, cfg.PD, mpa.Limits{Timeout: cfg.RequestTimeout})
	if err != nil {
		_ = conn.Close()
		return nil, &OpError{Op: "respond", Addr: conn.RemoteAddr(), Err: err}
	}
	return r, nil
}

// respond reads the Request.
func respond(ctx context.Context, c net.Conn, rnic *RNIC, pd *PD, limits mpa.Limits) (*Request, error) {
	rnic.countStartup(func(s *StartupStats) { s.Started++ })
	m := mpa.NewResponder(limits)
	m.Start(time.Now())
	if err := exchange(ctx, c, m); err != nil {
		rnic.countFailure(err)
		return nil, err
	}
	return &Request{rnic: rnic, pd: pd, conn: c, m: m}, nil
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

// Accept creates a QP and brings up the connection.
func (r *Request) Accept(ctx context.Context, cfg AcceptConfig) (*QP, error) {
	pd := cfg.PD
	if pd == nil {
		pd = r.pd
	}
	if pd == nil {
		pd = r.rnic.AllocPD()
	}
	qp, err := pd.CreateQP(cfg.QP)
	if err == nil && cfg.Prepare != nil {
		err = cfg.Prepare(qp)
	}
	if err == nil {
		err = r.AcceptQP(ctx, qp, cfg)
	}
	if err != nil {
		if qp != nil {
			qp.destroy()
		}
		return nil, &OpError{Op: "accept", Addr: r.RemoteAddr(), Err: err}
	}
	return qp, nil
}

// AcceptQP brings up the connection on a QP in StateIdle; PD, QP and Prepare of
// the AcceptConfig are not used. If it fails the connection is closed, unless
// the offer was at fault: then the Request can still be answered.
func (r *Request) AcceptQP(ctx context.Context, qp *QP, cfg AcceptConfig) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return fmt.Errorf("%w: the request was answered before", ErrBadState)
	}
	reply, err := r.m.Accept(withDefaults(cfg.MPA, cfg.NoReads))
	if err != nil {
		return err
	}
	r.answered = true
	if err := r.send(ctx, reply); err != nil {
		return err
	}
	n := r.m.Negotiated()
	resolveDepths(&n)
	if err := qp.start(tcp.New(r.conn), Negotiated{Negotiated: n}); err != nil {
		_ = r.conn.Close()
		return err
	}
	r.rnic.countStartup(func(s *StartupStats) { s.Established++ })
	return nil
}

// Reject refuses the connection, with private data for the peer's consumer. TCP
// stays open and belongs to the caller: use it as a byte stream, or close it.
func (r *Request) Reject(privateData []byte) (net.Conn, error) {
	return r.RejectDepths(privateData, 0, 0)
}

// RejectDepths is Reject with the IRD and ORD that would have been acceptable:
// the peer's IRD must be at least ord (RFC 6581, section 9.1).
func (r *Request) RejectDepths(privateData []byte, ird, ord uint16) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return nil, &OpError{Op: "reject", Addr: r.RemoteAddr(), Err: ErrBadState}
	}
	reply, err := r.m.Reject(privateData, ird, ord)
	if err != nil {
		return nil, &OpError{Op: "reject", Addr: r.RemoteAddr(), Err: err}
	}
	r.answered = true
	if err := r.send(context.Background(), reply); err != nil {
		return nil, &OpError{Op: "reject", Addr: r.RemoteAddr(), Err: err}
	}
	r.rnic.countStartup(func(s *StartupStats) { s.Rejected++ })
	return r.conn, nil
}

// send sends the Reply in one write; an error closes the connection.
func (r *Request) send(ctx context.Context, reply []byte) error {
	if t, ok := ctx.Deadline(); ok {
		_ = r.conn.SetWriteDeadline(t)
		defer func() { _ = r.conn.SetWriteDeadline(time.Time{}) }()
	}
	if _, err := r.conn.Write(reply); err != nil {
		_ = r.conn.Close()
		return err
	}
	return nil
}

// Close drops the request without an answer.
func (r *Request) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return &OpError{Op: "close request", Err: ErrBadState}
	}
	r.answered = true
	return r.conn.Close()
}
