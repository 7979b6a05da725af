package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
	"github.com/goiwarp/iwarp/mpa"
)

// linked connects two links, the second with an RNIC if that is not nil.
func linked(t *testing.T, rnic *iwarp.RNIC) (s, v *link) {
	t.Helper()
	ours, theirs := testrig.Pipe("sender", "receiver")
	s, v = newLink(time.Minute), newLink(0)
	accepted := make(chan error, 1)
	go func() {
		req, err := (&iwarp.ListenConfig{RNIC: rnic}).Respond(t.Context(), theirs, nil)
		if err == nil {
			_, err = req.Accept(t.Context(), iwarp.AcceptConfig{QP: v.config(), Prepare: v.prepare})
		}
		accepted <- err
	}()
	_, err := (&iwarp.Dialer{QP: s.config(), Prepare: s.prepare}).Initiate(t.Context(), ours, nil)
	testrig.Must(t, errors.Join(err, <-accepted))
	t.Cleanup(func() {
		_ = s.close(errors.New("over"))
		_ = v.close(errors.New("over"))
	})
	return s, v
}

// TestUnanswered has an end say much without an answer: it waits where its queue has no room, and the other end has a
// bound for what it has not answered.
func TestUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, v := linked(t, nil)
		say := func(n int) {
			for range n {
				testrig.Must(t, s.send(t.Context(), message.Done{}))
			}
			synctest.Wait()
		}
		for range 5 {
			say(recvDepth)
			for range recvDepth {
				_, err := v.receive(t.Context())
				testrig.Must(t, err)
			}
		}
		if s.posted != sendDepth {
			t.Errorf("%d requests are under way in a queue of %d", s.posted, sendDepth)
		}
		say(recvDepth)
		for range recvDepth {
			testrig.Must(t, v.step(t.Context()))
		}
		say(1)
		if v.step(t.Context()) == nil {
			t.Error("one message more is kept")
		}
	})
}

// TestMoves has as many bytes go in one direction as in the other, which is not nothing.
func TestMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, v := linked(t, nil)
		synctest.Wait()
		s.moves()
		for _, moved := range []bool{false, true, false} {
			if moved {
				testrig.Must(t, errors.Join(s.send(t.Context(), message.Done{}), v.send(t.Context(), message.Done{})))
				synctest.Wait()
			}
			if s.moves() != moved {
				t.Errorf("it moves: %t", !moved)
			}
		}
	})
}

// TestBlocks has memory for so many blocks and no more. That of one that nothing is under way with is used again, or
// makes room for larger.
func TestBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		_, v := linked(t, rnic)
		take := func(n int, wait time.Duration) (uint64, error) {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			_, i, err := v.acquireBlock(ctx, n, iwarp.RemoteWrite)
			if mrs := rnic.Stats().MRs - 1; mrs > window || mrs != len(v.blocks) { // the first has what arrives
				t.Errorf("%d of %d blocks have memory", mrs, len(v.blocks))
			}
			return i, err
		}
		for want := range uint64(window) {
			if i, err := take(1000, time.Second); i != want || err != nil {
				t.Fatalf("block %d is %d, %v", want, i, err)
			}
		}
		if i, err := take(1000, time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one more is block %d, %v", i, err)
		}
		for _, free := range []uint64{0, 5} {
			for _, n := range []int{1000, 1001} {
				v.blocks[free].busy = false
				if i, err := take(n, time.Second); i != free || err != nil || v.blocks[i].len() < n {
					t.Errorf("%d bytes are in block %d, %v", n, i, err)
				}
			}
		}
	})
}

// TestBlocksShort has room for one block alone: a small one gives way to a larger.
func TestBlocksShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, v := linked(t, iwarp.NewRNIC(iwarp.RNICConfig{Limits: iwarp.Limits{Bytes: reserved}}))
		for _, n := range []int{1000, message.MaxBlock} {
			b, _, err := v.acquireBlock(t.Context(), n, iwarp.RemoteWrite)
			testrig.Must(t, err)
			b.busy = false
		}
	})
}

// TestTriedAgain has a server turn a client down, which tries again, or not: no memory is left of either.
func TestTriedAgain(t *testing.T) {
	for _, again := range []bool{false, true} {
		r := newRig(t)
		made(t, randomBytes(1000, 51), r.there, "f")
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		err := r.get("f", func(c *Client) {
			c.Dial = func(ctx context.Context, d *iwarp.Dialer) (*iwarp.QP, error) {
				pd, err := rnic.AllocPD()
				testrig.Must(t, err)
				d.PD = pd
				ours, theirs := testrig.Pipe("client", "server")
				r.serving.Go(func() {
					req, err := new(iwarp.ListenConfig).Respond(ctx, theirs, nil)
					if err == nil {
						err = req.Reject(nil)
					}
					testrig.Should(t, err)
				})
				qp, err := d.Initiate(ctx, ours, nil)
				if again {
					qp, err = r.dial(ctx, d)
				}
				return qp, err
			}
		})
		if (err == nil) != again {
			t.Errorf("tried again: %t, and %v", again, err)
		}
		testrig.Must(t, r.served())
		if n := rnic.Stats(); n.MRs+n.QPs != 0 {
			t.Errorf("left: %+v", n)
		}
	}
}

