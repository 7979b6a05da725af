package startup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/usertcp"
)

// A memoryNetwork is a SegmentNetwork in memory, with segments in any order, whose one listener is reached by any
// address.
type memoryNetwork struct {
	paths chan *memoryPath
	plain bool // its peers refuse what RFC 6581 has
}

func newMemoryNetwork() *memoryNetwork { return &memoryNetwork{paths: make(chan *memoryPath, 10)} }

// A memoryAddr is an address in it.
type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (a memoryAddr) String() string { return string(a) }

// A memoryPath is a path to the listener.
type memoryPath struct {
	requests chan *memorySession
	ended    chan string
}

// opens opens a path without a request.
func (n *memoryNetwork) opens() *memoryPath {
	p := &memoryPath{requests: make(chan *memorySession, 1), ended: make(chan string, 1)}
	n.paths <- p
	return p
}

// A memorySession is one end of a connection.
type memorySession struct {
	*rig.Shuffled
	request *mpa.Request
	answers chan any // a *mpa.Negotiated, or an error
	once    sync.Once
	acked   chan struct{}
}

func newMemorySession(s *rig.Shuffled) *memorySession {
	return &memorySession{Shuffled: s, acked: make(chan struct{}), answers: make(chan any, 1)}
}

func (s *memorySession) closeAcked()                { s.once.Do(func() { close(s.acked) }) }
func (s *memorySession) PeerAcked() <-chan struct{} { return s.acked }
func (s *memorySession) Request() *mpa.Request      { return s.request }
func (s *memorySession) CloseWrite() error          { s.closeAcked(); return s.Shuffled.CloseWrite() }
func (s *memorySession) Close() error               { s.closeAcked(); return s.Shuffled.Close() }
func (s *memorySession) Reset() error               { s.closeAcked(); return s.Shuffled.Reset() }

// Cancel has the other end see the end of what never was.
func (s *memorySession) Cancel() error {
	_ = s.CloseWrite()
	select {
	case s.answers <- net.ErrClosed:
	default:
	}
	return s.Close()
}

func agreement(role mpa.Role, private []byte) *mpa.Negotiated {
	return &mpa.Negotiated{
		Role: role, DDPVersion: 1, RDMAPVersion: 1, Enhanced: true, IRD: 16, ORD: 16, PrivateData: private,
		PeerToPeer: true, RTR: mpa.RTRWrite, SendFirst: true,
	}
}

func (s *memorySession) Accept(a mpa.Answer) (mpa.Negotiated, error) {
	s.answers <- agreement(mpa.RoleInitiator, a.PrivateData)
	return *agreement(mpa.RoleResponder, s.request.PrivateData), nil
}

func (s *memorySession) Reject(private []byte, _, _ mpa.Depth) error {
	s.answers <- &mpa.RejectError{PrivateData: private, Dialect: s.request.Dialect}
	s.closeAcked()
	return nil
}

// An unknowing answer advises to ask again.
type unknowing struct{ error }

func (unknowing) Fallback() (refused, plain string) { return "did not understand", "small words" }

func (n *memoryNetwork) Dial(
	ctx context.Context, network, _ string, _ *net.Dialer, o mpa.Offer,
) (iwarp.SegmentSession, mpa.Negotiated, error) {
	switch {
	case network != "memory":
		return nil, mpa.Negotiated{}, fmt.Errorf("%w: network %q", iwarp.ErrInvalid, network)
	case n.plain && o.Dialect != mpa.DialectRFC5044:
		return nil, mpa.Negotiated{}, unknowing{errors.New("refused")}
	}
	a, b := rig.NewShuffled(1, nil)
	ours, theirs := newMemorySession(a), newMemorySession(b)
	theirs.request = &mpa.Request{
		PrivateData: o.PrivateData, IRD: o.IRD, ORD: o.ORD, Dialect: o.Dialect, PeerToPeer: true, RTR: mpa.RTRWrite,
	}
	n.opens().requests <- theirs
	select {
	case answer := <-theirs.answers:
		if err, failed := answer.(error); failed {
			ours.closeAcked()
			return ours, mpa.Negotiated{}, err
		}
		return ours, *answer.(*mpa.Negotiated), nil
	case <-ctx.Done():
		ours.closeAcked()
		return ours, mpa.Negotiated{}, ctx.Err()
	}
}

func (n *memoryNetwork) Listen(
	context.Context, string, string, *net.ListenConfig, time.Duration,
) (iwarp.SegmentListener, error) {
	return n, nil
}

