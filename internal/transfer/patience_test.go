package transfer

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// TestWorking has a sender be patient as long as the receiver that it has asked says that it works, without memory
// meanwhile.
func TestWorking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := linked(t, nil)
		v := &receiving{receiver: &receiver{link: l}}
		go func() {
			took := v.working(t.Context(), func() error { time.Sleep(time.Hour); return errors.New("late") })
			_ = v.send(t.Context(), message.Answer{Text: took.Error()})
		}()
		b, _, err := s.acquireBlock(t.Context(), minBlock, 0)
		testrig.Must(t, err)
		b.busy = false
		a, err := (&sender{link: s}).ask(t.Context(), message.Done{})
		if err != nil || a.Text != "late" {
			t.Errorf("%v, %v", a, err)
		}
		if b.len() != 0 {
			t.Error("it has kept its memory for an hour")
		}
	})
}

// TestNotWorking has somebody say that it is working who was not asked for anything, or not when all blocks have come:
// its connection ends.
func TestNotWorking(t *testing.T) {
	for name, is := range map[string]func(*link){
		"was not asked": func(*link) {},
		"takes a block": func(l *link) { l.asks, l.blocks = true, []*block{{busy: true}} },
	} {
		synctest.Test(t, func(t *testing.T) {
			s, v := linked(t, nil)
			is(v)
			testrig.Must(t, s.send(t.Context(), message.Working{}))
			if _, err := v.receive(t.Context()); err == nil || errors.Is(err, ErrSilent) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestHeldByWorking has a client keep what was granted to it and say that it is working: the server takes that at once
// for what it is.
func TestHeldByWorking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRig(t), time.Now()
		l := r.playClient(t.Context())
		for _, m := range []message.Message{beginPut,
			message.Offer{Kind: message.File, Path: "x", Size: 1 << 40}, message.Working{}} {
			testrig.Must(t, l.send(t.Context(), m))
		}
		if err := r.served(); err == nil || errors.Is(err, ErrSilent) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("after %v", took)
		}
		_ = l.close(errors.New("over"))
	})
}

// TestSlowest has a client keep what was granted to it, and have bytes move that are of no message: that ends, and a
// block may take as long as at 1 KiB/s.
func TestSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRig(t), time.Now()
		l := r.playClient(t.Context())
		for _, m := range []message.Message{beginPut, message.Offer{Kind: message.File, Path: "x", Size: 1 << 40}} {
			testrig.Must(t, l.send(t.Context(), m))
		}
		for _, err := l.qp.PostSend(nothing), error(nil); err == nil &&
			time.Since(began) < time.Hour; err = l.qp.PostSend(nothing) {
			time.Sleep(30 * time.Second)
		}
		if err := r.served(); !errors.Is(err, ErrSilent) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < message.MaxBlock/1024*time.Second || took > slowest+time.Minute {
			t.Errorf("after %v", took)
		}
		_ = l.close(errors.New("over"))
	})
}

// nothing is a Write that moves bytes, and says nothing.
var nothing = &iwarp.SendWR{Op: iwarp.OpWrite, Unsignaled: true}

// TestSilentAfterMoving has an end go silent after a while: it is given up a minute after that, and not two.
func TestSilentAfterMoving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, v := linked(t, nil)
		testrig.Must(t, s.send(t.Context(), message.Done{}))
		_, err := v.receive(t.Context())
		testrig.Must(t, err)
		began := time.Now()
		_, err = v.receive(t.Context())
		if took := time.Since(began); !errors.Is(err, ErrSilent) || took < time.Minute || took > 90*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// TestShares has the clients of one address have half of a server's memory, and what one gives back another may have.
func TestShares(t *testing.T) {
	all := newShares(4 * message.MaxBlock)
	of := func(address string) *share {
		ours, _ := testrig.Pipe(address, "server")
		return all.share(ours.LocalAddr())
	}
	one, again, other, unknown := of("192.0.2.1:1"), of("192.0.2.1:2"), of("192.0.2.2:1"), of("pipe")
	testrig.Must(t, errors.Join(one.reserve(message.MaxBlock), again.reserve(message.MaxBlock)))
	if err := again.reserve(1); !errors.Is(err, iwarp.ErrLimit) {
		t.Errorf("one byte more: %v", err)
	}
	testrig.Must(t, errors.Join(other.reserve(2*message.MaxBlock), unknown.reserve(9*message.MaxBlock)))
	one.give(message.MaxBlock)
	testrig.Must(t, again.reserve(message.MaxBlock))
	again.give(2 * message.MaxBlock)
	other.give(2 * message.MaxBlock)
	unknown.give(9 * message.MaxBlock)
	if len(all.used) != 0 {
		t.Errorf("left: %v", all.used)
	}
}

// TestShareOfBlocks has blocks take their memory from the share, and give it back.
func TestShareOfBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, v := linked(t, nil)
		ours, _ := testrig.Pipe("192.0.2.1:1", "server")
		all := newShares(2 * (2*minBlock + 1))
		v.share = all.share(ours.LocalAddr())
		for range 2 {
			_, _, err := v.acquireBlock(t.Context(), minBlock, iwarp.RemoteWrite)
			testrig.Must(t, err)
		}
		if _, _, err := v.acquireBlock(t.Context(), minBlock, iwarp.RemoteWrite); !errors.Is(err, iwarp.ErrLimit) {
			t.Errorf("a third block: %v", err)
		}
		v.blocks[0].busy = false
		_, _, err := v.acquireBlock(t.Context(), minBlock+1, iwarp.RemoteWrite)
		testrig.Must(t, err)
		v.release()
		if len(all.used) != 0 {
			t.Errorf("left: %v", all.used)
		}
	})
}
