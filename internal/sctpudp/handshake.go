package sctpudp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/sctp"
)

// onInit answers an INIT, and forgets it: all that has to be known of it is in the cookie.
//
// RFC 9260, section 5.1: "the endpoint MUST NOT allocate any resources" before the COOKIE ECHO.
func (e *Endpoint) onInit(from netip.AddrPort, p *packet) {
	theirs, ok := parseSetup(p.chunks[0].Value)
	switch {
	case p.Tag != 0 || theirs.Tag == 0:
		return
	case e.isRetired():
		e.turnAway(from, p, theirs.Tag)
		return
	case !ok || !isDDP(&theirs):
		// RFC 5043, section 7.1: it "SHOULD terminate all requests to establish an association with any different
		// Adaptation Indication."
		e.turnAway(from, p, theirs.Tag)
		return
	}
	t := token{minted: time.Since(e.began), ours: e.setup(), theirs: theirs, ties: e.tiesWith(key{from, p.Source})}
	said := t.ours
	said.Cookie = e.minter.mint(&t, from, p.Header)
	e.say(from, p.Source, theirs.Tag, chunk.TypeInitAck, said.Append(nil))
}

// tiesWith returns the Tie-Tags of the association with a peer, or zeros if there is none.
func (e *Endpoint) tiesWith(k key) ties {
	e.mu.Lock()
	defer e.mu.Unlock()
	if old := e.peers[k]; old != nil {
		return old.ties
	}
	return ties{}
}

// onCookieEcho begins the association that a cookie of ours is for.
//
// RFC 9260, section 5.2.4, has a table for a COOKIE ECHO from a peer with which there is an association. It knows
// the association if both tags in the cookie are its own (D), and replaces it, since the peer has begun anew, if
// neither is, and the cookie was made when there was this association already (A). Every cookie has a tag of
// ours that no INIT of ours had, so that (B) cannot be. Any other is an old one, or late (C), and is discarded.
func (e *Endpoint) onCookieEcho(from netip.AddrPort, p *packet) {
	t, ok := e.minter.redeem(p.chunks[0].Value, from, p.Header)
	if !ok || t.ours.Tag != p.Tag {
		return
	}
	e.mu.Lock()
	known := e.tags[t.ours.Tag]
	e.mu.Unlock()
	var fresh *Conn
	switch with := e.tiesWith(key{from, p.Source}); {
	case known != nil: // even if the cookie is old
	case t.staleness(time.Since(e.began)) > 0:
		e.stale(from, p, &t)
	case e.isRetired() || e.spent.knows(spending{t.ours.Tag, t.minted}):
		e.turnAway(from, p, t.theirs.Tag)
	case with == ties{} || with == t.ties:
		known, fresh = e.welcome(from, p.Source, &t)
	}
	if known == nil || known.theirs.Tag != t.theirs.Tag {
		return
	}
	e.say(from, p.Source, t.theirs.Tag, chunk.TypeCookieAck, nil)
	if fresh != nil {
		e.offer(fresh)
	}
	known.deliver(from, p, p.chunks[1:])
}

// stale answers a cookie that is too old.
//
// RFC 9260, section 5.1.5: "the endpoint MUST transmit an ERROR chunk with a "Stale Cookie" error cause". Section
// 3.3.10.3: it says how old, in microseconds.
func (e *Endpoint) stale(from netip.AddrPort, p *packet, t *token) {
	by := min(t.staleness(time.Since(e.began)).Microseconds(), math.MaxUint32)
	cause := chunk.Parameter{Type: chunk.CauseStaleCookie, Value: binary.BigEndian.AppendUint32(nil, uint32(by))}
	if e.answers.spend(time.Now()) {
		e.say(from, p.Source, t.theirs.Tag, chunk.TypeError, cause.Append(nil))
	}
}

// welcome makes an association of a peer's, if there is room for it. Otherwise the peer tries again.
func (e *Endpoint) welcome(from netip.AddrPort, port uint16, t *token) (*path, *Conn) {
	path := e.newPath(from, port, t.ours, t.theirs)
	path.answered = time.Since(e.began) - t.minted
	if len(e.accepted) == cap(e.accepted) || !e.adopt(path, nil) {
		return nil, nil
	}
	e.spent.spend(time.Since(e.began), spending{t.ours.Tag, t.minted})
	c, err := newConn(path)
	if err != nil {
		_ = path.closeWith(err)
		return nil, nil
	}
	return path, c
}

// offer has Accept return an association. Its peer knows by then that it is up, and what the consumer says comes after
// that.
func (e *Endpoint) offer(c *Conn) {
	e.accepted <- c // welcome has seen room, and nobody else sends
	if e.isRetired() {
		e.abortUnaccepted() // Retire may have done so before
	}
}

