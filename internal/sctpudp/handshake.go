package sctpudp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/carrier"
	"github.com/goiwarp/iwarp/sctp"
	"github.com/goiwarp/iwarp/sctp/chunk"
)

// onInit answers an INIT, and forgets it: all that has to be known of it is in the cookie.
//
// RFC 9260, section 5.1: "the endpoint MUST NOT allocate any resources" before the COOKIE ECHO.
func (e *Endpoint) onInit(from netip.AddrPort, p *packet) {
	theirs, ok := parseSetup(p.chunks[0].Value)
	switch {
	case p.Tag != 0 || theirs.Tag == 0:
		return
	case e.resigned():
		e.turnAway(from, p, theirs.Tag)
		return
	case !ok || !isDDP(&theirs):
		// RFC 5043, section 7.1: it "SHOULD terminate all requests to establish an association with any different
		// Adaptation Indication."
		e.turnAway(from, p, theirs.Tag)
		return
	}
	ours := e.setup()
	ours.Cookie = e.minter.mint(time.Now(), &ours, &theirs, from, p.Header)
	e.say(from, p.Source, theirs.Tag, chunk.TypeInitAck, ours.Append(nil))
}

// onCookieEcho begins the association that a cookie of ours is for.
func (e *Endpoint) onCookieEcho(from netip.AddrPort, p *packet) {
	ours, theirs, ok := e.minter.redeem(time.Now(), p.chunks[0].Value, from, p.Header)
	if !ok || ours.Tag != p.Tag {
		return
	}
	e.mu.Lock()
	known := e.tags[ours.Tag]
	e.mu.Unlock()
	if known == nil && !e.resigned() {
		known = e.welcome(key{from.Addr(), p.Source}, from, ours, theirs)
	}
	if known == nil || known.theirs.Tag != theirs.Tag {
		return
	}
	e.say(from, p.Source, theirs.Tag, chunk.TypeCookieAck, nil)
	known.deliver(from, p, p.chunks[1:])
}

// welcome makes an association of a peer's, if there is room for it. Otherwise the peer tries again.
func (e *Endpoint) welcome(k key, from netip.AddrPort, ours, theirs chunk.Setup) *path {
	path := e.newPath(k, from, ours, theirs)
	if len(e.accepted) == cap(e.accepted) || !e.adopt(path, nil) {
		return nil
	}
	c, err := newConn(path)
	if err != nil {
		_ = path.end(err)
		return nil
	}
	e.accepted <- c // there is room, and nobody else sends
	return path
}

// A handshake is under way from here.
type handshake struct {
	e      *Endpoint
	to     netip.AddrPort
	ours   chunk.Setup
	heard  chan chunk.Chunk // what comes with our tag before the COOKIE ACK, whole packets of one chunk or their first
	source uint16

	path  atomic.Pointer[path] // of the association to be; there is one when the COOKIE ECHO is sent
	acked chan struct{}        // closed with the COOKIE ACK
	full  bool                 // the association has no room; valid when acked is closed
}

// firstRTO is the time after which the first chunk is sent again; it doubles.
const firstRTO = 500 * time.Millisecond

// Dial opens an association with the Endpoint at an address, whose SCTP port is that of UDP.
func (e *Endpoint) Dial(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.HandshakeTimeout)
	defer cancel()
	h := &handshake{
		e: e, to: netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), ours: e.setup(), source: to.Port(),
		heard: make(chan chunk.Chunk, 8), acked: make(chan struct{}),
	}
	e.mu.Lock()
	e.hands[h.ours.Tag] = h
	e.mu.Unlock()
	if err := h.run(ctx); err != nil {
		h.giveUp(err)
		return nil, err
	}
	return newConn(h.path.Load())
}

// giveUp forgets the handshake, and the association, which may have begun meanwhile: at the peer it has begun with the COOKIE
// ECHO, whatever became of the COOKIE ACK, and an ABORT ends it there.
func (h *handshake) giveUp(why error) {
	h.e.mu.Lock()
	if h.e.hands[h.ours.Tag] == h {
		delete(h.e.hands, h.ours.Tag)
	}
	h.e.mu.Unlock()
	if p := h.path.Load(); p != nil {
		p.abort(chunk.CauseUserAbort, "given up")
		_ = p.end(why)
	}
}

// hear takes what comes from the peer that is dialled. The goroutine that receives calls it.
func (h *handshake) hear(from netip.AddrPort, p *packet) {
	if from.Addr() != h.to.Addr() || p.Source != h.source {
		return
	}
	if path := h.path.Load(); path != nil && p.chunks[0].Type == chunk.TypeCookieAck {
		h.begin(path, from, p)
		return
	}
	c := p.chunks[0]
	c.Value = bytes.Clone(c.Value)
	select {
	case h.heard <- c:
	default:
	}
}

// begin puts the association in the handshake's place, as the COOKIE ACK has come. What comes right after it, in the
// same packet or the next, is the association's already: an ABORT is not sent again.
func (h *handshake) begin(path *path, from netip.AddrPort, p *packet) {
	select {
	case <-h.acked:
		return
	default:
	}
	if h.full = !h.e.adopt(path, h); !h.full {
		path.deliver(from, p, p.chunks[1:])
	}
	close(h.acked)
}

// run exchanges the four chunks: RFC 9260, section 5.1.
func (h *handshake) run(ctx context.Context) error {
	ack, err := h.ask(ctx, 0, chunk.TypeInit, h.ours.Append(nil), chunk.TypeInitAck)
	if err != nil {
		return err
	}
	theirs, ok := parseSetup(ack.Value)
	switch {
	case !ok || len(theirs.Cookie) == 0:
		return fmt.Errorf("%w: its INIT ACK cannot be used", carrier.ErrRefused)
	case !isDDP(&theirs):
		h.e.say(h.to, h.source, theirs.Tag, chunk.TypeAbort, nil)
		return &sctp.Violation{Rule: sctp.RuleIndication, Reason: "in the INIT ACK"}
	}
	h.path.Store(h.e.newPath(key{h.to.Addr(), h.source}, h.to, h.ours, theirs))
	_, err = h.ask(ctx, theirs.Tag, chunk.TypeCookieEcho, theirs.Cookie, chunk.TypeCookieAck)
	return err
}

// ask sends a chunk until another has come.
func (h *handshake) ask(ctx context.Context, tag uint32, kind chunk.Type, value []byte, want chunk.Type) (c chunk.Chunk, err error) {
	again := time.NewTimer(0)
	defer again.Stop()
	for rto := firstRTO; ; {
		select {
		case c = <-h.heard:
			switch c.Type {
			case want:
				return c, nil
			case chunk.TypeAbort:
				return c, carrier.ErrRefused
			}
		case <-h.acked:
			if h.full {
				return c, errors.New("too many associations")
			}
			return c, nil
		case <-again.C:
			h.e.say(h.to, h.source, tag, kind, value)
			again.Reset(rto)
			rto *= 2
		case <-ctx.Done():
			return c, fmt.Errorf("%w: %w", carrier.ErrNoAnswer, ctx.Err())
		case <-h.e.done:
			return c, fmt.Errorf("%w: the socket was closed", carrier.ErrNoAnswer)
		}
	}
}
