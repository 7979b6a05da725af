package iwarp_test

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// acceptOver accepts the Request that a peer sends over a pipe, and returns both ends.
func acceptOver(t *testing.T, first []byte, cfg iwarp.ListenConfig, qc iwarp.QPConfig) (*peer, *iwarp.QP) {
	t.Helper()
	p, req := askOverPipe(t.Context(), t, cfg, first)
	var qp *iwarp.QP
	accepted := dialInBackground(t, func() (err error) {
		qp, err = req.Accept(t.Context(), iwarp.AcceptConfig{QP: qc})
		return err
	})
	p.wantFrame(mpa.KeyReply)
	must(t, <-accepted)
	return p, qp
}

// wantEndAfter waits for the end of a connection, and says when and why it has to come.
func wantEndAfter(t *testing.T, qp *iwarp.QP, after time.Duration, cause error) {
	t.Helper()
	began := time.Now()
	<-qp.Done()
	if took := time.Since(began); took != after || !errors.Is(qp.Err(), cause) || !errors.Is(qp.Err(), os.ErrDeadlineExceeded) {
		t.Errorf("ended after %v with %v, want %v and %v", took, qp.Err(), after, cause)
	}
	_ = qp.Close()
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
			p, qp := acceptOver(t, frame(request(2)), iwarp.ListenConfig{RTRTimeout: c.limit}, iwarp.QPConfig{})
			wantEndAfter(t, qp, c.want, iwarp.ErrNoRTR)
			p.wantClosed()
		})
	}
	for _, c := range []struct {
		name  string
		first []byte
		limit time.Duration
		rtr   bool
	}{
		{"no bound", frame(request(2)), -1, false},
		{"revision 1", frame(request(1)), time.Second, false},
		{"RTR in time", frame(request(2)), time.Minute, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, qp := acceptOver(t, c.first, iwarp.ListenConfig{RTRTimeout: c.limit}, iwarp.QPConfig{})
			if c.rtr {
				time.Sleep(time.Minute - 1) // of virtual time
				p.send(p.write(1, 0, nil))
			}
			time.Sleep(time.Hour) // of virtual time
			if qp.State() != iwarp.StateRTS {
				t.Errorf("%s: %v, %v", c.name, qp.State(), qp.Err())
			}
			_ = qp.Abort()
		})
	}
}

// TestIdleTimeout ends a connection over which nothing passes, and no other: octets of either side count.
//
// Proves Z04.
func TestIdleTimeout(t *testing.T) {
	const idle = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		p, qp := acceptOver(t, frame(request(2)), iwarp.ListenConfig{}, iwarp.QPConfig{IdleTimeout: idle})
		for range 20 {
			time.Sleep(idle - 1) // of virtual time
			p.send(p.write(1, 0, nil))
		}
		synctest.Wait()
		for range 20 {
			time.Sleep(idle - 1) // of virtual time
			must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("x"), Unsignaled: true}))
			p.want(rdmap.OpSend)
		}
		wantEndAfter(t, qp, idle, iwarp.ErrIdle)
		p.wantClosed()
	})
	synctest.Test(t, func(t *testing.T) {
		p, qp := acceptOver(t, frame(request(2)), iwarp.ListenConfig{}, iwarp.QPConfig{})
		p.send(p.write(1, 0, nil))
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
		a, b := newPipe(t)
		res := &end{t: t}
		accepted := dialInBackground(t, func() error {
			req, err := iwarp.Respond(t.Context(), b, nil, iwarp.ListenConfig{})
			if err == nil {
				res.QP, err = req.Accept(t.Context(), iwarp.AcceptConfig{})
			}
			return err
		})
		d := iwarp.Dialer{QP: iwarp.QPConfig{IdleTimeout: time.Second}}
		ini, err := d.Initiate(t.Context(), &lingering{a, time.Hour}, nil)
		must(t, err)
		must(t, <-accepted)
		closed := dialInBackground(t, res.Close)
		should(t, ini.Close())
		should(t, <-closed)
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
			rnic := newRNIC(t, iwarp.RNICConfig{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: iwarp.LevelConnection}))})
			ini, res := setup{pipe: true, Dialer: iwarp.Dialer{PD: newPD(t, rnic), QP: c.cfg}}.connect(t)
			finish(t, ini, res)
			if told := strings.Contains(out.String(), "timeouts of TCP were not set"); told != c.told {
				t.Errorf("%+v: told: %t\n%s", c.cfg, told, out.String())
			}
		})
	}
}
