package iwarp

import (
	"bufio"
	"context"
	"fmt"
	"net"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// Delayed startup: MPA begins on a TCP connection that has carried a stream of
// octets before. What the two sides say to each other to agree on that is theirs.

// Buffered returns conn with what r has buffered in front, for a connection that was
// read through r up to now: the first octets of MPA may have come along with the last
// of the streaming mode. QPs take those first, and use the connection itself from
// then on. r must read from conn directly.
//
// After a rejection, too, r may be used again: no octet is taken from it but by
// reading, and none is read ahead into it. [Q13] [Q14]
func Buffered(conn net.Conn, r *bufio.Reader) net.Conn { return tcp.NewBuffered(conn, r) }

// Initiate makes a QP of a TCP connection on which the two sides have agreed to start
// MPA, this side as Initiator (RFC 5044, section 7.1.3), or Passive (CULLEY).
// lastMessage, if there is one, is the last of the streaming mode: it is sent first.
// With mpa.DialectStartKey there is none, as the other side is by definition the last
// to send such data. Of the streaming mode nothing may be unread; for what a
// bufio.Reader has read ahead there is Buffered.
//
// d has the settings; those of TCP, and the fallback, which would take another
// connection, are not used. After a failure the connection is closed, but for a
// rejection: that is a *RejectError, and conn is still a stream of octets. [Q14]
func Initiate(ctx context.Context, conn net.Conn, lastMessage []byte, d Dialer) (*QP, error) {
	return d.startMPA(ctx, conn, lastMessage)
}

// Upgrade is Initiate for a QP in StateIdle, which stays Idle if that fails.
func (d *Dialer) Upgrade(ctx context.Context, qp *QP, conn net.Conn) error {
	return d.upgrade(ctx, qp, conn, nil)
}

func (d *Dialer) startMPA(ctx context.Context, conn net.Conn, lastMessage []byte) (*QP, error) {
	started := false
	qp, err := d.dial(conn.RemoteAddr().String(), func(qp *QP) error {
		started = true
		return d.upgrade(ctx, qp, conn, lastMessage)
	})
	if !started {
		_ = conn.Close()
	}
	return qp, err
}

func (d *Dialer) upgrade(ctx context.Context, qp *QP, conn net.Conn, lastMessage []byte) error {
	ctx, cancel := d.bound(ctx)
	defer cancel()
	started := false
	err := d.with(qp, func(offer mpa.Offer) error {
		if err := sendLast(ctx, conn, lastMessage, offer.Dialect); err != nil {
			return err
		}
		started = true
		return d.initiate(ctx, qp, conn, offer, nil)
	})
	if !started {
		_ = conn.Close()
	}
	if err != nil {
		return &OpError{Op: "initiate", Addr: conn.RemoteAddr(), Err: err}
	}
	return nil
}

// sendLast ends the streaming mode of an Initiator.
//
// CULLEY, Section 8.1: "The "Active" side is defined as the last one to send
// streaming mode data." [K06]
func sendLast(ctx context.Context, conn net.Conn, message []byte, d mpa.Dialect) error {
	switch {
	case len(message) == 0:
		return nil
	case d == mpa.DialectStartKey:
		return fmt.Errorf("%w: with Start Keys the Initiator does not send the last message of the streaming mode", ErrInvalid)
	}
	return answer(ctx, conn, message)
}

// Respond waits for the MPA Request on a TCP connection on which the two sides
// have agreed to start MPA, this side as Responder (RFC 5044, section 7.1.3), or
// Active (CULLEY). lastMessage, if there is one, is the last of the streaming mode:
// it is sent first. Of the streaming mode nothing may be unread; for what a
// bufio.Reader has read ahead there is Buffered. After an error the connection is
// closed. [Q14] [K06]
func Respond(ctx context.Context, conn net.Conn, lastMessage []byte, cfg ListenConfig) (*Request, error) {
	rnic := cfg.RNIC
	if rnic == nil && cfg.PD != nil {
		rnic = cfg.PD.rnic
	}
	if rnic == nil {
		rnic = NewRNIC(RNICConfig{})
	}
	r, err := respondLater(ctx, conn, rnic, lastMessage, cfg)
	if err != nil {
		_ = conn.Close()
		return nil, &OpError{Op: "respond", Addr: conn.RemoteAddr(), Err: err}
	}
	return r, nil
}

// respondLater ends the streaming mode and reads the Request.
func respondLater(ctx context.Context, conn net.Conn, rnic *RNIC, lastMessage []byte, cfg ListenConfig) (*Request, error) {
	if len(lastMessage) > 0 {
		if err := answer(ctx, conn, lastMessage); err != nil {
			return nil, err
		}
	}
	r := &Request{rnic: rnic, pd: cfg.PD, conn: conn, counts: tally{&rnic.startup}}
	err := r.read(ctx, &cfg)
	if err != nil {
		r.counts.failed(err)
	}
	return r, err
}
