package iwarp_test

import (
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/usertcp"
)

// TestUserTCPClose: a program that ends when Close has returned has lost nothing, although its peer had closed its half
// before, and its TCP ends with it.
func TestUserTCPClose(t *testing.T) {
	t.Parallel()
	const sends, size = 10, 3000
	path := usertcp.Path{Seed: 11, Delay: 10 * time.Millisecond, Loss: 0.05}
	a, b := userStacks(t, path)
	ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	ln, err := iwarp.Listen(t.Context(), "tcp", "192.0.2.2:0", iwarp.ListenConfig{PD: res.pd, Stack: b})
	must(t, err)
	defer ln.Close()
	accepted := dialInBackground(t, func() error {
		req, err := ln.Accept(within(t))
		if err == nil {
			res.QP, err = req.Accept(within(t), iwarp.AcceptConfig{QP: deep()})
		}
		return err
	})
	stays := deep()
	stays.HalfClose = true
	ini.QP, err = (&iwarp.Dialer{PD: ini.pd, Stack: a, QP: stays}).Dial(within(t), "tcp", ln.Addr().String())
	must(t, errors.Join(err, <-accepted))
	sink := res.mr(sends*size, iwarp.LocalWrite)
	for i := range sends {
		must(t, res.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{sink.Slice(i*size, size)}}))
	}
	must(t, res.CloseWrite())
	src := ini.filled(sends*size, 1, 0)
	for i := range sends {
		ini.post(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(i*size, size)}})
	}
	must(t, ini.Close())
	must(t, a.Close())
	for i := range sends {
		if wc := nextOf(t, res.RecvCQ()); wc.ID != uint64(i) {
			t.Fatalf("receive %d completes, want %d", wc.ID, i)
		}
	}
	same(t, "Sends", sink, src)
	must(t, res.Close())
}
