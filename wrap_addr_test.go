package iwarp_test

import (
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
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

// TestWrapAddressCallsQP: what Wrap has returned may call the QP when it is asked for its addresses, whatever they are for:
// none of the consumer's code runs with a lock held. TestWrapCallsQP and TestPathCallsQP have the other methods.
func TestWrapAddressCallsQP(t *testing.T) {
	n := new(nosy)
	// The test must not wait for a QP that is stuck, and so closes the RNIC only if all went well.
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{Logger: slog.New(handler(func(slog.Record) {}))})
	d := iwarp.Dialer{
		PD:      newPD(t, rnic),
		Wrap:    func(c net.Conn) (net.Conn, error) { n.Conn = c; return n, nil },
		Prepare: func(qp *iwarp.QP) error { n.qp.Store(qp); return nil },
	}
	var ini, res *end
	done := make(chan struct{})
	go func() {
		defer close(done)
		var err error
		if ini, res, err = (setup{Dialer: d}).try(t); err != nil {
			t.Error(err)
			return
		}
		for what, do := range map[string]func() error{
			"String": func() error {
				return wantSame(ini.String(), "QP 1 (RTS, "+ini.LocalAddr().String()+" with "+res.LocalAddr().String()+")")
			},
			"RemoteAddr": func() error { return wantSame(ini.RemoteAddr().String(), res.LocalAddr().String()) },
			"LocalAddr":  func() error { return wantSame(ini.LocalAddr().String(), res.RemoteAddr().String()) },
			"CloseWrite": func() error {
				err := ini.CloseWrite()
				if op := (*iwarp.OpError)(nil); !errors.As(err, &op) || op.Addr == nil || !errors.Is(err, errors.ErrUnsupported) {
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
	case <-within(t).Done():
		t.Fatal("the address waits for a lock that its caller holds")
	}
	if e, err := rnic.NextEvent(within(t)); err != nil || e.RemoteAddr.String() != res.LocalAddr().String() {
		t.Errorf("event %v (%v)", e, err)
	}
	should(t, rnic.Close())
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
	ini, res := newEnd(t, iwarp.RNICConfig{Logger: logger}), newEnd(t, iwarp.RNICConfig{Logger: logger})
	ln := iwarp.NewListener(namelessConns{listenTCP(t)}, iwarp.ListenConfig{PD: res.pd, MaxHalfOpenPerSource: 1, MaxPerSource: 1})
	defer ln.Close()
	for range 2 {
		accepted := res.takes(ln, iwarp.AcceptConfig{})
		d := iwarp.Dialer{PD: ini.pd, Wrap: func(c net.Conn) (net.Conn, error) { return nameless{c}, nil }}
		must(t, <-ini.dials(d, ln))
		must(t, <-accepted)
		works(t, ini, res)
		if s := "QP " + strconv.Itoa(int(ini.Num())) + " (RTS, an unknown address with an unknown address)"; ini.String() != s || ini.RemoteAddr() != nil {
			t.Errorf("%v, want %s; %v", ini, s, ini.RemoteAddr())
		}
	}
	if !strings.Contains(log.String(), `peer="an unknown address"`) {
		t.Error("not logged")
	}
	_ = res.Abort()
	<-ini.Done()
	if err := ini.CloseWrite(); !contains(err, "close write: ") {
		t.Errorf("CloseWrite: %v", err)
	}
}

// TestAddressesOfNoConnection: a QP that was made ready for another connection has no addresses, as before its first.
func TestAddressesOfNoConnection(t *testing.T) {
	ini, _ := connect(t)
	_ = ini.Modify(iwarp.StateError)
	wait(t, ini.Done(), "the end")
	if ini.LocalAddr() == nil || ini.RemoteAddr() == nil {
		t.Error("a connection that has ended has lost its addresses")
	}
	should(t, ini.Modify(iwarp.StateIdle))
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
