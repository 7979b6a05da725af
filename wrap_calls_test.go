package iwarp_test

import (
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// A nosy connection looks at the QP that uses it whenever it is asked for an address, and so does the address when it
// is asked for its text. It has no halves.
type nosy struct {
	net.Conn
	qp atomic.Pointer[iwarp.QP]
}

// A nosyAddr is one of its addresses.
type nosyAddr struct {
	net.Addr
	of *nosy
}

func (n *nosy) look() {
	if qp := n.qp.Load(); qp != nil {
		_ = qp.State()
	}
}

func (n *nosy) LocalAddr() net.Addr  { n.look(); return nosyAddr{n.Conn.LocalAddr(), n} }
func (n *nosy) RemoteAddr() net.Addr { n.look(); return nosyAddr{n.Conn.RemoteAddr(), n} }
func (a nosyAddr) String() string    { a.of.look(); return a.Addr.String() }

// TestWrapAddressCallsQP: what Wrap has returned may call the QP when it is asked for its addresses, whatever they are
// for: none of the consumer's code runs with a lock held. TestWrapCallsQP and TestPathCallsQP have the other methods.
func TestWrapAddressCallsQP(t *testing.T) {
	n := new(nosy)
	// The test must not wait for a QP that is stuck, and so closes the RNIC only if all went well.
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{Logger: slog.New(rig.LogHandler(func(slog.Record) {}))})
	d := iwarp.Dialer{
		PD:      rig.NewPD(t, rnic),
		Wrap:    func(c net.Conn) (net.Conn, error) { n.Conn = c; return n, nil },
		Prepare: func(qp *iwarp.QP) error { n.qp.Store(qp); return nil },
	}
	var ini, res *rig.End
	done := make(chan struct{})
	go func() {
		defer close(done)
		var err error
		if ini, res, err = (rig.Setup{Dialer: d}).Try(t); err != nil {
			t.Error(err)
			return
		}
		for what, do := range map[string]func() error{
			"String": func() error {
				return wantSame(ini.String(), "QP 1 (RTS, "+ini.LocalAddr().String()+" with "+
					res.LocalAddr().String()+")")
			},
			"RemoteAddr": func() error { return wantSame(ini.RemoteAddr().String(), res.LocalAddr().String()) },
			"LocalAddr":  func() error { return wantSame(ini.LocalAddr().String(), res.RemoteAddr().String()) },
			"CloseWrite": func() error {
				err := ini.CloseWrite()
				if op := (*iwarp.OpError)(nil); !errors.As(err, &op) || op.Addr == nil ||
					!errors.Is(err, errors.ErrUnsupported) {
					return errors.Join(errors.New("on a connection without halves"), err)
				}
				return nil
			},
		} {
			if err := do(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		_ = res.Close() // which is an event and several log records
		<-ini.Done()
		_ = ini.Close()
	}()
	select {
	case <-done:
	case <-rig.Within(t).Done():
		t.Fatal("the address waits for a lock that its caller holds")
	}
	if e, err := rnic.NextEvent(rig.Within(t)); err != nil || e.RemoteAddr.String() != res.LocalAddr().String() {
		t.Errorf("event %v (%v)", e, err)
	}
	rig.Should(t, rnic.Close())
}

// A nameless is a connection that does not say where its ends are.
type nameless struct{ net.Conn }

func (nameless) LocalAddr() net.Addr  { return nil }
func (nameless) RemoteAddr() net.Addr { return nil }

// namelessConns is a Listener of such connections.
type namelessConns struct{ net.Listener }

func (l namelessConns) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return nameless{c}, nil
}

// TestNoAddresses has a consumer's connections have no addresses: no source is known whose share they could exceed, and
// they work.
func TestNoAddresses(t *testing.T) {
	var log testrig.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: iwarp.LevelFrame}))
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{Logger: logger}), rig.NewEnd(t, iwarp.RNICConfig{Logger: logger})
	ln := (&iwarp.ListenConfig{PD: res.PD, MaxHalfOpenPerSource: 1, MaxPerSource: 1}).NewListener(
		namelessConns{rig.ListenTCP(t)})
	defer ln.Close()
	for range 2 {
		accepted := res.Takes(ln, iwarp.AcceptConfig{})
		d := iwarp.Dialer{PD: ini.PD, Wrap: func(c net.Conn) (net.Conn, error) { return nameless{c}, nil }}
		rig.Must(t, <-ini.Dials(d, ln))
		rig.Must(t, <-accepted)
		rig.Works(t, ini, res)
		if s := "QP " + strconv.Itoa(int(ini.Num())) +
			" (RTS, an unknown address with an unknown address)"; ini.String() != s || ini.RemoteAddr() != nil {
			t.Errorf("%v, want %s; %v", ini, s, ini.RemoteAddr())
		}
	}
	if !strings.Contains(log.String(), `peer="an unknown address"`) {
		t.Error("not logged")
	}
	_ = res.Abort()
	<-ini.Done()
	if err := ini.CloseWrite(); !rig.Contains(err, "close write: ") {
		t.Errorf("CloseWrite: %v", err)
	}
}