// TestSaysNothing has a server turn a client down without a word, of which none is made up.
func TestSaysNothing(t *testing.T) {
	rejected := &iwarp.RejectError{RejectError: &mpa.RejectError{}}
	if got := connectError(rejected); got != error(rejected) {
		t.Errorf("got %v", got)
	}
}

// TestWrongBlocks has a sender answer what was not granted, or claim what is not so.
func TestWrongBlocks(t *testing.T) {
	grant := granted{Grant: message.Grant{Offset: 10, Length: 10, Have: true,
		Digest: sha256.Sum256([]byte("ten bytes."))}}
	unknown := grant
	unknown.Have, unknown.Digest = false, message.Digest{}
	other := sha256.Sum256([]byte("others"))
	for _, c := range []struct {
		name   string
		grant  granted
		wrote  message.Wrote
		fatal  bool
		failed message.Code
		over   bool
	}{
		{"another place", grant, message.Wrote{State: message.Same, Offset: 0, Length: 10,
			Digest: grant.Digest}, true, 0, false},
		{"another length", grant, message.Wrote{State: message.Same, Offset: 10, Length: 9,
			Digest: grant.Digest}, true, 0, false},
		{"what is there", grant, message.Wrote{State: message.Same, Offset: 10, Length: 10,
			Digest: grant.Digest}, false, 0, false},
		{"something else", grant, message.Wrote{State: message.Same, Offset: 10, Length: 10, Digest: other},
			false, message.Corrupt, false},
		{"what is not there", unknown, message.Wrote{State: message.Same, Offset: 10, Length: 10},
			false, message.Corrupt, false},
		{"what had no place", unknown, message.Wrote{State: message.Written, Offset: 10, Length: 10, Digest: other},
			false, message.Corrupt, false},
		{"nothing", grant, message.Wrote{State: message.Lost, Offset: 10, Length: 10}, false, message.Changed, true},
		{"it differs", grant, message.Wrote{State: message.Differs, Offset: 10, Length: 10},
			false, message.Unlike, true},
	} {
		v := &receiving{receiver: &receiver{link: newLink(0)}, blocks: sha256.New(), granted: []granted{c.grant}}
		v.inbox = []message.Message{c.wrote, c.wrote}
		err := v.completeGrant(t.Context())
		var broken *brokenError
		if errors.As(err, &broken) != c.fatal || !c.fatal && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if a := answerOf(v.failed); a.Code != c.failed || v.over != c.over {
			t.Errorf("%s: %v, and the sender knows: %t", c.name, a, v.over)
		}
		if err := v.completeGrant(t.Context()); !c.fatal && !errors.As(err, &broken) {
			t.Errorf("%s: what was not granted: %v", c.name, err)
		}
	}
}

// TestWrongGrants has a receiver ask for what is not next, or for more than is left.
func TestWrongGrants(t *testing.T) {
	for _, g := range []message.Grant{{Offset: 4, Length: 1}, {Offset: 6, Length: 1}, {Offset: 5, Length: 6}} {
		if err := (&sending{sender: &sender{}, size: 10, next: 5}).grant(t.Context(), g); err == nil {
			t.Errorf("%d bytes at %d are granted", g.Length, g.Offset)
		}
	}
}

// TestNotAccepted has a client go away, or the server end, before it is accepted: no memory is left.
func TestNotAccepted(t *testing.T) {
	r := newRig(t)
	r.rnic = iwarp.NewRNIC(iwarp.RNICConfig{})
	ours, theirs := testrig.Pipe("client", "server")
	r.serving.Go(func() {
		req, err := (&iwarp.ListenConfig{RNIC: r.rnic}).Respond(testrig.Within(t), theirs, nil)
		testrig.Should(t, err)
		over, end := context.WithCancel(t.Context())
		end()
		if r.server.Serve(over, req) == nil {
			t.Error("it was served")
		}
	})
	l := newLink(0)
	if _, err := (&iwarp.Dialer{QP: l.config(), NoReads: true, MPA: mpa.Offer{PrivateData: greeting()},
		Prepare: l.prepare}).Initiate(testrig.Within(t), ours, nil); err == nil {
		t.Error("it was accepted")
	}
	l.release()
	r.serving.Wait()
	if n := r.rnic.Stats(); n.MRs+n.QPs != 0 {
		t.Errorf("left: %+v", n)
	}
}

// TestKeepChanged has somebody write to the file that is to be replaced after its block was compared: what is there now
// is not kept for what the sender has.
func TestKeepChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := linked(t, nil)
		p, dir := newPart(t)
		old, err := os.Open(made(t, []byte("ten bytes."), dir, "old"))
		testrig.Must(t, err)
		defer old.Close()
		b, _, err := l.acquireBlock(t.Context(), 10, iwarp.RemoteWrite)
		testrig.Must(t, err)
		v := &receiving{receiver: &receiver{link: l}, part: p, old: old}
		for text, code := range map[string]message.Code{"ten bytes.": message.OK, "others....": message.Changed} {
			w := message.Wrote{State: message.Same, Length: 10, Digest: sha256.Sum256([]byte(text))}
			if a := answerOf(v.keep(granted{b: b, old: true}, w)); a.Code != code {
				t.Errorf("%s: %v", text, a)
			}
		}
	})
}