// A handshake is under way from here.
type handshake struct {
	e      *Endpoint
	to     netip.AddrPort
	ours   chunk.Setup
	heard  chan chunk.Chunk // what comes with our tag before the COOKIE ACK, whole packets of one chunk or their first
	source uint16
	over   bool // it was refused; the goroutine that receives uses it

	path  atomic.Pointer[path] // of the association to be; there is one when the COOKIE ECHO is sent
	acked chan struct{}        // closed with the COOKIE ACK
	full  bool                 // the association has no room; valid when acked is closed
}

// firstRTO is the time after which the first chunk is sent again; it doubles.
const firstRTO = 500 * time.Millisecond

// Dial opens an association with the Endpoint at an address, whose SCTP port is that of UDP.
func (e *Endpoint) Dial(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	ctx, cancel := lowerlayer.Limit(ctx, e.cfg.HandshakeTimeout)
	defer cancel()
	h := &handshake{
		e: e, to: netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), ours: e.setup(), source: to.Port(),
		heard: make(chan chunk.Chunk, 8), acked: make(chan struct{}),
	}
	e.mu.Lock()
	e.handshakes[h.ours.Tag] = h
	e.mu.Unlock()
	if err := h.run(ctx); err != nil {
		h.giveUp(err)
		return nil, err
	}
	return newConn(h.path.Load())
}

// giveUp forgets the handshake, and the association, which may have begun meanwhile: at the peer it has begun with the
// COOKIE ECHO, whatever became of the COOKIE ACK, and an ABORT ends it there.
func (h *handshake) giveUp(why error) {
	h.e.mu.Lock()
	if h.e.handshakes[h.ours.Tag] == h {
		delete(h.e.handshakes, h.ours.Tag)
	}
	h.e.mu.Unlock()
	if p := h.path.Load(); p != nil {
		p.abort(chunk.CauseUserAbort, "given up")
		_ = p.closeWith(why)
	}
}

// hear takes what comes from the peer that is dialed, in the order in which it comes: what follows a refusal does not
// count. The goroutine that receives calls it.
func (h *handshake) hear(from netip.AddrPort, p *packet) {
	if from.Addr() != h.to.Addr() || p.Source != h.source || h.over {
		return
	}
	if path := h.path.Load(); path != nil && p.chunks[0].Type == chunk.TypeCookieAck {
		h.establish(path, from, p)
		return
	}
	c := p.chunks[0]
	c.Value = bytes.Clone(c.Value)
	select {
	case h.heard <- c:
		h.over = refusal(&c) != nil
	default:
	}
}

// refusal is what a chunk says that ends a handshake, or nil.
func refusal(c *chunk.Chunk) error {
	switch {
	case c.Type == chunk.TypeAbort:
		return lowerlayer.ErrRefused
	case c.Type == chunk.TypeError && isStaleCookie(c):
		return fmt.Errorf("%w: its cookie has become stale", lowerlayer.ErrRefused)
	}
	return nil
}

// establish puts the association in the handshake's place, as the COOKIE ACK has come. What comes right after it, in
// the same packet or the next, is the association's already: an ABORT is not sent again.
func (h *handshake) establish(path *path, from netip.AddrPort, p *packet) {
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
	began := time.Now()
	ack, err := h.ask(ctx, 0, chunk.TypeInit, h.ours.Append(nil), chunk.TypeInitAck)
	if err != nil {
		return err
	}
	theirs, ok := parseSetup(ack.Value)
	switch {
	case !ok || len(theirs.Cookie) == 0:
		return fmt.Errorf("%w: its INIT ACK cannot be used", lowerlayer.ErrRefused)
	case !isDDP(&theirs):
		h.e.say(h.to, h.source, theirs.Tag, chunk.TypeAbort, nil)
		return &sctp.Violation{Rule: sctp.RuleIndication, Reason: "in the INIT ACK"}
	}
	path := h.e.newPath(h.to, h.source, h.ours, theirs)
	path.answered = time.Since(began)
	h.path.Store(path)
	_, err = h.ask(ctx, theirs.Tag, chunk.TypeCookieEcho, theirs.Cookie, chunk.TypeCookieAck)
	return err
}

// ask sends a chunk until another has come.
func (h *handshake) ask(ctx context.Context, tag uint32, kind chunk.Type, value []byte,
	want chunk.Type) (c chunk.Chunk, err error) {
	again := time.NewTimer(0)
	defer again.Stop()
	for rto := firstRTO; ; {
		select {
		case c = <-h.heard:
			if err := refusal(&c); c.Type == want || err != nil {
				return c, err
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
			return c, lowerlayer.Unanswered(ctx)
		case <-h.e.done:
			return c, fmt.Errorf("%w: the socket was closed", lowerlayer.ErrNoAnswer)
		}
	}
}
