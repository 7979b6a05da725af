package script

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/sctp"
)

// DDPSetup returns what an end of DDP says.
func DDPSetup() chunk.Setup {
	return chunk.Setup{Out: 16, In: 16, Adaptation: sctp.AdaptationDDP, HasAdaptation: true}
}

// An Association is an end of an SCTP association in UDP (RFC 6951) that is played by hand: the active one (Associate)
// or the passive one (Answer), and used by one goroutine. It sends each message in a packet of its own, at once;
// sends it again until it is acknowledged; and answers what the other end sends, both while
// something is waited for. Methods that wait take the time until which they do.
type Association struct {
	conn  datagrams
	ports [2]uint16
	ours  chunk.Setup
	// Peer is what the other end has said in its INIT or INIT ACK.
	Peer chunk.Setup
	// Addresses is how many addresses of its own it has announced there.
	Addresses int

	tsn     uint32            // our next
	unacked map[uint32][]byte // packets by TSN
	again   time.Time         // when they are sent again
	cum     uint32            // all of the other end's up to here have come
	ahead   map[uint32]bool
	got     []Message
	parts   chunk.Fragments[Message]
	held    int // bytes of what has come and nobody has taken
	end     End
	why     string
	mute    bool // HoldAcks
	buf     []byte
}

// datagrams are those of one peer.
type datagrams interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
}

// A Message is a user message that has come.
type Message struct {
	sctp.Message
	Chunks int // more than one if it was fragmented
}

// MinFragmented is a size that no message has, in bytes, which may be fragmented: RFC 5043,
// section 9, has one of 516 bytes go in one DATA chunk.
const MinFragmented = sctp.MinMaxMessage + 1

// ErrRefused says that the other end has answered the INIT with an ABORT.
var ErrRefused = errors.New("the association is refused by ABORT")

// errNotYet: nothing has come within the time.
var errNotYet = errors.New("nothing within the time")

// resend is after what time a packet that was not answered is sent again.
const resend = 300 * time.Millisecond

// Associate opens an association over a connected UDP socket, which it owns from then on.
// The error wraps ErrRefused if the other end does not want it.
func Associate(ctx context.Context, conn net.Conn, ours chunk.Setup, until time.Time) (*Association, error) {
	local, remote := conn.LocalAddr().(*net.UDPAddr), conn.RemoteAddr().(*net.UDPAddr)
	a := newAssociation(conn, ours)
	a.ports = [2]uint16{uint16(local.Port), uint16(remote.Port)}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := a.handshake(ctx, until); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return a, nil
}

func newAssociation(conn datagrams, ours chunk.Setup) *Association {
	ours.Tag, ours.TSN, ours.Window = rand.Uint32()|1, rand.Uint32(), 1<<17
	return &Association{
		conn: conn, ours: ours, tsn: ours.TSN,
		unacked: map[uint32][]byte{}, ahead: map[uint32]bool{}, buf: make([]byte, 1<<16),
	}
}

// handshake exchanges the four chunks: RFC 9260, section 5.1.
func (a *Association) handshake(ctx context.Context, until time.Time) error {
	ack, err := a.ask(ctx, a.packet(0, chunk.Chunk{Type: chunk.TypeInit, Value: a.ours.Append(nil)}),
		chunk.TypeInitAck, until)
	if err != nil {
		return err
	}
	if a.Peer, err = chunk.ParseSetup(ack.Value); err != nil || a.Peer.Tag == 0 || a.Peer.Cookie == nil {
		return fmt.Errorf("an INIT ACK without its fields: % x", ack.Value)
	}
	a.cum, a.Addresses = a.Peer.TSN-1, addresses(ack.Value)
	_, err = a.ask(ctx, a.packet(a.Peer.Tag, chunk.Chunk{Type: chunk.TypeCookieEcho, Value: a.Peer.Cookie}),
		chunk.TypeCookieAck, until)
	return err
}

// addresses counts those that an INIT or INIT ACK announces: RFC 9260, sections 3.3.2.1 and 3.3.3.
func addresses(value []byte) (n int) {
	all, _ := chunk.Parameters(value[chunk.SetupLen:])
	for _, p := range all {
		if p.Type == chunk.ParamIPv4 || p.Type == chunk.ParamIPv6 {
			n++
		}
	}
	return n
}

// packet returns one with a tag.
func (a *Association) packet(tag uint32, chunks ...chunk.Chunk) []byte {
	return chunk.Header{Source: a.ports[0], Destination: a.ports[1], Tag: tag}.Packet(chunks...)
}

// ask sends a packet until a chunk comes. What comes with it is taken.
func (a *Association) ask(ctx context.Context, packet []byte, want chunk.Type, until time.Time) (chunk.Chunk, error) {
	for time.Now().Before(until) && ctx.Err() == nil {
		if _, err := a.conn.Write(packet); err != nil {
			return chunk.Chunk{}, err
		}
		next := time.Now().Add(resend)
		if next.After(until) {
			next = until
		}
		if c, err := a.await(ctx, want, next); !errors.Is(err, errNotYet) {
			return c, err
		}
	}
	if ctx.Err() != nil {
		return chunk.Chunk{}, ctx.Err()
	}
	return chunk.Chunk{}, fmt.Errorf("no answer to the handshake: %w", errNotYet)
}

// await waits for a chunk. If none comes in time, the error is errNotYet.
func (a *Association) await(ctx context.Context, want chunk.Type, until time.Time) (chunk.Chunk, error) {
	for ctx.Err() == nil {
		chunks, err := a.read(until)
		if err != nil {
			break
		}
		for i, c := range chunks {
			switch c.Type {
			case want:
				a.takeAll(chunks[i+1:])
				c.Value = bytes.Clone(c.Value)
				return c, nil
			case chunk.TypeAbort:
				return chunk.Chunk{}, refused(c)
			}
		}
	}
	return chunk.Chunk{}, errNotYet
}

func refused(c chunk.Chunk) error {
	if text := c.Reason(); text != "" {
		return fmt.Errorf("%w: %q", ErrRefused, text)
	}
	return ErrRefused
}

// End returns how the other end has ended the association, as far as was waited, and the
// text of its ABORT: FIN for a SHUTDOWN, RST for an ABORT.
func (a *Association) End() (End, string) { return a.end, a.why }

// Leave ends the association in order, or aborts it if that takes until later, and closes the
// socket.
func (a *Association) Leave(until time.Time) {
	if a.Settle(until) && a.end == Open {
		a.send(chunk.TypeShutdown, binary.BigEndian.AppendUint32(nil, a.cum))
		for a.end == Open && a.step(until) {
			a.got, a.held = nil, 0 // nobody will
		}
	}
	_ = a.Close()
}

// Close aborts the association, and closes the socket.
func (a *Association) Close() error {
	if a.end == Open {
		a.send(chunk.TypeAbort, nil)
	}
	return a.conn.Close()
}
