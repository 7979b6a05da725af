package sctpkernel

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/sctp"
)

// A Conn is an association. Its methods may be called at any time; Run is called once.
type Conn struct {
	s       *socket
	assoc   int32
	port    uint16 // ours
	bound   netip.Addr
	remote  Addr
	streams int
	largest int // message that fits into a packet, at first
	limit   atomic.Int64
	asked   time.Time // when limit was; Send's
	control []byte    // Send's
	partial []byte    // of a message whose end has not come; Run's

	cause  atomic.Pointer[error] // why it ends
	once   sync.Once
	done   chan struct{}
	onEnd  func()
	routed sync.Once
	local  Addr // set by routed

	mu          sync.Mutex
	sent, acked map[uint16]uint64 // messages, by streams
}

// peelOff makes an association that has come up on a socket independent of it.
//
// RFC 5043, section 11.1: "an endpoint MUST verify and inspect the Adaptation Indication"; with none, or any other,
// "DDP procedures MUST NOT be performed upon this association." The kernel notifies of it right after the
// association itself, if there was one.
func peelOff(s *socket, up notification, peer netip.AddrPort) (*Conn, error) {
	c := &Conn{
		assoc: up.assoc, remote: Addr{peer}, streams: int(min(up.out, up.in)),
		done: make(chan struct{}), sent: make(map[uint16]uint64), acked: make(map[uint16]uint64),
	}
	fd := -1
	err := s.do(func(whole int) (err error) {
		fd, err = peel(whole, up.assoc)
		return err
	})
	if err != nil {
		return nil, s.gone(err)
	}
	if c.s, err = watch(fd); err != nil {
		return nil, err
	}
	if err = c.inspect(); err != nil {
		c.Abort(err.Error())
		return nil, err
	}
	return c, nil
}

// inspect looks at an association that was peeled off, and at the peer's indication. One that has been ended meanwhile
// has nothing to look at any more: the kernel has notified of why.
func (c *Conn) inspect() error {
	if err := c.s.do(c.look); err != nil {
		return c.s.gone(err)
	}
	return c.indicated()
}

// gone is why the kernel does not know an association any more that has come up: it may have been ended meanwhile.
func (s *socket) gone(why error) error {
	for {
		m, err := s.tryRecv()
		if err != nil {
			return why
		}
		n := m.notification()
		cause := aborted(n.cause, n.info)
		m.release()
		if n.is(commLost) {
			return cause
		}
	}
}

// look asks what does not change, and what is the path's. A process that ends leaves to the kernel what was sent
// before.
func (c *Conn) look(fd int) error {
	if err := abortOnClose(fd, false); err != nil {
		return err
	}
	at, err := name(fd)
	if err != nil {
		return err
	}
	c.bound, c.port = at.Addr(), at.Port()
	n, err := fragmentation(fd, c.assoc)
	c.largest = max(n&^3, sctp.MinMaxMessage)
	c.limit.Store(int64(c.largest))
	return err
}

// indicated inspects the peer's Adaptation Layer Indication.
func (c *Conn) indicated() error {
	m, err := c.s.tryRecv()
	if err != nil {
		return &sctp.Violation{Rule: sctp.RuleIndication, Reason: "there is none"}
	}
	defer m.release()
	if n := m.notification(); !n.indicates(sctp.AdaptationDDP) {
		return &sctp.Violation{Rule: sctp.RuleIndication, Reason: "none, or that of another protocol"}
	}
	return nil
}

// Streams is how many there are in both directions.
func (c *Conn) Streams() int { return c.streams }

// MaxMessage is the largest message that needs no fragmentation now, in bytes. It is never more than at first.
func (c *Conn) MaxMessage() int { return int(c.limit.Load()) }

// maxDistance is how many TSNs from the first missing one on Linux takes (SCTP_TSN_MAP_SIZE). What is beyond it drops.
const maxDistance = 4096

// largePacket is that of an Ethernet with jumbo frames. What takes larger ones is loopback, which loses none.
const largePacket = 9 << 10

