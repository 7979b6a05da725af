package iwarp

import (
	"bufio"
	"cmp"
	"context"
	"net"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/admission"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// A Request is a peer's request for a connection. Accept or reject it, or close it.
//
// In the client-server model (PeerToPeer of MPA is false), and before revision 2, the Initiator
// has to send first: what the accepting side posts waits until then. If both
// applications wait for the other to begin, nothing happens; the errors of the
// calls that give up wrap ErrAwaitingInitiator. Linux's programs over siw are like that
// (rdma-core's ucmatose -s, ib_write_lat): for them there is QPConfig.SendEarly.
type Request struct {
	ln     *Listener       // nil: of Respond
	slot   *admission.Slot // at the Listener
	rnic   *RNIC
	named  *RNIC // rnic, if the consumer has named it: then PD and QP have to be of it
	pd     *PD
	conn   net.Conn       // over MPA
	m      *mpa.Responder // with conn
	over   SegmentRequest // over a SegmentNetwork
	counts startupCounters
	preset *Preset // the Listener's, or the last Accept's

	untouched     bool // nobody but package net has set options of conn
	tolerateEarly bool
	rtrTimeout    time.Duration

	mu        sync.Mutex
	answered  bool
	dismissed <-chan struct{} // closed when nobody waits any more for the peer that Reject has refused; nil: nobody does
}

// read reads the peer's MPA Request.
func (r *Request) read(ctx context.Context, cfg *ListenConfig) error {
	r.counts.count(func(s *StartupStats) { s.Started++ })
	r.preset, r.tolerateEarly, r.rtrTimeout = cfg.Preset, cfg.TolerateEarly, cmp.Or(cfg.RTRTimeout, defaultRTRTimeout)
	r.m = mpa.NewResponder(mpa.ResponderConfig{
		Timeout: cfg.RequestTimeout, Kind: r.rnic.kind,
		Dialects: cfg.Preset.serves(cfg.Dialects), Messages: cfg.Messages,
		Markers: cfg.Markers || r.rnic.markers, NoCRC: r.rnic.crc.noCRC(cfg.NoCRC),
	})
	r.m.Start(time.Now())
	return r.exchange(ctx, nil)
}

// exchange sends a frame of ours, if there is one, and takes those that the peer owes.
func (r *Request) exchange(ctx context.Context, frame []byte) error {
	return r.rnic.phase(r.conn).Exchange(ctx, r.m, frame)
}

// MPA returns the peer's MPA Request: private data, IRD and ORD as sent, revision,
// dialect, and the rest. Over SCTP it is what an Initiate says of that: the dialect is
// mpa.DialectRFC6581 for an Enhanced one.
func (r *Request) MPA() *mpa.Request {
	if r.made() != nil {
		return new(mpa.Request)
	}
	if r.over != nil {
		return r.over.Request()
	}
	return r.m.Request()
}

// PrivateData returns the private data of the peer's consumer.
func (r *Request) PrivateData() []byte { return r.MPA().PrivateData }

// link returns the connection, or session, that the Request came by.
func (r *Request) link() interface {
	evictable
	LocalAddr() net.Addr
} {
	if r.over != nil {
		return r.over
	}
	return r.conn
}

// RNIC returns the RNIC that Accept uses: the Listener's, unless the AcceptConfig names a PD of another.
func (r *Request) RNIC() *RNIC {
	if r.made() != nil {
		return nil
	}
	return r.rnic
}

// PD returns the PD of the ListenConfig, which may be nil.
func (r *Request) PD() *PD {
	if r.made() != nil {
		return nil
	}
	return r.pd
}

// RemoteAddr returns the peer's address.
func (r *Request) RemoteAddr() net.Addr {
	if r.made() != nil {
		return nil
	}
	return r.link().RemoteAddr()
}

// LocalAddr returns our address.
func (r *Request) LocalAddr() net.Addr {
	if r.made() != nil {
		return nil
	}
	return r.link().LocalAddr()
}

// Buffered returns conn with what r has buffered put in front of it, for a connection that was read through r up to
// now: the first bytes of MPA may have come along with the last of the streaming mode. A QP takes those first, and
// uses the connection itself from then on. r must read from conn directly.
//
// r may be used again after a rejection, too: bytes are taken from it only by reading, and none are read
// ahead into it.
func Buffered(conn net.Conn, r *bufio.Reader) net.Conn { return tcp.NewBuffered(conn, r) }

// Respond waits for the MPA Request on a TCP connection on which the two sides have agreed to start MPA,
// this side as Responder (RFC 5044, section 7.1.3) or Active (CULLEY). lastMessage, if it is not empty,
// is the last message of the streaming mode, and is sent first. All data of the streaming mode must have
// been read; if a bufio.Reader has read ahead, pass Buffered. After an error the connection is closed.
func (cfg *ListenConfig) Respond(ctx context.Context, conn net.Conn, lastMessage []byte) (*Request, error) {
	if conn == nil {
		return nil, &OpError{Op: "respond", Err: errNoConnGiven}
	}
	if err := cfg.given(ctx); err != nil {
		_ = conn.Close()
		return nil, &OpError{Op: "respond", Addr: conn.RemoteAddr(), Err: err}
	}
	rnic := cfg.rnic()
	r := &Request{rnic: rnic, named: cfg.named(), pd: cfg.PD, conn: conn, counts: startupCounters{&rnic.startup}}
	if err := r.respond(ctx, lastMessage, cfg); err != nil {
		_ = conn.Close()
		return nil, &OpError{Op: "respond", Addr: conn.RemoteAddr(), Err: err}
	}
	return r, nil
}

// respond ends the streaming mode and reads the Request.
func (r *Request) respond(ctx context.Context, lastMessage []byte, cfg *ListenConfig) error {
	if err := cfg.consistent(); err != nil {
		return err
	}
	if len(lastMessage) > 0 {
		if err := r.rnic.phase(r.conn).Send(ctx, lastMessage); err != nil {
			return err
		}
	}
	err := r.read(ctx, cfg)
	if err != nil {
		r.counts.failed(err)
	}
	return err
}
