package script

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// A Socket is one of UDP, as *net.UDPConn is.
type Socket interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
	SetReadDeadline(time.Time) error
}

// Answer waits on a UDP socket until somebody has opened an association, of which it plays the passive end. It does not
// own the socket, which is for one association after the other. The error wraps ErrRefused if the other end
// does not want an association with who says what ours says.
func Answer(ctx context.Context, pc Socket, ours chunk.Setup, until time.Time) (*Association, error) {
	conn := &answered{Socket: pc}
	ours.Cookie = []byte("a cookie")
	a := newAssociation(conn, ours)
	stop := context.AfterFunc(ctx, func() { _ = pc.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	for ctx.Err() == nil {
		if err := conn.SetReadDeadline(until); err != nil {
			return nil, err
		}
		n, from, err := pc.ReadFromUDPAddrPort(a.buf)
		if err != nil {
			return nil, cmp.Or(context.Cause(ctx), fmt.Errorf("nobody has opened an association: %w", errNotYet))
		}
		switch up, err := a.answer(from, a.buf[:n]); {
		case err != nil:
			return nil, err
		case up:
			return a, nil
		}
	}
	return nil, ctx.Err()
}

// answered is one peer's part of a socket.
type answered struct {
	Socket
	peer netip.AddrPort
}

// Read reads the peer's next packet. Those of others are lost.
func (c *answered) Read(b []byte) (int, error) {
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil || from == c.peer {
			return n, err
		}
	}
}

// Write writes to the peer.
func (c *answered) Write(b []byte) (int, error) { return c.WriteToUDPAddrPort(b, c.peer) }

// Close leaves the socket to others.
func (c *answered) Close() error { return nil }

// answer takes a packet of the handshake: RFC 9260, section 5.1. An INIT takes the place of one before it.
func (a *Association) answer(from netip.AddrPort, packet []byte) (up bool, err error) {
	h, ok := chunk.ParseHeader(packet)
	chunks, _ := chunk.In(packet)
	if !ok || !chunk.Sealed(packet) || len(chunks) == 0 {
		return false, nil
	}
	conn, first := a.conn.(*answered), chunks[0]
	switch {
	case first.Type == chunk.TypeInit && h.Tag == 0:
		a.asked(from, h, first)
	case from != conn.peer || h.Tag != a.ours.Tag:
	case first.Type == chunk.TypeAbort:
		return false, refused(first)
	case first.Type == chunk.TypeCookieEcho && bytes.Equal(first.Value, a.ours.Cookie):
		a.takeAll(chunks)
		return true, nil
	}
	return false, nil
}

// asked answers an INIT.
func (a *Association) asked(from netip.AddrPort, h chunk.Header, init chunk.Chunk) {
	peer, err := chunk.ParseSetup(bytes.Clone(init.Value))
	if err != nil || peer.Tag == 0 {
		return
	}
	a.conn.(*answered).peer = from
	a.ports = [2]uint16{h.Destination, h.Source}
	if peer.Tag != a.Peer.Tag { // not the same again
		a.ours.Tag = rand.Uint32() | 1
	}
	a.Peer, a.cum, a.Addresses = peer, peer.TSN-1, addresses(init.Value)
	a.send(chunk.TypeInitAck, a.ours.Append(nil))
}

// Asked waits for the first message of a session, and returns its stream; Next returns the message. It reports false if
// none has come in time, or the association has ended.
func (a *Association) Asked(until time.Time) (stream uint16, ok bool) {
	m, ok := a.Next(until)
	if ok {
		a.got = append([]Message{m}, a.got...)
		a.held += len(m.Data)
	}
	return m.Stream, ok
}
