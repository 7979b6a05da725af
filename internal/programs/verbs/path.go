//go:build linux && (amd64 || arm64)

package verbs

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// How long a peer may take for its part of a connection in the guise of RoCE.
const (
	// callLimit bounds the wait for a peer that is called to come to RTR, and on its side for the one that waits.
	callLimit = 30 * time.Second
	// callPatience bounds the time during which a call that finds nobody is tried again. A port is open before
	// anybody can know of it.
	callPatience = time.Second
)

// A GID is an address of IPv6, or one of IPv4 as IPv6 has it.
type GID [16]byte

// A Path is where ibv_modify_qp leads a QP on its way to RTR.
type Path struct {
	Local, Peer GID    // all zeros: addressed by LID, which is this host
	Number      uint32 // of the peer's QP
	IRD         int    // RDMA Reads that are answered at a time
}

// A meeting is how a QP comes by its connection in the guise of RoCE. It is guarded by QP.linking.
type meeting struct {
	path   *Path // nil: it has none, or not yet
	ctx    context.Context
	cancel context.CancelFunc
	doing  *sync.WaitGroup // what goes on
	taken  bool            // the peer was found, or is called
	greets bool            // a call is being accepted
	over   bool            // the program is done with it
	heard  bool            // the peer, in RTR
	held   []heldCall      // of those that have called before the QP knew of its peer
	left   chan struct{}   // is closed when the program has had the QP go to ERR, and nothing of the connection is left
}

// Meet leads a QP from INIT to RTR, and begins to connect it: the end with the lower number calls the other. It does
// not wait: what is posted from RTS on is sent when the connection is up. EINVAL, unless the device is in the guise of
// RoCE.
func (d *Device) Meet(h Handle, p Path) syscall.Errno {
	q := d.qps.get(h)
	if q == nil || !d.roce || portOfNumber(p.Number) == 0 || p.Number > ulpdata.QPNumberMask {
		return syscall.EINVAL
	}
	q.linking.Lock()
	defer q.linking.Unlock()
	if q.linkedLocked() || q.state.Load() != StateInit {
		return syscall.EINVAL
	}
	self := q.number == p.Number && p.Local == p.Peer
	if self {
		if err := q.speak(); err != nil {
			return errnoOf(err)
		}
	}
	q.state.Store(StateRTR)
	m := &q.meeting
	m.path = &p
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.doing = new(sync.WaitGroup)
	m.taken = !self && q.calls(&p)
	if ctx := m.ctx; m.taken || self {
		m.doing.Go(func() { q.call(ctx, p) })
	}
	q.greetHeld()
	return fine
}

// calls reports whether this end calls the other, which both tell alike.
func (q *QP) calls(p *Path) bool {
	if q.number != p.Number {
		return q.number < p.Number
	}
	return bytes.Compare(p.Local[:], p.Peer[:]) < 0
}

// address returns where a GID and a QP number say that a QP is.
func (p *Path) address() netip.AddrPort {
	ip := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if p.Peer != (GID{}) {
		ip = addressOf(p.Local, p.Peer)
	}
	return netip.AddrPortFrom(ip, portOfNumber(p.Number))
}

// addressOf returns the address of a peer that is reached from one of this host's.
func addressOf(local, peer GID) netip.Addr {
	ip := netip.AddrFrom16(peer).Unmap()
	if ip.IsLinkLocalUnicast() && ip.Is6() {
		ip = ip.WithZone(zoneOfAddress(netip.AddrFrom16(local)))
	}
	return ip
}

// zoneOfAddress returns the interface that has an address.
func zoneOfAddress(a netip.Addr) string {
	all, _ := net.Interfaces()
	for _, i := range all {
		addresses, _ := i.Addrs()
		for _, on := range addresses {
			if n, ok := on.(*net.IPNet); ok && n.IP.Equal(a.AsSlice()) {
				return i.Name
			}
		}
	}
	return ""
}

// call connects to the peer, and tries again for a while if there is nobody.
func (q *QP) call(ctx context.Context, p Path) {
	c := ulpdata.QPCall{To: p.Number, From: q.number, GID: p.Local, Prefix: true}
	until := time.Now().Add(callPatience)
	for {
		err := q.dial(ctx, &p, &c)
		switch {
		case err == nil:
			return
		case refused(err) && c.Prefix:
			c.Prefix = false
		case ctx.Err() != nil:
			return
		case time.Now().After(until) || !rest(ctx):
			q.callFails(&p, err)
			return
		}
	}
}

// dial calls once.
func (q *QP) dial(ctx context.Context, p *Path, c *ulpdata.QPCall) error {
	if err := q.prefix(q.sender(), c.Prefix); err != nil {
		return err
	}
	d := q.device.dialer(mpa.Offer{IRD: mpa.Depth(p.reads()), ORD: maxReads, PrivateData: c.Append(nil),
		Timeout: callLimit}, false)
	// whoever knows of such calls knows RFC 6581; in revision 1 nothing tells that the caller is still there
	d.Timeout, d.NoFallback = callLimit, true
	return d.DialQP(ctx, q.sender(), "tcp", p.address().String())
}

