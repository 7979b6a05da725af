package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// gone wants a connection to have been ended, or to be there.
func (r *rig) gone(qp *iwarp.QP, want bool) {
	r.t.Helper()
	synctest.Wait()
	select {
	case <-qp.Done():
		if !want {
			r.t.Errorf("the connection has ended: %v", qp.Err())
		}
		_ = qp.Close() // which tells of the reset
	default:
		if want {
			r.t.Error("the connection goes on")
		}
	}
}

// moves has a byte and more move on a connection, as Writes of nothing do.
func moves(t *testing.T, qp *iwarp.QP) {
	t.Helper()
	testrig.Must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite}))
	synctest.Wait()
}

// TestGivesWay has the most silent connection give way to one more, of those of the address that has most, and no
// connection on which something moves.
func TestGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, Config{MaxConnections: 4})
		other := r.visitsFrom("192.0.2.2:1")
		var crowd []*iwarp.QP
		for port := range 3 {
			time.Sleep(10 * time.Second)
			crowd = append(crowd, r.visitsFrom(fmt.Sprint("192.0.2.1:", port+1)))
		}
		time.Sleep(2 * time.Second)
		moves(t, crowd[0])
		time.Sleep(1100 * time.Millisecond) // until that is seen
		third := r.visitsFrom("192.0.2.3:1")
		r.gone(other, false)
		r.gone(crowd[0], false)
		r.gone(crowd[1], true)
		r.gone(crowd[2], false)
		r.logged("nothing moved on the connection, and another needed its place")
		for _, qp := range []*iwarp.QP{other, third, crowd[0], crowd[2]} {
			moves(t, qp)
		}
		time.Sleep(999 * time.Millisecond)
		r.refusedFor("stay", "4 connections already")
		testrig.Must(t, errors.Join(other.Close(), third.Close(), crowd[0].Close(), crowd[2].Close()))
		synctest.Wait()
		if got := r.server.Stats(); got.Connections() != 0 || got.Services["stay"].GaveWay != 1 ||
			got.Services["stay"].Failed != 0 {
			t.Errorf("%+v", got)
		}
		r.stop()
		testrig.Must(t, <-r.ended)
	})
}

// TestOneAddress leaves a quarter of the places to others, whatever one address does.
func TestOneAddress(t *testing.T) {
	for _, hosts := range [][2]string{{"192.0.2.1:%d", "192.0.2.2:%d"}, {"[2001:db8::%d]:1", "[2001:db8:0:1::1]:%d"}} {
		synctest.Test(t, func(t *testing.T) {
			r := run(t, Config{MaxConnections: 4})
			var all []*iwarp.QP
			for i := range 3 {
				all = append(all, r.visitsFrom(fmt.Sprintf(hosts[0], i+1)))
			}
			if _, err := r.dialFrom(fmt.Sprintf(hosts[0], 9), "stay"); err == nil {
				t.Error("a fourth of one address")
			}
			r.logged("3 connections from your address already")
			all = append(all, r.visitsFrom(fmt.Sprintf(hosts[1], 1)))
			time.Sleep(3 * time.Second)
			all = append(all, r.visitsFrom(fmt.Sprintf(hosts[0], 9)))
			r.gone(all[3], false) // the other's
			if got := r.server.Stats().Connections(); got != 4 {
				t.Errorf("%d connections", got)
			}
			for _, qp := range all {
				_ = qp.Close()
			}
			synctest.Wait() // until the server has seen the ends
			r.stop()
			testrig.Must(t, <-r.ended)
		})
	}
}

// TestOwnPlaces: a client whom a service rejects, as its own places are taken, counts as rejected, and not as one that
// has ended in order.
func TestOwnPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		pings := rping.NewServer(rnic, rping.Config{})
		r := &rig{t: t, ln: testrig.NewListener("server"), log: new(bytes.Buffer), ended: make(chan error, 1)}
		r.server = New(Config{
			MaxConnections: 1024, Log: slog.New(slog.NewTextHandler(r.log, nil)),
			Services: []Service{{Name: "rping", Wants: "none", Knows: pings.Knows, Serve: pings.Serve}},
		})
		ctx, stop := context.WithCancel(t.Context())
		go func() { r.ended <- r.server.Run(ctx, (&iwarp.ListenConfig{RNIC: rnic}).NewListener(r.ln)) }()
		port := 1
		for ; port <= 192; port++ { // three quarters of rping's 256
			qp, err := r.dialFrom(fmt.Sprint("192.0.2.1:", port), "")
			testrig.Must(t, err)
			t.Cleanup(func() { _ = qp.Abort() })
		}
		refused := (*iwarp.RejectError)(nil)
		if _, err := r.dialFrom(fmt.Sprint("192.0.2.1:", port), ""); !errors.As(err, &refused) ||
			!strings.Contains(string(refused.PrivateData), "192 connections from your address already") {
			t.Fatal(err)
		}
		synctest.Wait()
		if all := r.server.Stats(); all.Full != 1 || all.Services["rping"].Ended != 0 ||
			all.Services["rping"].Failed != 0 {
			t.Errorf("%+v", all)
		}
		r.logged("level=WARN msg=rejected")
		stop()
		<-r.ended
	})
}
