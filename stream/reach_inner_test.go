package stream

import (
	"errors"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// onePD accepts two connections in one Protection Domain, and returns both ends of each.
func onePD(t *testing.T) (dialed, accepted [2]*Conn) {
	t.Helper()
	pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	testrig.Must(t, err)
	cfg := Config{Maps: 1}
	lc := ListenConfig{RDMA: iwarp.ListenConfig{RNIC: pd.RNIC()}, Acceptor: Acceptor{RDMA: iwarp.AcceptConfig{PD: pd}, Config: cfg}}
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

// TestOnlyItsPeerWrites has a peer write where another connection of the same Protection Domain expects octets: it loses its connection.
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
			testrig.Must(t, dialed[1].qp.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("x"), Remote: mr.Remote(0), Unsignaled: true}))
			_ = dialed[1].qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: []byte("what is no word"), Unsignaled: true}) // which ends it in any case
			<-accepted[1].qp.Done()
			var octet [1]byte
			if _, err := mr.ReadAt(octet[:], 0); err != nil || octet[0] == 'x' {
				t.Errorf("%q is there, %v; the connection ended by %v", octet, err, accepted[1].qp.Err())
			}
		})
	}
}

// TestMapGivesBack has a Map that fails leave nothing registered, and Close of a Mapping that was closed leave the one that has its entry now.
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