// TestAddressesOfNoConnection: a QP that was made ready for another connection has no addresses, as before its first.
func TestAddressesOfNoConnection(t *testing.T) {
	ini, _ := rig.Connect(t)
	_ = ini.Modify(iwarp.StateError)
	rig.Wait(t, ini.Done(), "the end")
	if ini.LocalAddr() == nil || ini.RemoteAddr() == nil {
		t.Error("a connection that has ended has lost its addresses")
	}
	rig.Should(t, ini.Modify(iwarp.StateIdle))
	if ini.LocalAddr() != nil || ini.RemoteAddr() != nil || ini.String() != "QP 1 (Idle)" {
		t.Errorf("%v: %v, %v", ini, ini.LocalAddr(), ini.RemoteAddr())
	}
}

func wantSame(got, want string) error {
	if got != want {
		return errors.New("got " + got + ", want " + want)
	}
	return nil
}

// A looker is what the lower layers of this file have in common: each looks at the QP that uses it when it is asked for
// something, and counts what it was asked.
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
	*rig.AwareConn
}

func (c *sizeLooker) EMSS() int                { c.look(asksSize); return c.AwareConn.EMSS() }
func (c *sizeLooker) Unsent() bool             { c.look(asksPath); return false }
func (c *sizeLooker) RoundTrip() time.Duration { c.look(asksPath); return time.Millisecond }

// A segmentLooker is a SegmentStream.
type segmentLooker struct {
	looker
	*rig.Shuffled
}

func (s *segmentLooker) MULPDU() int              { s.look(asksSize); return s.Shuffled.MULPDU() }
func (s *segmentLooker) Moved() uint64            { s.look(asksMoved); return 1 }
func (s *segmentLooker) Unsent() bool             { s.look(asksPath); return false }
func (s *segmentLooker) RoundTrip() time.Duration { s.look(asksPath); return time.Millisecond }

// TestPathCallsQP: a lower layer of the consumer's may call the QP when it is asked for the path to the peer, for the
// size of segments, or for what it has moved: none of the consumer's code runs with a lock held. TestHeldIsTold has one
// that is told something.
func TestPathCallsQP(t *testing.T) {
	t.Parallel()
	tcp := new(pathLooker)
	aware := new(sizeLooker)
	messages := new(segmentLooker)
	for _, c := range []struct {
		name  string
		of    *looker
		asked []int
		meet  func(t *testing.T, ini, res *rig.End)
	}{
		{"a net.Conn", &tcp.looker, []int{asksPath}, func(t *testing.T, ini, res *rig.End) {
			a, b := testrig.Pipe("ini", "res")
			_, _ = a.SetWriteBuffer(1<<18), b.SetWriteBuffer(1<<18)
			tcp.Conn = a
			rig.Should(t, ini.ModifyRTS(tcp, rig.Negotiated(mpa.RoleInitiator), nil))
			rig.Should(t, res.ModifyRTS(b, rig.Negotiated(mpa.RoleResponder), nil))
		}},
		{"a connection of an MPA-aware TCP", &aware.looker, []int{asksPath, asksSize},
			func(t *testing.T, ini, res *rig.End) {
				a, b := rig.AwarePair(rig.AwareLink{EMSS: 1448})
				aware.AwareConn = a
				rig.Should(t, ini.ModifyRTS(aware, rig.Negotiated(mpa.RoleInitiator), nil))
				rig.Should(t, res.ModifyRTS(b, rig.Negotiated(mpa.RoleResponder), nil))
			}},
		{"a SegmentStream", &messages.looker, []int{asksPath, asksSize, asksMoved},
			func(t *testing.T, ini, res *rig.End) {
				a, b := rig.NewShuffled(1, nil)
				messages.Shuffled = a
				rig.Should(t, ini.ModifyRTSOver(messages, rig.Negotiated(mpa.RoleInitiator), nil))
				rig.Should(t, res.ModifyRTSOver(b, rig.Negotiated(mpa.RoleResponder), nil))
			}},
	} {
		ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
		ini.QP, res.QP = rig.NewQP(t, ini.PD, rig.Unhurried(rig.DeepQueues())),
			rig.NewQP(t, res.PD, rig.Unhurried(rig.DeepQueues()))
		c.of.qp.Store(ini.QP) // and so from the first question on
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.meet(t, ini, res)
			rig.PostAll(res, ini)
			rig.Finish(t, ini, res)
		}()
		select {
		case <-done:
		case <-rig.Within(t).Done():
			t.Fatalf("%s waits for a lock that its caller holds", c.name)
		}
		for _, what := range c.asked {
			if c.of.calls[what].Load() == 0 {
				t.Errorf("%s was not asked for %d", c.name, what)
			}
		}
	}
}
