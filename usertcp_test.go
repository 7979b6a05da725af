package iwarp_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/usertcp"
)

// stacks returns two TCPs in user space, and a link between them.
func userStacks(t testing.TB, path usertcp.Path) (a, b *usertcp.Stack) {
	t.Helper()
	back := path
	back.Seed++
	a, b, err := usertcp.Pair(usertcp.Config{MaxRTO: time.Second}, path, back) // the machine may be busy
	must(t, err)
	t.Cleanup(func() { should(t, errors.Join(a.Close(), b.Close())) })
	return a, b
}

// userStacks returns those that a transport is about.
func (o *transport) userStacks(t testing.TB) (a, b *usertcp.Stack) {
	t.Helper()
	if o.wrap == nil {
		return userStacks(t, o.path)
	}
	one, other := usertcp.Pipe(1500, o.path, o.path)
	var stacks []*usertcp.Stack
	for i, l := range []usertcp.Link{one, other} {
		cfg := o.stack
		cfg.Link, cfg.Addresses = o.wrap(i, l), []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)})}
		s, err := usertcp.New(cfg)
		must(t, err)
		t.Cleanup(func() { should(t, s.Close()) })
		stacks = append(stacks, s)
	}
	return stacks[0], stacks[1]
}

// inUserSpace connects by such stacks.
func (s *setup) inUserSpace(t testing.TB, o *transport) (addr string) {
	t.Helper()
	a, b := o.userStacks(t)
	s.Stack, s.listen.Stack = a, b
	s.MPA.Markers, s.accept.MPA.Markers = !o.unmarked, !o.unmarked
	return "192.0.2.2:0"
}

// bad is a path that loses and reorders packets.
func bad(seed uint64) usertcp.Path {
	return usertcp.Path{Seed: seed, Loss: 0.01, Reorder: 0.02, Duplicate: 0.005, Delay: 500 * time.Microsecond}
}

// TestUserTCP leads dialogues over two TCPs in user space, on a path that loses, repeats and reorders packets, with markers
// and without. At the end both close while both work.
//
// Proves D26, D27, D30, P31, P32, R03, R04, S03, S04.
func TestUserTCP(t *testing.T) {
	for seed, markers := range []bool{true, false} {
		t.Run(fmt.Sprintf("markers %t", markers), func(t *testing.T) {
			t.Parallel()
			// The rate is a few packets a round trip, as every hundredth is lost; on a busy machine both closes take a
			// minute and more.
			qp := deep()
			qp.CloseTimeout, qp.CloseLimit = testrig.Soon, -1
			s := setup{Dialer: iwarp.Dialer{QP: qp}, accept: iwarp.AcceptConfig{QP: qp}, over: &transport{user: true, path: bad(uint64(10 * seed)), unmarked: !markers}}
			ini, res := s.connect(t)
			rounds := 4
			if testrig.Everything() {
				rounds = 20
			}
			converse(t, ini, res, rounds)
			for _, e := range []*end{ini, res} {
				n := e.Stats()
				if (n.Ahead.Placed > 0) != markers || n.Ahead.Dropped > 0 || n.Ahead.MostOctets > 64<<10 || n.AlignedWrites != n.SocketWrites {
					t.Errorf("markers %t: %+v, %d of %d writes aligned", markers, n.Ahead, n.AlignedWrites, n.SocketWrites)
				}
			}
		})
	}
}

// converse has the ends send, write and read in so many rounds, and then close with work under way, of which nothing is lost.
func converse(t *testing.T, ini, res *end, rounds int) {
	t.Helper()
	for range rounds {
		works(t, ini, res)
		transfer(t, ini, res)
		transfer(t, res, ini)
		readBack(t, ini, res)
	}
	postAll(ini, res)
	finish(t, ini, res)
	wantAll(t, ini, res)
}

// readBack reads many segments.
func readBack(t testing.TB, from, to *end) {
	t.Helper()
	const n = 50_000
	src, sink := to.filled(n, 9, iwarp.RemoteRead), from.mr(n, iwarp.LocalWrite)
	_, err := from.Read(within(t), sink.Slice(0, n), src.Remote(0))
	must(t, err)
	same(t, "Read", sink, src)
}

// TestUserTCPSharedReceives has connections on a bad path share a receive queue: what is ahead waits there, and every Send
// gets a receive of its own, in the order of its connection.
//
// Proves P31, D27.
func TestUserTCPSharedReceives(t *testing.T) {
	t.Parallel()
	const peers, sends, size = 3, 40, 2000
	a, b := userStacks(t, bad(7))
	res := newEnd(t, iwarp.RNICConfig{Markers: true})
	srq, err := res.pd.CreateSRQ(iwarp.SRQConfig{Depth: peers * sends, SendTimeout: soon})
	must(t, err)
	cq, err := res.rnic.CreateCQ(2 * peers * sends)
	must(t, err)
	sink := res.mr(peers*sends*size, iwarp.LocalWrite)
	for i := range peers * sends {
		must(t, srq.PostRecv(&iwarp.RecvWR{ID: uint64(i), SGL: []iwarp.SGE{sink.Slice(i*size, size)}}))
	}
	ln, err := iwarp.Listen(t.Context(), "tcp", "192.0.2.2:0", iwarp.ListenConfig{PD: res.pd, Stack: b})
	must(t, err)
	t.Cleanup(func() { ln.Close() })
	var ends []*end
	for range peers {
		ini := newEnd(t, iwarp.RNICConfig{Markers: true})
		taken := make(chan error, 1)
		go func() {
			req, err := ln.Accept(within(t))
			if err == nil {
				_, err = req.Accept(within(t), iwarp.AcceptConfig{QP: unhurried(iwarp.QPConfig{SRQ: srq, SendCQ: cq, RecvCQ: cq})})
			}
			taken <- err
		}()
		ini.QP, err = (&iwarp.Dialer{PD: ini.pd, Stack: a, QP: unhurried(deep())}).Dial(within(t), "tcp", ln.Addr().String())
		must(t, errors.Join(err, <-taken))
		ends = append(ends, ini)
	}
	for n, ini := range ends {
		for i := range sends {
			src := ini.filled(size, byte(10*n+i), 0)
			ini.post(&iwarp.SendWR{ID: uint64(i), Op: iwarp.OpSend, SGL: []iwarp.SGE{src.Slice(0, size)}})
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
		if wc.Length != size || string(got) != string(pattern(size, seed)) {
			t.Fatalf("QP %d: the octets of a Send differ", wc.QP.Num())
		}
		next[wc.QP] = seed + 1
	}
	for _, ini := range ends {
		must(t, ini.Close())
	}
}

// nextOf waits for a receive that succeeds.
func nextOf(t testing.TB, cq *iwarp.CQ) iwarp.WC {
	t.Helper()
	wc := next(t, cq)
	must(t, wc.Err())
	return wc
}
