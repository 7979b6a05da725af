package iwarp_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// A refusing network has a peer that rejects every connection.
type refusing struct{ session *refusedSession }

func (r refusing) Dial(context.Context, string, string, *net.Dialer,
	mpa.Offer) (iwarp.SegmentSession, mpa.Negotiated, error) {
	return r.session, mpa.Negotiated{}, &mpa.RejectError{PrivateData: []byte("no")}
}

func (refusing) Listen(context.Context, string, string, *net.ListenConfig,
	time.Duration) (iwarp.SegmentListener, error) {
	return nil, errors.ErrUnsupported
}

// A refusedSession is what is left of one of its connections.
type refusedSession struct {
	iwarp.SegmentSession
	told   chan struct{}
	closed int
}

func (s *refusedSession) PeerAcked() <-chan struct{} { return s.told }
func (s *refusedSession) LocalAddr() net.Addr        { return &net.UnixAddr{} }
func (s *refusedSession) RemoteAddr() net.Addr       { return &net.UnixAddr{} }
func (s *refusedSession) Close() error               { s.closed++; return nil }

// TestSegmentNetworkRefuses has Dial close what a SegmentNetwork returns with its error: nobody else has it.
func TestSegmentNetworkRefuses(t *testing.T) {
	s := &refusedSession{told: make(chan struct{})}
	close(s.told)
	_, err := (&iwarp.Dialer{Network: refusing{s}}).Dial(rig.Within(t), "any", "peer:1")
	if r, ok := errors.AsType[*iwarp.RejectError](err); !ok || string(r.PrivateData) != "no" {
		t.Error(err)
	}
	if s.closed != 1 {
		t.Errorf("the session was closed %d times", s.closed)
	}
}