// Ahead is how many bytes of messages can come ahead of a missing one, on a network.
func (c *Conn) Ahead() int { return maxDistance * min(c.largest, largePacket) }

// LocalAddr is the address by which the peer reaches us.
func (c *Conn) LocalAddr() net.Addr {
	c.routed.Do(func() {
		at := c.bound
		if at.IsUnspecified() {
			if r, err := lowerlayer.Route(c.remote.AddrPort); err == nil {
				at = r
			}
		}
		c.local = Addr{netip.AddrPortFrom(at, c.port)}
	})
	return c.local
}

// RemoteAddr is the peer's first address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Send sends a message, and waits until the kernel has taken it. One goroutine calls it.
//
// A message is counted under the same lock as it is sent: settled asks what is unacknowledged of those that it finds
// counted.
func (c *Conn) Send(m sctp.Message) error {
	if len(m.Data) > c.largest {
		return sctp.ErrSize
	}
	c.control = c.about(m).append(c.control[:0])
	var err error
	e := c.s.rc.Write(func(fd uintptr) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if err = sendmsg(int(fd), m.Data, c.control); err == nil {
			c.sent[m.Stream]++
			c.followPath(int(fd))
		}
		return !again(err)
	})
	if e != nil {
		return net.ErrClosed
	}
	return err
}

// about is what goes with a message. The machine waits for the acknowledgement of control messages.
//
// RFC 5043, section 10: "The adaptation layer MUST use the Unordered option on all Data Chunks".
func (c *Conn) about(m sctp.Message) sndInfo {
	flags := uint16(flagUnordered)
	if m.PPID == sctp.PPIDControl {
		flags |= flagSackImmediately
	}
	return sndInfo{stream: m.Stream, flags: flags, ppid: m.PPID, assoc: c.assoc}
}

// pathTime is after how long the kernel is asked again what fits into a packet: it does not tell by itself.
const pathTime = time.Second

// followPath has the limit follow the path's MTU, which may have become less. What was built before, and does not fit
// any more, the kernel fragments.
//
// RFC 5043, section 9: "SCTP data chunk fragmentation MUST NOT be used unless the alternative is IP fragmentation."
func (c *Conn) followPath(fd int) {
	now := time.Now()
	if now.Sub(c.asked) < pathTime {
		return
	}
	c.asked = now
	if n, err := fragmentation(fd, c.assoc); err == nil {
		c.limit.Store(int64(min(max(n&^3, sctp.MinMaxMessage), c.largest)))
	}
}

// settled returns the streams whose messages have all arrived since the last time, and how many they were.
func (c *Conn) settled() map[uint16]uint64 {
	all := make(map[uint16]uint64)
	_ = c.s.do(func(fd int) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if n, err := unacknowledged(fd); err != nil || n > 0 {
			return err
		}
		for id, n := range c.sent {
			if n > c.acked[id] {
				c.acked[id], all[id] = n, n
			}
		}
		return nil
	})
	return all
}

// Shutdown ends the association in order: what was sent still arrives. It waits for that. If the context ends before,
// Abort is left to do.
func (c *Conn) Shutdown(ctx context.Context) error {
	c.noteCause(net.ErrClosed)
	eof := sndInfo{flags: flagEOF, assoc: c.assoc}.append(nil)
	if err := c.s.do(func(fd int) error { return sendmsg(fd, nil, eof) }); err != nil {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Abort ends the association at once, and tells the peer why.
func (c *Conn) Abort(text string) {
	c.noteCause(net.ErrClosed)
	c.s.abort(c.assoc, text)
	c.closeDescriptor()
}

// noteCause notes why the association ends; the first reason is it.
func (c *Conn) noteCause(err error) { c.cause.CompareAndSwap(nil, &err) }

// closeDescriptor closes the descriptor, when the association is over.
func (c *Conn) closeDescriptor() {
	c.once.Do(func() {
		c.s.close()
		close(c.done)
		if c.onEnd != nil {
			c.onEnd()
		}
	})
}
