package iwarp_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A looker is what the lower layers of this file have in common: each looks at the QP that uses it when it is asked for something,
// and counts what it was asked.
type looker struct {
	qp    atomic.Pointer[iwarp.QP]
	calls [3]atomic.Int32
}

// What a lower layer may be asked while a QP works.
const (
	asksPath = iota // Unsent and RoundTrip
	asksSize        // EMSS and MULPDU
	asksMoved
)

func (l *looker) look(what int) {
	if qp := l.qp.Load(); qp != nil {
		_ = qp.Stats()
		l.calls[what].Add(1)
	}
}

// A pathLooker is a connection that knows its path.
type pathLooker struct {
	looker
	*testrig.Conn
}

func (c *pathLooker) Unsent() bool             { c.look(asksPath); return false }
func (c *pathLooker) RoundTrip() time.Duration { c.look(asksPath); return time.Millisecond }

// A sizeLooker is an MPA-aware TCP.
type sizeLooker struct {
	looker
	*awareConn
}

func (c *sizeLooker) EMSS() int                { c.look(asksSize); return c.awareConn.EMSS() }
func (c *sizeLooker) Unsent() bool             { c.look(asksPath); return false }
func (c *sizeLooker) RoundTrip() time.Duration { c.look(asksPath); return time.Millisecond }

// A segmentLooker is a SegmentStream.
type segmentLooker struct {
	looker
	*shuffled
}

func (s *segmentLooker) MULPDU() int              { s.look(asksSize); return s.shuffled.MULPDU() }
func (s *segmentLooker) Moved() uint64            { s.look(asksMoved); return 1 }
func (s *segmentLooker) Unsent() bool             { s.look(asksPath); return false }
func (s *segmentLooker) RoundTrip() time.Duration { s.look(asksPath); return time.Millisecond }

// TestPathCallsQP: a lower layer of the consumer's may call the QP when it is asked for the path to the peer, for the size of
// segments, or for what it has moved: none of the consumer's code runs with a lock held. TestSegmentHolder has one that is told something.
func TestPathCallsQP(t *testing.T) {
	t.Parallel()
	tcp := new(pathLooker)
	aware := new(sizeLooker)
	messages := new(segmentLooker)
	for _, c := range []struct {
		name  string
		of    *looker
		asked []int
		meet  func(t *testing.T, ini, res *end)
	}{
		{"a net.Conn", &tcp.looker, []int{asksPath}, func(t *testing.T, ini, res *end) {
			a, b := testrig.Pipe("ini", "res")
			_, _ = a.SetWriteBuffer(1<<18), b.SetWriteBuffer(1<<18)
			tcp.Conn = a
			should(t, ini.ModifyRTS(tcp, negotiated(mpa.RoleInitiator), nil))
			should(t, res.ModifyRTS(b, negotiated(mpa.RoleResponder), nil))
		}},
		{"a SegmentedConn", &aware.looker, []int{asksPath, asksSize}, func(t *testing.T, ini, res *end) {
			a, b := awarePair(link{emss: 1448})
			aware.awareConn = a
			should(t, ini.ModifyRTS(aware, negotiated(mpa.RoleInitiator), nil))
			should(t, res.ModifyRTS(b, negotiated(mpa.RoleResponder), nil))
		}},
		{"a SegmentStream", &messages.looker, []int{asksPath, asksSize, asksMoved}, func(t *testing.T, ini, res *end) {
			a, b := newShuffled(1, nil)
			messages.shuffled = a
			should(t, ini.ModifyRTSOver(messages, negotiated(mpa.RoleInitiator), nil))
			should(t, res.ModifyRTSOver(b, negotiated(mpa.RoleResponder), nil))
		}},
	} {
		ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
		ini.QP, res.QP = create(t, ini.pd, unhurried(deep())), create(t, res.pd, unhurried(deep()))
		c.of.qp.Store(ini.QP) // and so from the first question on
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.meet(t, ini, res)
			postAll(res, ini)
			finish(t, ini, res)
		}()
		select {
		case <-done:
		case <-within(t).Done():
			t.Fatalf("%s waits for a lock that its caller holds", c.name)
		}
		for _, what := range c.asked {
			if c.of.calls[what].Load() == 0 {
				t.Errorf("%s was not asked for %d", c.name, what)
			}
		}
	}
}
