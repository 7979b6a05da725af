package sctpudp

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/pion/logging"
	pion "github.com/pion/sctp"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/sctp"
)

// maxRTO bounds the time after which what was not acknowledged is sent again, in milliseconds: pion's own bound is a
// minute, and a QP waits for no end so long.
const maxRTO = 2000

// A Conn is an association. Its methods may be called at any time; Run is called once.
type Conn struct {
	path  *path
	assoc *pion.Association
	acks  chan struct{} // something was acknowledged
	beat  *time.Timer
	begun chan struct{} // closed by Run

	// What Run was given.
	receive func(sctp.Message)
	settles func(stream uint16, n uint64)

	mu      sync.Mutex
	streams map[uint16]*stream
	given   uint32 // messages, of all streams, each of which takes one TSN
}

// A stream is one that messages were sent or received on.
type stream struct {
	*pion.Stream
	written, acked uint64
	last           uint32        // what Conn.given was with the last message of the stream
	drained        chan struct{} // closed when all that has come was handed out
}

// newConn has pion begin where the handshake has ended.
func newConn(p *path) (*Conn, error) {
	c := &Conn{path: p, acks: make(chan struct{}, 1), begun: make(chan struct{}), streams: make(map[uint16]*stream)}
	quiet := logging.NewDefaultLoggerFactory()
	quiet.DefaultLogLevel, quiet.Writer, quiet.ScopeLevels = logging.LogLevelDisabled, io.Discard, nil
	assoc, err := pion.ClientWithOptions(
		pion.WithNetConn(p), pion.WithLoggerFactory(quiet), pion.WithName("iwarp"),
		pion.WithSNAP(initOf(&p.ours), initOf(&p.theirs)),
		pion.WithEnableInterleaving(false), pion.WithEnableZeroChecksum(false),
		pion.WithRTOMax(maxRTO), pion.WithMTU(uint32(p.mtu())),
		pion.WithMaxReceiveBufferSize(uint32(p.e.cfg.Window+lag)),
	)
	if err != nil {
		_ = p.closeWith(err)
		return nil, err
	}
	c.assoc = assoc
	c.mu.Lock() // which pulse takes too
	c.beat = time.AfterFunc(p.e.cfg.Heartbeat, c.pulse)
	c.mu.Unlock()
	return c, nil
}

// initOf returns an INIT without parameters.
func initOf(s *chunk.Setup) []byte {
	c := chunk.Chunk{Type: chunk.TypeInit, Value: s.AppendFields(nil)}
	return c.Append(nil)
}

// pulse asks a silent peer whether it is there, and gives up one that is not. pion never does.
func (c *Conn) pulse() {
	select {
	case <-c.path.done:
		return
	default:
	}
	every := c.path.e.cfg.Heartbeat
	switch silent := time.Since(time.Unix(0, c.path.heard.Load())); {
	case silent >= c.path.e.cfg.Silence:
		_ = c.path.closeWith(lowerlayer.ErrSilent)
		return
	case silent >= every:
		c.path.heartbeat()
	}
	c.mu.Lock()
	c.beat.Reset(every)
	c.mu.Unlock()
}

// Streams is how many there are in both directions.
func (c *Conn) Streams() int { return c.path.streams() }

// MaxMessage is the largest message that needs no fragmentation, in bytes.
func (c *Conn) MaxMessage() int { return (c.path.mtu() - chunk.HeaderLen - chunk.DataLen) &^ 3 }

// Ahead is how many bytes of messages a peer that does its part can have come ahead of a missing one, with Hold in
// time: what waits here and in pion when that is called, what the peer has under way then, and as much for the call
// to take effect.
func (c *Conn) Ahead() int { return 4 * c.path.e.cfg.Window }

// HoldFrom is from how many bytes held ahead of missing messages on Hold is to be called.
func (c *Conn) HoldFrom() int { return c.path.e.cfg.Window / 2 }

// Hold says whether the consumer holds so much ahead of missing messages that only those are to come.
func (c *Conn) Hold(on bool) { c.path.arrived.setHold(on) }

// AckProgress changes whenever the peer has acknowledged more.
func (c *Conn) AckProgress() uint32 { return c.path.probes.reached() }

// Unacked returns how many bytes of a stream's messages the peer has not acknowledged.
func (c *Conn) Unacked(id uint16) int {
	c.mu.Lock()
	s := c.streams[id]
	c.mu.Unlock()
	if s == nil {
		return 0
	}
	return int(s.BufferedAmount())
}

// RoundTrip is how long it takes there and back: what pion has measured, and no less than the handshake took.
func (c *Conn) RoundTrip() time.Duration {
	return max(c.measured(), c.path.answered)
}

// measured is what pion has measured of it, by what was acknowledged.
func (c *Conn) measured() time.Duration {
	return time.Duration(c.assoc.SRTT() * float64(time.Millisecond))
}

// LocalAddr is that of UDP.
func (c *Conn) LocalAddr() net.Addr { return c.path.LocalAddr() }

// RemoteAddr is that of UDP.
func (c *Conn) RemoteAddr() net.Addr { return c.path.RemoteAddr() }

// maxUnsent is about how many bytes of messages pion is given that it has not sent. Short messages that it is given
// while it sends others go in one packet.
const maxUnsent = 16 << 10

// Send gives SCTP a message to send, and waits before that while too much is not under way. One goroutine calls it.
func (c *Conn) Send(m sctp.Message) error {
	if len(m.Data) > c.MaxMessage() {
		return sctp.ErrSize
	}
	s, err := c.stream(m.Stream)
	if err != nil {
		return err
	}
	if err := c.awaitRoom(len(m.Data)); err != nil {
		return err
	}
	c.give(s)
	if _, err := s.WriteSCTP(m.Data, pion.PayloadProtocolIdentifier(m.PPID)); err != nil {
		return err
	}
	c.mu.Lock()
	s.written++
	c.mu.Unlock()
	c.acknowledged() // it may have been, before it was counted
	return nil
}

