package iwarp_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/usertcp"
)

// bad is a path that loses and reorders packets.
func bad(seed uint64) usertcp.Path {
	return usertcp.Path{Seed: seed, Loss: 0.01, Reorder: 0.02, Duplicate: 0.005, Delay: 500 * time.Microsecond}
}

// TestUserTCP leads dialogues over two TCPs in user space, on a path that loses, repeats and reorders packets, with
// markers and without. At the end both close while both work.
//
// Proves D26, D27, D30, P31, P32, R03, R04, S03, S04.
func TestUserTCP(t *testing.T) {
	for seed, markers := range []bool{true, false} {
		t.Run(fmt.Sprintf("markers %t", markers), func(t *testing.T) {
			t.Parallel()
			// The rate is a few packets a round trip, as every hundredth is lost; on a busy machine both closes take a
			// minute and more.
			qp := rig.DeepQueues()
			qp.CloseTimeout, qp.CloseLimit = testrig.Soon, -1
			s := rig.Setup{Dialer: iwarp.Dialer{QP: qp}, Accept: iwarp.AcceptConfig{QP: qp},
				Over: &rig.Transport{User: true, Path: bad(uint64(10 * seed)), Unmarked: !markers}}
			ini, res := s.Connect(t)
			rounds := 4
			if testrig.Everything() {
				rounds = 20
			}
			converse(t, ini, res, rounds)
			for _, e := range []*rig.End{ini, res} {
				n := e.Stats()
				if (n.Ahead.Placed > 0) != markers || n.Ahead.Dropped > 0 || n.Ahead.MostBytes > 64<<10 ||
					n.AlignedWrites != n.SocketWrites {
					t.Errorf("markers %t: %+v, %d of %d writes aligned",
						markers, n.Ahead, n.AlignedWrites, n.SocketWrites)
				}
			}
		})
	}
}

// converse has the ends send, write and read in so many rounds, and then close with work under way, of which nothing is
// lost.
func converse(t *testing.T, ini, res *rig.End, rounds int) {
	t.Helper()
	for range rounds {
		rig.Works(t, ini, res)
		transfer(t, ini, res)
		transfer(t, res, ini)
		readBack(t, ini, res)
	}
	rig.PostAll(ini, res)
	rig.Finish(t, ini, res)
	rig.WantAll(t, ini, res)
}

// readBack reads many segments.
func readBack(t testing.TB, from, to *rig.End) {
	t.Helper()
	const n = 50_000
	src, sink := to.Filled(n, 9, iwarp.RemoteRead), from.MR(n, iwarp.LocalWrite)
	_, err := from.Read(rig.Within(t), sink.Slice(0, n), src.Remote(0))
	rig.Must(t, err)
	rig.Same(t, "Read", sink, src)
}

// TestUserTCPSharedReceives has connections on a bad path share a receive queue: what is ahead waits there, and every
// Send gets a receive of its own, in the order of its connection.
//
// Proves P31, D27.
func TestUserTCPSharedReceives(t *testing.T) {
	t.Parallel()
	const peers, sends, size = 3, 40, 2000
	a, b := rig.UserStacks(t, bad(7))
	res := rig.NewEnd(t, iwarp.RNICConfig{Markers: true})
	srq, err := res.PD.CreateSRQ(iwarp.SRQConfig{Depth: peers * sends, SendTimeout: rig.Soon})
	rig.Must(t, err)
	cq, err := res.RNIC.CreateCQ(2 * peers * sends)
	rig.Must(t, err)
	sink := res.MR(peers*sends*size, iwarp.LocalWrite)
	for i := range peers * sends {
		rig.Must(t, srq.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{sink.Slice(i*size, size)}}))
	}
	ln, err := (&iwarp.ListenConfig{PD: res.PD, Stack: b}).Listen(t.Context(), "tcp", "192.0.2.2:0")
	rig.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	var ends []*rig.End
	for range peers {
		ini := rig.NewEnd(t, iwarp.RNICConfig{Markers: true})
		taken := make(chan error, 1)
		go func() {
			req, err := ln.Accept(rig.Within(t))
			if err == nil {
				_, err = req.Accept(rig.Within(t),
					iwarp.AcceptConfig{QP: rig.Unhurried(iwarp.QPConfig{SRQ: srq, SendCQ: cq, RecvCQ: cq})})
			}
			taken <- err
		}()
		ini.QP, err = (&iwarp.Dialer{PD: ini.PD, Stack: a, QP: rig.Unhurried(rig.DeepQueues())}).Dial(rig.Within(t),
			"tcp", ln.Addr().String())
		rig.Must(t, errors.Join(err, <-taken))
		ends = append(ends, ini)
	}
	for n, ini := range ends {
		for i := range sends {
			src := ini.Filled(size, byte(10*n+i), 0)
			ini.MustPost(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(0, size)}})
		}
	}
	next := make(map[*iwarp.QP]byte)
	for range peers * sends {
		wc := nextOf(t, cq)
		got := sink.Bytes()[int(wc.ID)*size:][:size]
		seed := got[0]
		if last, ok := next[wc.QP]; ok && seed != last {
			t.Fatalf("QP %d: the Send with seed %d, want %d", wc.QP.Num(), seed, last)
		}
		if wc.Length != size || string(got) != string(rig.Pattern(size, seed)) {
			t.Fatalf("QP %d: the bytes of a Send differ", wc.QP.Num())
		}
		next[wc.QP] = seed + 1
	}
	for _, ini := range ends {
		rig.Must(t, ini.Close())
	}
}

// nextOf waits for a receive that succeeds.
func nextOf(t testing.TB, cq *iwarp.CQ) iwarp.WC {
	t.Helper()
	wc := rig.Next(t, cq)
	rig.Must(t, wc.Err())
	return wc
}

// TestUserTCPClose: a program that ends when Close has returned has lost nothing, although its peer had closed its half
// before, and its TCP ends with it.
func TestUserTCPClose(t *testing.T) {
	t.Parallel()
	const sends, size = 10, 3000
	path := usertcp.Path{Seed: 11, Delay: 10 * time.Millisecond, Loss: 0.05}
	a, b := rig.UserStacks(t, path)
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	ln, err := (&iwarp.ListenConfig{PD: res.PD, Stack: b}).Listen(t.Context(), "tcp", "192.0.2.2:0")
	rig.Must(t, err)
	defer ln.Close()
	accepted := rig.DialInBackground(t, func() error {
		req, err := ln.Accept(rig.Within(t))
		if err == nil {
			res.QP, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{QP: rig.DeepQueues()})
		}
		return err
	})
	stays := rig.DeepQueues()
	stays.HalfClose = true
	ini.QP, err = (&iwarp.Dialer{PD: ini.PD, Stack: a, QP: stays}).Dial(rig.Within(t), "tcp", ln.Addr().String())
	rig.Must(t, errors.Join(err, <-accepted))
	sink := res.MR(sends*size, iwarp.LocalWrite)
	for i := range sends {
		rig.Must(t, res.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{sink.Slice(i*size, size)}}))
	}
	rig.Must(t, res.CloseWrite())
	src := ini.Filled(sends*size, 1, 0)
	for i := range sends {
		ini.MustPost(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(i*size, size)}})
	}
	rig.Must(t, ini.Close())
	rig.Must(t, a.Close())
	for i := range sends {
		if wc := nextOf(t, res.RecvCQ()); wc.ID != uint64(i) {
			t.Fatalf("receive %d completes, want %d", wc.ID, i)
		}
	}
	rig.Same(t, "Sends", sink, src)
	rig.Must(t, res.Close())
}
