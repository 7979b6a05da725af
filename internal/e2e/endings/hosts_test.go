package endings

import (
	"encoding/binary"
	"io"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A host has one connection of a small TCP, over packets in memory. It sends again what is not acknowledged, and takes
// nothing that comes ahead of order. Its program has the other end of a connection in memory, by which it calls its
// system.
type host struct {
	wire     rig.HushedSocket
	calls    *testrig.Conn
	patience time.Duration // for how long it sends again what is not acknowledged
	told     chan struct{} // closed when the peer has our FIN, or the connection is lost

	mu    sync.Mutex
	out   []byte // is sent, and not acknowledged
	una   uint32 // the place of its first byte in the stream
	fin   bool   // follows out; it takes a place, too
	rcv   uint32 // the place of the next byte that is to come
	ended bool   // by the peer's FIN
	heard time.Time
	again *time.Timer
	lost  error
}

// A hostConn is what a program has of its host's connection. It ends with the program: see iwarp.Stack.
type hostConn struct {
	*testrig.Conn
	host *host
}

var _ lowerlayer.PeerAcked = hostConn{}

func (c hostConn) PeerAcked() <-chan struct{} { return c.host.told }

func (c hostConn) AckProgress() uint32 {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	return c.host.una
}

func (c hostConn) HasUnacked() bool {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	return len(c.host.out) > 0
}

// LossError is nil for a peer that lacks our FIN alone: it may have ended.
func (c hostConn) LossError() error {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	if c.host.lost == syscall.ETIMEDOUT && len(c.host.out) == 0 {
		return nil
	}
	return c.host.lost
}

// parted reports whether the peer has all bytes of ours, and its FIN has come.
func (c hostConn) parted() bool {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	return len(c.host.out) == 0 && c.host.ended
}

// The bytes of a packet that follow its kind, its place and the place that is to come next are at most hostMSS. They
// are sent again after hostRTO.
const (
	hostMSS    = 1000
	hostHeader = 9
	hostRTO    = 300 * time.Millisecond
)

// The kinds of packets.
const (
	hostSends  = iota
	hostEnds   // a FIN follows the bytes
	hostResets // a RST
)

// hostPair returns what two programs have of a connection between their hosts, which is there until the test ends.
func hostPair(t *testing.T, h *rig.HushedSystem, delay, patience time.Duration) (a, b hostConn) {
	one, other := testrig.Link{Delay: delay}.Sockets()
	return newHost(t, rig.HushedSocket{Socket: one, Hush: h, End: 0}, patience),
		newHost(t, rig.HushedSocket{Socket: other, Hush: h, End: 1}, patience)
}

func newHost(t *testing.T, wire rig.HushedSocket, patience time.Duration) hostConn {
	program, calls := testrig.Pipe("a program", "its host")
	h := &host{wire: wire, calls: calls, patience: patience, told: make(chan struct{})}
	h.again = time.AfterFunc(hostRTO, h.sendAgain)
	go h.takeCalls()
	go h.takePackets()
	t.Cleanup(func() {
		h.again.Stop()
		_, _ = calls.Close(), wire.Close()
	})
	return hostConn{program, h}
}

// takeCalls sends what the program writes, and a FIN, or a RST, at its end.
func (h *host) takeCalls() {
	b := make([]byte, 1<<16)
	for {
		n, err := h.calls.Read(b)
		h.called(b[:n], err)
		if err != nil {
			return
		}
	}
}

func (h *host) called(data []byte, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := len(h.out)
	h.out, h.fin = append(h.out, data...), err == io.EOF
	switch {
	case h.lost != nil:
	case err == nil || h.fin:
		h.sendFromLocked(from)
	default:
		h.endLocked(syscall.ECONNRESET)
		h.sendLocked(hostResets, 0, nil)
	}
}

// sendFromLocked sends what is not acknowledged, from some byte of it on.
func (h *host) sendFromLocked(at int) {
	for ; len(h.out)-at > hostMSS; at += hostMSS {
		h.sendLocked(hostSends, at, h.out[at:at+hostMSS])
	}
	what := byte(hostSends)
	if h.fin {
		what = hostEnds
	}
	h.sendLocked(what, at, h.out[at:])
}

func (h *host) sendLocked(what byte, at int, data []byte) {
	p := binary.BigEndian.AppendUint32([]byte{what}, h.una+uint32(at))
	_, _ = h.wire.WriteToUDPAddrPort(append(binary.BigEndian.AppendUint32(p, h.rcv), data...), netip.AddrPort{})
}

// sendAgain sends again what is not acknowledged, until patience is over.
func (h *host) sendAgain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.lost != nil:
		return
	case len(h.out) == 0 && !h.fin:
		h.heard = time.Now()
	case time.Since(h.heard) > h.patience:
		h.endLocked(syscall.ETIMEDOUT)
		return
	default:
		h.sendFromLocked(0)
	}
	h.again.Reset(hostRTO)
}

// endLocked has the connection be lost, which the program learns when it reads.
func (h *host) endLocked(lost error) {
	h.lost = lost
	h.tellLocked()
	_, _ = h.calls.SetLinger(0), h.calls.Close()
}

func (h *host) tellLocked() {
	select {
	case <-h.told:
	default:
		close(h.told)
	}
}

func (h *host) takePackets() {
	b := make([]byte, hostHeader+hostMSS)
	for {
		n, _, err := h.wire.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		h.took(b[0], binary.BigEndian.Uint32(b[1:]), binary.BigEndian.Uint32(b[5:]), b[hostHeader:n])
	}
}

// took takes a packet in. Of a connection that is lost the host knows nothing any more.
func (h *host) took(what byte, at, next uint32, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case what == hostResets && h.lost == nil:
		h.endLocked(syscall.ECONNRESET)
	case what == hostResets:
	case h.lost != nil:
		h.sendLocked(hostResets, 0, nil)
	default:
		h.acknowledgedLocked(next)
		h.arrivedLocked(what == hostEnds, at, data)
	}
}

func (h *host) acknowledgedLocked(next uint32) {
	n := int(int32(next - h.una))
	if n <= 0 {
		return
	}
	h.una, h.heard = next, time.Now()
	if n > len(h.out) {
		n, h.fin = len(h.out), false
		h.tellLocked()
	}
	h.out = h.out[n:]
}

// arrivedLocked gives the program what is next, and acknowledges what has come.
func (h *host) arrivedLocked(fin bool, at uint32, data []byte) {
	if len(data) == 0 && !fin {
		return
	}
	if known := int(int32(h.rcv - at)); known >= 0 && known <= len(data) {
		h.rcv += uint32(len(data) - known)
		if _, err := h.calls.Write(data[known:]); err != nil && len(data) > known {
			h.endLocked(syscall.ECONNRESET)
			h.sendLocked(hostResets, 0, nil)
			return
		}
		if fin {
			h.rcv, h.ended = h.rcv+1, true
			_ = h.calls.CloseWrite()
		}
	}
	h.sendLocked(hostSends, len(h.out), nil)
}
