package stream

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// KeepsAlive reports whether the timer of SetKeepAlivePeriod runs.
func (c *Conn) KeepsAlive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alive.timer != nil
}

// Unmap closes all Mappings, as Close does.
func (c *Conn) Unmap() { c.unmap() }

// Disconnect is the part of Close before it closes the QP.
func (c *Conn) Disconnect() (needsWord bool) { return c.disconnect() }

// CloseError is the part of Close after it has closed the QP.
func (c *Conn) CloseError(err error, needsWord bool) error { return c.closeError(err, needsWord) }

// TestLargest checks that a Config may have the largest value of each field.
func TestLargest(t *testing.T) {
	c := Config{Ring: maxRing, Credits: maxCredits, Maps: maxMaps}
	if err := c.fill(); err != nil || c != (Config{Ring: maxRing, Credits: maxCredits, Maps: maxMaps}) {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestDeadline sets a deadline, changes it, and closes it: after that no time has an effect.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deadline
		d.init()
		defer d.close()
		wantEnded := func(what string, ended bool) {
			t.Helper()
			synctest.Wait()
			if (d.context().Err() != nil) != ended {
				t.Errorf("%s: calls go on: %v", what, ended)
			}
		}
		for what, before := range map[string]time.Duration{"now": 0, "a second ago": time.Second} {
			d.set(time.Now().Add(-before))
			wantEnded(what, true)
			d.set(time.Time{})
			wantEnded("never", false)
		}
		d.set(time.Now().Add(time.Minute))
		d.close()
		wantEnded("ended", true)
		d.set(time.Time{})
		wantEnded("never, once it has ended", true)
		time.Sleep(time.Hour)
		d.set(time.Now().Add(time.Minute))
		wantEnded("later, once it has ended", true)
	})
}

// onePD accepts two connections in one Protection Domain, and returns both ends of each.
func onePD(t *testing.T) (dialed, accepted [2]*Conn) {
	t.Helper()
	pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	testrig.Must(t, err)
	cfg := Config{Maps: 1}
	acceptor := Acceptor{RDMA: iwarp.AcceptConfig{PD: pd}, Config: cfg}
	lc := ListenConfig{RDMA: iwarp.ListenConfig{RNIC: pd.RNIC()}, Acceptor: acceptor}
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	for i := range dialed {
		came := make(chan net.Conn, 1)
		go func() {
			c, _ := ln.Accept()
			came <- c
		}()
		dialed[i], err = (&Dialer{Config: cfg}).Dial(t.Context(), "tcp", ln.Addr().String())
		testrig.Must(t, err)
		accepted[i] = (<-came).(*Conn)
		for _, c := range []*Conn{dialed[i], accepted[i]} {
			t.Cleanup(func() { _ = c.QP().Abort(); _ = c.Close() })
		}
	}
	return dialed, accepted
}

// TestOnlyItsPeerWrites has a peer write into memory of another connection of the same Protection Domain. It checks
// that nothing is written, and that the peer loses its connection.
func TestOnlyItsPeerWrites(t *testing.T) {
	for name, of := range map[string]func(*testing.T, *Conn) *iwarp.MR{
		"ring":  func(_ *testing.T, c *Conn) *iwarp.MR { return c.ring },
		"table": func(_ *testing.T, c *Conn) *iwarp.MR { return c.table },
		"map": func(t *testing.T, c *Conn) *iwarp.MR {
			m, err := c.Map(make([]byte, 10), 0)
			testrig.Must(t, err)
			return m.mr
		},
	} {
		t.Run(name, func(t *testing.T) {
			dialed, accepted := onePD(t)
			mr := of(t, accepted[0])
			wrs := []iwarp.SendWR{
				{Op: iwarp.OpWrite, Inline: []byte("x"), Remote: mr.Remote(0), Unsignaled: true},
				// ends the connection in any case
				{Op: iwarp.OpSend, Inline: []byte("what is no word"), Unsignaled: true},
			}
			_, err := dialed[1].qp.PostSends(wrs)
			testrig.Must(t, err)
			<-accepted[1].qp.Done()
			var got [1]byte
			if _, err := mr.ReadAt(got[:], 0); err != nil || got[0] == 'x' {
				t.Errorf("%q is there, %v; the connection ended by %v", got, err, accepted[1].qp.Err())
			}
		})
	}
}

// TestMapGivesBack checks that a Map that fails leaves nothing registered. A second Close of a Mapping must not close
// the one that has its entry now.
func TestMapGivesBack(t *testing.T) {
	_, accepted := onePD(t)
	c := accepted[0]
	one, err := c.Map(make([]byte, 10), 0)
	testrig.Must(t, err)
	before := c.pd.RNIC().Stats().MRs
	if _, err := c.Map(make([]byte, 10), 10); !errors.Is(err, ErrNoMaps) {
		t.Errorf("a second map: %v", err)
	}
	if now := c.pd.RNIC().Stats().MRs; now != before {
		t.Errorf("%d regions, not %d", now, before)
	}
	testrig.Must(t, one.Close())
	again, err := c.Map(make([]byte, 10), 0)
	testrig.Must(t, err)
	testrig.Must(t, one.Close())
	if !again.mr.Valid() || c.maps[again.at] != again {
		t.Error("the other has gone, or its entry is free")
	}
}
