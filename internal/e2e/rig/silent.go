package rig

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/sctpudp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A LinkedPair is two ends of an association in user space, over a link in memory.
type LinkedPair struct {
	*testing.T
	active, passive *association.Association
	Sockets         [2]*testrig.Socket // of the two
}

// NewLinkedPair begins an association over a link.
func NewLinkedPair(t *testing.T, l testrig.Link) *LinkedPair {
	t.Helper()
	return NewHushedPair(t, l, new(HushedSystem))
}

// NewHushedPair is the same with a silence that may fall.
func NewHushedPair(t *testing.T, l testrig.Link, h *HushedSystem) *LinkedPair {
	t.Helper()
	a, b := l.Sockets()
	client, server := sctpudp.New(HushedSocket{a, h, 0}, false, sctpudp.Config{}),
		sctpudp.New(HushedSocket{b, h, 1}, true, sctpudp.Config{})
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	from, err := client.Dial(t.Context(), server.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort())
	Must(t, err)
	to, err := server.Accept(t.Context())
	Must(t, err)
	last := engine.AbortSegment()
	return &LinkedPair{
		t, association.New(from, association.Config{Machine: sctp.Config{Active: true},
			LastWords: last, CloseUnused: true}),
		association.New(to, association.Config{Machine: sctp.Config{Listening: true}, LastWords: last}),
		[2]*testrig.Socket{a, b},
	}
}

// Connect brings up a session.
func (p *LinkedPair) Connect(cfg iwarp.QPConfig) (ini, res *End) {
	p.Helper()
	ini, res = NewEnd(p.T, iwarp.RNICConfig{}), NewEnd(p.T, iwarp.RNICConfig{})
	over := func(e *End, s *association.Session, n mpa.Negotiated, err error) {
		Must(p.T, err)
		e.QP, err = e.PD.CreateQP(cfg)
		Must(p.T, err)
		Must(p.T, e.ModifyRTSOver(s, n, nil))
	}
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		s, err := p.passive.Accept(p.Context())
		Must(p.T, err)
		n, err := s.Accept(mpa.Answer{IRD: 16, ORD: 16})
		over(res, s, n, err)
	}()
	s, err := p.active.Begin(mpa.Offer{IRD: 16, ORD: 16})
	Must(p.T, err)
	n, err := s.Answer(p.Context())
	over(ini, s, n, err)
	<-accepted
	return ini, res
}

// CloseThenExit closes both ends at once, and has the program of each end then.
func (p *LinkedPair) CloseThenExit(ini, res *End) error {
	var errs [2]error
	var closes sync.WaitGroup
	for i, e := range []*End{ini, res} {
		closes.Go(func() {
			errs[i] = e.Close()
			_ = p.Sockets[i].Close()
		})
	}
	closes.Wait()
	return errors.Join(errs[:]...)
}

// A HushedSocket is one of two between which a silence may fall.
type HushedSocket struct {
	*testrig.Socket
	Hush *HushedSystem
	End  int
}

// WriteToUDPAddrPort is sctpudp.Socket's.
func (s HushedSocket) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	if s.Hush.Loses(s.End) {
		return len(b), nil
	}
	return s.Socket.WriteToUDPAddrPort(b, to)
}

// A Silence is what befalls a path from one moment on, while nothing else does: a packet that is lost, or all from one
// on.
type Silence struct {
	From  int  // whose packets: 0 is the Initiator, 1 the Responder
	At    int  // which of them, from 1 on; 0: nothing befalls it
	Alone bool // none after it is lost
	Order int  // who closes: the end with this number first, and 2: both at once
	Gone  bool // nor does anything come to that end any more: its host is gone
}

func (s Silence) String() string {
	what := "all from packet %d of end %d on are lost"
	switch {
	case s.Alone:
		what = "packet %d of end %d is lost"
	case s.Gone:
		what = "from packet %d on the host of end %d is gone"
	}
	return fmt.Sprintf(what, s.At, s.From) + ", " +
		[...]string{"the Initiator closes first", "the Responder closes first", "both close at once"}[s.Order]
}

// A HushedSystem counts the packets of both ends, and has a silence befall them.
type HushedSystem struct {
	mu    sync.Mutex
	is    Silence
	armed bool
	sent  [2]int
}

// Arm tells which silence falls, and begins to count.
func (h *HushedSystem) Arm(s Silence) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.is, h.armed = s, true
}

// Loses reports whether the next packet of an end is lost.
func (h *HushedSystem) Loses(from int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.armed {
		return false
	}
	h.sent[from]++
	n := h.sent[h.is.From]
	return h.is.At > 0 && n >= h.is.At && (from == h.is.From && !h.is.Alone || from == h.is.From &&
		n == h.is.At || h.is.Gone)
}

// Count returns how many packets an end has sent since the silence was told.
func (h *HushedSystem) Count(from int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent[from]
}