// reads is how many RDMA Reads are answered at a time: those of the peer's program, and the one that asks for
// confirmations (iwarp.QPConfig.Confirm).
func (p *Path) reads() int { return min(p.IRD+1, maxReads) }

// maxReads is how many RDMA Reads a QP has outstanding at most. What the program says of it comes with RTS only.
const maxReads = 128

// called is told of a peer's request for the QP.
func (q *QP) called(r *iwarp.Request, c *ulpdata.QPCall) {
	q.linking.Lock()
	defer q.linking.Unlock()
	m := &q.meeting
	switch {
	case m.path != nil:
		q.greet(r, c)
	case q.linkedLocked() || q.gone:
		go q.device.refuseCall(r)
	default:
		q.hold(r, c)
	}
}

// greet accepts the request of the peer that the QP is to have, and of no other. Another of the same peer's is held
// meanwhile: the first may be of a connection that the peer has given up by RESET, and the next its call for this one.
// The caller holds q.linking.
func (q *QP) greet(r *iwarp.Request, c *ulpdata.QPCall) {
	m := &q.meeting
	switch {
	case c.From != m.path.Number || c.GID != m.path.Peer || m.taken || m.over:
		go q.device.refuseCall(r)
	case m.greets:
		q.hold(r, c)
	default:
		m.greets = true
		ctx, prefix, path := m.ctx, c.Prefix, m.path
		m.doing.Go(func() {
			if err := q.accept(ctx, r, prefix, path); q.greeted(ctx, err) && err != nil {
				q.callFails(path, err)
			}
		})
	}
}

// accept accepts a request. The peer is there when it has sent something, as its RTR indication: until then the QP
// keeps what is posted.
func (q *QP) accept(ctx context.Context, r *iwarp.Request, prefix bool, p *Path) error {
	err := q.prefix(q.qp, prefix)
	if err == nil {
		err = r.AcceptQP(ctx, q.qp, iwarp.AcceptConfig{
			Preset: q.device.preset, MPA: mpa.Answer{IRD: mpa.Depth(p.reads()), ORD: maxReads}, AwaitRTR: true,
		})
	}
	if err != nil {
		_ = r.Close()
	}
	return err
}

// greeted is told what has become of a request. When its peer has left, the QP waits to be called again; otherwise this
// reports true, unless the program has ended the meeting.
func (q *QP) greeted(ctx context.Context, err error) (final bool) {
	q.linking.Lock()
	defer q.linking.Unlock()
	m := &q.meeting
	if m.ctx != ctx {
		return false
	}
	m.greets, m.taken = false, err == nil || q.fruitless(err)
	q.greetHeld()
	return m.taken && !m.over
}

// fruitless reports whether the error of a request is none that another of the same peer's could do better about.
func (q *QP) fruitless(err error) bool {
	var negotiation *iwarp.NegotiationError
	return errors.As(err, &negotiation) || q.qp.State() != iwarp.StateIdle
}

// heard is told of what has come from the peer. The program hears of the first while the QP is in RTR: it may go to RTS
// then. What librdmacm connects is in RTS from the beginning, and an event of its own tells of it.
func (q *QP) heard() {
	q.linking.Lock()
	m := &q.meeting
	first := m.path != nil && !m.heard && q.state.Load() == StateRTR
	m.heard = m.heard || first
	q.linking.Unlock()
	if first {
		q.raise(asyncCommEst)
	}
}

// stop begins the end of the meeting, when the program is done with it. A peer that is being accepted may have its
// answer: then its RTR indication is on its way, and perhaps a Terminate. Closing the connection now would reset it, so
// that they have closeTimeout to arrive: then it ends in order. The caller holds q.linking.
func (m *meeting) stop() {
	m.over = true
	switch {
	case m.greets:
		time.AfterFunc(closeTimeout, m.cancel)
	case m.cancel != nil:
		m.cancel()
	}
}

// part ends the meeting, if there is one. When it returns, nothing of it goes on.
func (q *QP) part(gone bool) {
	q.linking.Lock()
	q.meeting.stop()
	m := q.meeting
	q.meeting, q.gone = meeting{}, gone
	q.linking.Unlock()
	for i := range m.held {
		m.held[i].expiry.Stop()
		go q.device.refuseCall(m.held[i].request)
	}
	if m.doing != nil {
		m.doing.Wait()
	}
}

// meets reports whether the QP has a connection of this kind, or had or will have one.
func (q *QP) meets() bool {
	q.linking.Lock()
	defer q.linking.Unlock()
	return q.meeting.path != nil
}