// awaitRoom waits until pion may be given another message of n bytes.
func (c *Conn) awaitRoom(n int) error {
	for c.unsent() > uint32(maxUnsent/max(n, 1)) {
		select {
		case <-c.path.wrote:
		case <-c.path.done:
			return net.ErrClosed
		}
	}
	return nil
}

// unsent returns how many messages pion has not sent.
func (c *Conn) unsent() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.given - c.path.probes.messages()
}

// give counts a message that pion is about to be given.
func (c *Conn) give(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given++
	s.last = c.given
}

// Unsent reports whether pion has a message of a stream that it has not sent yet.
func (c *Conn) Unsent(id uint16) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	return s != nil && int32(s.last-c.path.probes.messages()) > 0
}

// stream returns one, opening it if the peer has not.
func (c *Conn) stream(id uint16) (*stream, error) {
	<-c.begun
	c.mu.Lock()
	s := c.streams[id]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	p, err := c.assoc.OpenStream(id, 0) // or the one that the peer has opened meanwhile
	if err != nil {
		return nil, err
	}
	return c.keep(id, p), nil
}

// keep notes a stream, and has it read, once.
func (c *Conn) keep(id uint16, p *pion.Stream) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		return s
	}
	// RFC 5043, section 10: "The adaptation layer MUST use the Unordered option on all Data Chunks".
	p.SetReliabilityParams(true, pion.ReliabilityTypeReliable, 0)
	p.OnBufferedAmountLow(c.acknowledged)
	s := &stream{Stream: p, drained: make(chan struct{})}
	c.streams[id] = s
	go c.read(id, s)
	return s
}

func (c *Conn) acknowledged() {
	select {
	case c.acks <- struct{}{}:
	default:
	}
}

// Run reports what happens, from several goroutines, until the association has ended and lost was called. receive gets
// a message, whose Data is its own; acked hears that the peer has the first n messages of a stream. If the peer has
// ended the association in order, lost waits for the last message. Otherwise one of them may still be called after it,
// by a goroutine that was on its way.
func (c *Conn) Run(receive func(sctp.Message), acked func(stream uint16, n uint64), lost func(error)) {
	c.receive, c.settles = receive, acked
	close(c.begun)
	go c.tellAcks()
	for {
		p, err := c.assoc.AcceptStream()
		if err != nil {
			break
		}
		c.keep(p.StreamIdentifier(), p)
	}
	c.drop()
	if errors.Is(c.path.reason, lowerlayer.ErrShutdown) {
		c.drain()
	}
	lost(c.path.reason)
}

// drain waits until all that came before the peer's SHUTDOWN was handed out: the peer knows it as delivered.
func (c *Conn) drain() {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.streams))
	c.mu.Unlock()
	for _, s := range all {
		<-s.drained
	}
}

// drop gives back what pion has: its timers go on by themselves.
func (c *Conn) drop() {
	_ = c.path.Close()
	c.beat.Stop()
	_ = c.assoc.Close()
}

// tellAcks reports streams on which nothing is unacknowledged.
func (c *Conn) tellAcks() {
	for {
		select {
		case <-c.acks:
		case <-c.path.done:
			return
		}
		for id, n := range c.settled() {
			c.settles(id, n)
		}
	}
}

// settled returns the streams whose messages have all arrived since the last time, and how many they were. The count
// is read before the state, so that what is written meanwhile does not count.
func (c *Conn) settled() map[uint16]uint64 {
	all := make(map[uint16]uint64)
	c.mu.Lock()
	for id, s := range c.streams {
		if s.written > s.acked {
			all[id] = s.written
		}
	}
	c.mu.Unlock()
	for id, n := range all {
		c.mu.Lock()
		s := c.streams[id]
		c.mu.Unlock()
		if s.BufferedAmount() > 0 {
			delete(all, id)
			continue
		}
		c.mu.Lock()
		s.acked = n
		c.mu.Unlock()
	}
	return all
}

// read reads one stream.
func (c *Conn) read(id uint16, s *stream) {
	defer close(s.drained)
	buf := make([]byte, maxPacket) // pion has no fragments
	var held fragments
	for {
		n, ppid, err := s.ReadSCTP(buf)
		if err != nil {
			return
		}
		c.path.arrived.read(n)
		if m, ok := c.join(id, &held, pieceOf(uint32(ppid), append([]byte(nil), buf[:n]...))); ok {
			c.receive(m)
		}
	}
}

// Shutdown ends the association in order: what was sent still arrives. It waits for that, also where the peer has
// begun. If the context ends before, Abort is left to do.
func (c *Conn) Shutdown(ctx context.Context) error {
	c.path.noteCause(net.ErrClosed)
	err := c.assoc.Shutdown(ctx)
	if errors.Is(err, pion.ErrShutdownNonEstablished) { // which goes on with the peer's
		err = c.ended(ctx)
	}
	if err == nil {
		_ = c.path.Close()
	}
	return err
}

// ended waits for the end of the association.
func (c *Conn) ended(ctx context.Context) error {
	select {
	case <-c.path.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Abort ends the association at once, and tells the peer why. It does not wait; pion's would, and on a busy machine it
// gives up before it has sent anything.
func (c *Conn) Abort(text string) {
	c.path.abort(chunk.CauseUserAbort, text)
	_ = c.path.Close()
}