func (n *memoryNetwork) Accept(ctx context.Context) (iwarp.SegmentPeer, error) {
	select {
	case p := <-n.paths:
		return p, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (*memoryNetwork) Addr() net.Addr { return memoryAddr("the listener") }
func (*memoryNetwork) Close() error   { return nil }

func (p *memoryPath) Accept(ctx context.Context) (iwarp.SegmentRequest, error) {
	select {
	case s := <-p.requests:
		return s, nil
	case why := <-p.ended:
		p.ended <- why
		return nil, errors.New(why)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *memoryPath) Abort(why string)   { p.ended <- why }
func (*memoryPath) RemoteAddr() net.Addr { return memoryAddr("a peer") }

// overMemory listens on a network in memory.
func overMemory(t *testing.T, n *memoryNetwork, cfg iwarp.ListenConfig) *iwarp.Listener {
	t.Helper()
	cfg.Network = n
	ln, err := cfg.Listen(rig.Within(t), "memory", "")
	rig.Must(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

// TestSegmentNetwork: connections over a network of the program's own come up, with private data, and carry messages.
func TestSegmentNetwork(t *testing.T) {
	n, ini, res := newMemoryNetwork(), rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	ln := overMemory(t, n, iwarp.ListenConfig{PD: res.PD})
	taken := res.Takes(ln, iwarp.AcceptConfig{MPA: mpa.Answer{PrivateData: []byte("yo")}})
	d := iwarp.Dialer{
		PD: ini.PD, Network: n, QP: rig.Unhurried(iwarp.QPConfig{}), MPA: mpa.Offer{PrivateData: []byte("hi")},
	}
	var err error
	ini.QP, err = d.Dial(rig.Within(t), "memory", "")
	rig.Must(t, err)
	rig.Must(t, <-taken)
	if i, r := ini.Negotiated(), res.Negotiated(); string(i.PrivateData) != "yo" || string(r.PrivateData) != "hi" {
		t.Errorf("agreed on %v and %v", i, r)
	}
	rig.Works(t, ini, res)
	rig.Finish(t, ini, res)
	rig.WantStartups(t, "the Initiator", ini, iwarp.StartupStats{Started: 1, Established: 1})
	rig.WantStartups(t, "the Responder", res, iwarp.StartupStats{Started: 1, Established: 1})
}

// TestSegmentNetworkRefused: what the peer, the consumer or the network refuses is told as over TCP, and counted.
func TestSegmentNetworkRefused(t *testing.T) {
	n, ini := newMemoryNetwork(), rig.NewEnd(t, iwarp.RNICConfig{})
	ln := overMemory(t, n, iwarp.ListenConfig{})
	d := iwarp.Dialer{PD: ini.PD, Network: n}
	dial := func(d iwarp.Dialer, network string) error {
		_, err := d.Dial(rig.Within(t), network, "")
		return err
	}
	rejected := rig.DialInBackground(t, func() error {
		req, err := ln.Accept(rig.Within(t))
		if err == nil {
			err = req.Reject([]byte("no"))
		}
		return err
	})
	err := dial(d, "memory")
	if r, ok := errors.AsType[*iwarp.RejectError](err); !ok || string(r.PrivateData) != "no" || r.Conn.Close() == nil {
		t.Errorf("rejected: %v", err)
	}
	rig.Must(t, <-rejected)

	no := errors.New("not this one")
	refusing := d
	refusing.Verify = func(mpa.Negotiated) error { return no }
	res := rig.NewEnd(t, iwarp.RNICConfig{})
	taken := res.Takes(ln, iwarp.AcceptConfig{PD: res.PD})
	err = dial(refusing, "memory")
	if v, ok := errors.AsType[*iwarp.VerifyError](err); !ok || !errors.Is(err, no) || v.Conn.Close() == nil {
		t.Errorf("not verified: %v", err)
	}
	rig.Must(t, <-taken)
	_ = res.Abort()

	rig.WantSaid(t, "another network", dial(d, "sctp"), iwarp.ErrInvalid, `network "sctp"`)
	over := d
	over.Stack = new(usertcp.Stack)
	rig.WantSaid(t, "a Stack", dial(over, "memory"), iwarp.ErrInvalid, "Dialer.Stack is a TCP, and Dialer.Network")
	_, err = (&iwarp.ListenConfig{Network: n, Stack: new(usertcp.Stack)}).Listen(rig.Within(t), "memory", "")
	rig.WantSaid(t, "listening with a Stack", err, iwarp.ErrInvalid, "ListenConfig.Stack is a TCP")
	want := iwarp.StartupStats{Started: 3, Rejected: 2, Failed: map[string]uint64{"other": 1}}
	rig.WantStartups(t, "the Initiator", ini, want)
}

// TestSegmentNetworkFallsBack: a peer that does not know RFC 6581 is asked again without it, if the network advises so.
func TestSegmentNetworkFallsBack(t *testing.T) {
	n, res := newMemoryNetwork(), rig.NewEnd(t, iwarp.RNICConfig{})
	n.plain = true
	taken := res.Takes(overMemory(t, n, iwarp.ListenConfig{PD: res.PD}), iwarp.AcceptConfig{})
	d := iwarp.Dialer{Network: n, QP: rig.Unhurried(iwarp.QPConfig{})}
	qp, err := d.Dial(rig.Within(t), "memory", "")
	rig.Must(t, err)
	rig.Must(t, <-taken)
	if a := qp.Negotiated(); !a.FellBack || !rig.Contains(a.FallbackReason, "refused") {
		t.Errorf("agreed on %v", a)
	}
	_, _ = qp.Abort(), res.Abort()
}

// TestSegmentNetworkPlaces: paths without a request have places as connections without one have, and one too many
// ends the oldest.
//
// Proves Z04.
func TestSegmentNetworkPlaces(t *testing.T) {
	n := newMemoryNetwork()
	ln := overMemory(t, n, iwarp.ListenConfig{MaxHalfOpen: 1})
	first := n.opens()
	rig.Until(t, func() bool { return ln.Stats().HalfOpen == 1 }, "the first path")
	n.opens()
	if why := <-first.ended; why != "closed to make room" {
		t.Errorf("ended: %s", why)
	}
	rig.Until(t, func() bool { s := ln.Stats(); return s.HalfOpen == 1 && s.Evicted == 1 }, "the second path")
}
