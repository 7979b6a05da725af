package iwarp_test

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// A delaying connection has the Nagle algorithm on until it is told otherwise.
type delaying struct {
	*net.TCPConn
	off atomic.Bool
}

func (d *delaying) SetNoDelay(yes bool) error {
	d.off.Store(yes)
	return d.TCPConn.SetNoDelay(yes)
}

func newDelaying(c net.Conn) *delaying { return &delaying{TCPConn: c.(*net.TCPConn)} }

// A delayingListener has such connections.
type delayingListener struct {
	net.Listener
	last atomic.Pointer[delaying]
}

func (l *delayingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	d := newDelaying(c)
	l.last.Store(d)
	return d, nil
}

// TestNagleOff: on a connection that comes from the program, or through its code, the Nagle algorithm is turned off.
//
// Proves S04.
func TestNagleOff(t *testing.T) {
	wantOff := func(what string, d *delaying) {
		t.Helper()
		if !d.off.Load() {
			t.Errorf("%s: an FPDU waits for an acknowledgement", what)
		}
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	rig.Must(t, err)
	on := &delayingListener{Listener: tcp}
	ln := new(iwarp.ListenConfig).NewListener(on)
	defer ln.Close()
	var wrapped *delaying
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	taken := res.Takes(ln, iwarp.AcceptConfig{PD: res.PD})
	rig.Must(t, <-ini.Dials(iwarp.Dialer{PD: ini.PD, Wrap: func(c net.Conn) (net.Conn, error) {
		wrapped = newDelaying(c)
		return wrapped, nil
	}}, ln))
	rig.Must(t, <-taken)
	wantOff("Dialer.Wrap", wrapped)
	wantOff("NewListener", on.last.Load())

	here := newDelaying(rig.DialTCP(t, ln.Addr().String()))
	taken = res.Takes(ln, iwarp.AcceptConfig{PD: res.PD})
	ini.QP, err = (&iwarp.Dialer{PD: ini.PD}).Initiate(rig.Within(t), here, nil)
	rig.Must(t, err)
	rig.Must(t, <-taken)
	wantOff("Initiate", here)
}
