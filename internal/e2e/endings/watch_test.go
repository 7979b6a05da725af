package endings

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// acceptOver accepts the Request that a peer sends over a pipe, and returns both ends.
func acceptOver(t *testing.T, first []byte, cfg iwarp.ListenConfig, qc iwarp.QPConfig) (*rig.Peer, *iwarp.QP) {
	t.Helper()
	p, req := rig.AskOverPipe(t.Context(), t, cfg, first)
	var qp *iwarp.QP
	accepted := rig.DialInBackground(t, func() (err error) {
		qp, err = req.Accept(t.Context(), iwarp.AcceptConfig{QP: qc})
		return err
	})
	p.WantFrame(mpa.KeyReply)
	rig.Must(t, <-accepted)
	return p, qp
}

// TestRTRTimeout has an accepted peer owe its RTR indication: the connection ends after a while, unless it comes in
// time or was never owed.
//
// Proves Z04.
func TestRTRTimeout(t *testing.T) {
	for _, c := range []struct {
		limit, want time.Duration
	}{{0, 30 * time.Second}, {time.Second, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			p, qp := acceptOver(t, rig.Frame(rig.Request(2)), iwarp.ListenConfig{RTRTimeout: c.limit}, iwarp.QPConfig{})
			rig.WantEndAfter(t, qp, c.want, iwarp.ErrNoRTR)
			p.WantClosed()
		})
	}
	for _, c := range []struct {
		name  string
		first []byte
		limit time.Duration
		rtr   bool
	}{
		{"no bound", rig.Frame(rig.Request(2)), -1, false},
		{"revision 1", rig.Frame(rig.Request(1)), time.Second, false},
		{"RTR in time", rig.Frame(rig.Request(2)), time.Minute, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, qp := acceptOver(t, c.first, iwarp.ListenConfig{RTRTimeout: c.limit}, iwarp.QPConfig{})
			if c.rtr {
				time.Sleep(time.Minute - 1) // of virtual time
				p.Send(p.Write(1, 0, nil))
			}
			time.Sleep(time.Hour) // of virtual time
			if qp.State() != iwarp.StateRTS {
				t.Errorf("%s: %v, %v", c.name, qp.State(), qp.Err())
			}
			_ = qp.Abort()
		})
	}
}

// TestIdleTimeout ends a connection over which nothing passes, and no other: bytes of either side count.
//
// Proves Z04, Z32.
func TestIdleTimeout(t *testing.T) {
	const idle = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		p, qp := acceptOver(t, rig.Frame(rig.Request(2)), iwarp.ListenConfig{}, iwarp.QPConfig{IdleTimeout: idle})
		for range 20 {
			time.Sleep(idle - 1) // of virtual time
			p.Send(p.Write(1, 0, nil))
		}
		synctest.Wait()
		for range 20 {
			time.Sleep(idle - 1) // of virtual time
			rig.Must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("x"), Unsignaled: true}))
			p.Want(rdmap.OpSend)
		}
		rig.WantEndAfter(t, qp, idle, iwarp.ErrIdle)
		p.WantClosed()
	})
	synctest.Test(t, func(t *testing.T) {
		p, qp := acceptOver(t, rig.Frame(rig.Request(2)), iwarp.ListenConfig{}, iwarp.QPConfig{})
		p.Send(p.Write(1, 0, nil))
		time.Sleep(1000 * time.Hour) // of virtual time
		if qp.State() != iwarp.StateRTS {
			t.Errorf("without a bound: %v, %v", qp.State(), qp.Err())
		}
		_ = qp.Abort()
	})
}

// A lingering connection takes some time to close, when its peer has been told.
type lingering struct {
	net.Conn
	time.Duration
}

func (c *lingering) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

func (c *lingering) Close() error {
	_ = c.CloseWrite()
	time.Sleep(c.Duration) // of virtual time
	return c.Conn.Close()
}

// TestNotIdleWhileClosing: a connection that has ended in order is not idle, however long its Close takes.
func TestNotIdleWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := rig.NewPipe(t)
		res := &rig.End{T: t}
		accepted := rig.DialInBackground(t, func() error {
			req, err := new(iwarp.ListenConfig).Respond(t.Context(), b, nil)
			if err == nil {
				res.QP, err = req.Accept(t.Context(), iwarp.AcceptConfig{})
			}
			return err
		})
		d := iwarp.Dialer{QP: iwarp.QPConfig{IdleTimeout: time.Second}}
		ini, err := d.Initiate(t.Context(), &lingering{a, time.Hour}, nil)
		rig.Must(t, err)
		rig.Must(t, <-accepted)
		closed := rig.DialInBackground(t, res.Close)
		rig.Should(t, ini.Close())
		rig.Should(t, <-closed)
		if s := ini.State(); s != iwarp.StateClosed {
			t.Errorf("state %v: %v", s, ini.Err())
		}
	})
}

// TestTCPTimeoutsWithoutTCP: the log tells that timeouts of TCP could not be set, where a QP asks for them
// and its connection is none of TCP.
func TestTCPTimeoutsWithoutTCP(t *testing.T) {
	for _, c := range []struct {
		cfg  iwarp.QPConfig
		told bool
	}{
		{iwarp.QPConfig{}, false},
		{iwarp.QPConfig{UserTimeout: time.Nanosecond}, true},
		{iwarp.QPConfig{KeepAlive: net.KeepAliveConfig{Enable: true}}, true},
		{iwarp.QPConfig{KeepAlive: net.KeepAliveConfig{Idle: time.Second}}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out testrig.Buffer
			rnic := rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(slog.NewTextHandler(&out,
				&slog.HandlerOptions{Level: slog.LevelInfo}))})
			ini, res := rig.Setup{Pipe: true, Dialer: iwarp.Dialer{PD: rig.NewPD(t, rnic), QP: c.cfg}}.Connect(t)
			rig.Finish(t, ini, res)
			if told := strings.Contains(out.String(), "timeouts of TCP were not set"); told != c.told {
				t.Errorf("%+v: told: %t\n%s", c.cfg, told, out.String())
			}
		})
	}
}
