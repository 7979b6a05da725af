package startup

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// An owing peer is the Initiator of a dialect in which another frame follows our
// answer, which it does not send.
type owing struct {
	name   string
	cfg    iwarp.ListenConfig
	first  []byte
	answer func(p *rig.Peer) // read it
	owed   []byte
}

func owings() []owing {
	rtr := rig.Request(1)
	rtr.S = true
	return []owing{
		{
			"Rtr frame", iwarp.ListenConfig{Dialects: mpa.Dialects()}, rig.Frame(rtr),
			func(p *rig.Peer) { p.WantFrame(mpa.KeyReply) },
			rig.Frame(mpa.StartupFields{Key: mpa.KeyRtr, C: true, Rev: 1}),
		},
		{
			"Start Key", iwarp.ListenConfig{Messages: true}, []byte{0, 2, 'h', 'i'},
			func(p *rig.Peer) { p.WantBytes([]byte{0, 0}) }, startKey(false),
		},
	}
}

// TestOwedTimeout has a peer owe the frame after our answer, or the rest of it.
//
// Proves Q12, T01, K07.
func TestOwedTimeout(t *testing.T) {
	for _, c := range owings() {
		for _, sent := range []int{0, 1, len(c.owed) - 1} {
			for limit, want := range map[time.Duration]time.Duration{0: 5 * time.Second, time.Minute: time.Minute} {
				synctest.Test(t, func(t *testing.T) {
					p, accepted := acceptOwing(t.Context(), t, c, limit)
					began := time.Now()
					if sent > 0 {
						p.Send(c.owed[:sent])
					}
					wantTimeout(t, <-accepted, "no "+c.name)
					if took := time.Since(began); took != want {
						t.Errorf("%s, %d bytes: took %v, want %v", c.name, sent, took, want)
					}
					p.WantClosed()
				})
			}
		}
	}
}

// acceptOwing accepts the Request of a peer, which has read the answer.
func acceptOwing(ctx context.Context, t *testing.T, c owing, limit time.Duration) (*rig.Peer, <-chan error) {
	t.Helper()
	c.cfg.RequestTimeout = limit
	p, req := rig.AskOverPipe(ctx, t, c.cfg, c.first)
	accepted := rig.DialInBackground(t, func() error {
		_, err := req.Accept(ctx, iwarp.AcceptConfig{})
		return err
	})
	c.answer(p)
	return p, accepted
}

// TestOwedEnd has the peer leave instead, or the context end.
//
// Proves Q16, R08.
func TestOwedEnd(t *testing.T) {
	for _, c := range owings() {
		synctest.Test(t, func(t *testing.T) {
			p, accepted := acceptOwing(t.Context(), t, c, 0)
			p.Send(c.owed[:3])
			p.Conn.Close()
			wantFailure(t, c.name, <-accepted, mpa.FailureClosed)
		})
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p, accepted := acceptOwing(ctx, t, c, 0)
			cancel()
			if err := <-accepted; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", c.name, err)
			}
			p.WantClosed()
		})
	}
}

// TestAnswerTimeout keeps an Initiator waiting at each step of a Start Key.
//
// Proves Q12, K02, K07.
func TestAnswerTimeout(t *testing.T) {
	for _, c := range []struct {
		name     string
		messages bool
		said     []byte // by the peer, before it falls silent
		want     string
	}{
		{"no Start Key", false, nil, "no Start Key within"},
		{"half a Start Key", false, startKey(false)[:9], "no Start Key within"},
		{"no message", true, nil, "no private data message within"},
		{"half a message", true, []byte{0, 9, 'n'}, "no private data message within"},
		{"no Start Key after the message", true, []byte{0, 0}, "no Start Key within"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, outcome := initiateTo(t.Context(), t,
				iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectStartKey, Messages: c.messages,
					Timeout: 7 * time.Second}})
			began := time.Now()
			if c.messages {
				p.WantBytes([]byte{0, 0})
			} else {
				p.WantBytes(startKey(false))
			}
			if len(c.said) > 0 {
				p.Send(c.said)
			}
			if c.messages && len(c.said) == 2 {
				p.WantBytes(startKey(false))
			}
			wantTimeout(t, <-outcome, c.want)
			if took := time.Since(began); took != 7*time.Second {
				t.Errorf("%s: took %v", c.name, took)
			}
			p.WantClosed()
		})
	}
}

// TestOwedHalfOpen counts a connection that owes a frame after our answer as half-open:
// it takes part in the bound, in both directions.
//
// Proves Z04.
func TestOwedHalfOpen(t *testing.T) {
	for _, c := range owings() {
		c.cfg.MaxHalfOpen, c.cfg.RequestTimeout = 2, -1
		ln := rig.Listen(t, c.cfg)
		halfOpen := func(n int) {
			t.Helper()
			rig.Until(t, func() bool { return ln.Stats().HalfOpen == n }, "half-open connections")
		}
		silent := rig.DialPeer(t, ln.Addr())
		halfOpen(1)
		owes := func() (*rig.Peer, <-chan error) {
			t.Helper()
			p, req := rig.Ask(t, ln, c.first)
			accepted := acceptInBackground(t, req)
			c.answer(p)
			return p, accepted
		}
		first, firstAccepted := owes()
		halfOpen(2)
		_, secondAccepted := owes() // which closes the oldest, silent one
		silent.WantClosed()
		halfOpen(2)
		_ = rig.DialPeer(t, ln.Addr()) // which closes the next
		if err := <-firstAccepted; !errors.Is(err, iwarp.ErrEvicted) {
			t.Errorf("%s: %v", c.name, err)
		}
		first.WantClosed()
		halfOpen(2)
		if s := ln.Stats(); s.Evicted != 2 || len(s.Failed) != 0 {
			t.Errorf("%s: counted %+v", c.name, s)
		}
		_ = ln.Close()
		select {
		case err := <-secondAccepted:
			t.Errorf("%s: Close has ended what was accepted: %v", c.name, err)
		default:
		}
	}
}

// TestOwedMakesRoom accepts a Request when there is no room: an older connection that
// has not said anything goes.
//
// Proves Z04.
func TestOwedMakesRoom(t *testing.T) {
	for _, c := range owings() {
		c.cfg.MaxHalfOpen, c.cfg.RequestTimeout = 1, -1
		ln := rig.Listen(t, c.cfg)
		p, req := rig.Ask(t, ln, c.first)
		silent := rig.DialPeer(t, ln.Addr())
		rig.Until(t, func() bool { return ln.Stats().HalfOpen == 1 }, "the silent one")
		accepted := acceptInBackground(t, req)
		silent.WantClosed()
		c.answer(p)
		p.Send(c.owed)
		if err := <-accepted; err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if s := ln.Stats(); s.Evicted != 1 || s.Established != 1 {
			t.Errorf("%s: counted %+v", c.name, s)
		}
	}
}

// TestOwedArrives has the owed frame come after all, and the connection is no longer
// half-open.
//
// Proves T03, K03, Z04.
func TestOwedArrives(t *testing.T) {
	for _, c := range owings() {
		c.cfg.MaxHalfOpen, c.cfg.RequestTimeout = 1, -1
		ln := rig.Listen(t, c.cfg)
		p, req := rig.Ask(t, ln, c.first)
		accepted := acceptInBackground(t, req)
		c.answer(p)
		p.Send(c.owed)
		if err := <-accepted; err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if s := ln.Stats(); s.HalfOpen != 0 || s.Established != 1 {
			t.Errorf("%s: counted %+v", c.name, s)
		}
	}
}

// awaiting accepts the Request of a peer whose RTR indication is awaited, on a QP with a receive, and returns when the
// answer is there.
func awaiting(t *testing.T, rev uint8) (*rig.Peer, *iwarp.QP, <-chan error) {
	t.Helper()
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	qp := rig.NewQP(t, rig.NewPD(t, rnic), iwarp.QPConfig{})
	rig.Must(t, qp.PostRecv(&iwarp.RecvWR{ID: 7}))
	p, req := rig.AskOverPipe(t.Context(), t, iwarp.ListenConfig{RNIC: rnic, RTRTimeout: time.Minute},
		rig.Frame(rig.Request(rev)))
	accepted := rig.DialInBackground(t, func() error {
		return req.AcceptQP(t.Context(), qp,
			iwarp.AcceptConfig{AwaitRTR: true})
	})
	p.WantFrame(mpa.KeyReply)
	return p, qp, accepted
}

// TestAwaitRTR: AcceptQP waits for the RTR indication. Where the peer goes away without one, or takes too long, the QP
// keeps its receive.
func TestAwaitRTR(t *testing.T) {
	for name, comes := range map[string]func(p *rig.Peer){
		"leaves": func(p *rig.Peer) { _ = p.Conn.Close() },
		"late":   func(*rig.Peer) { time.Sleep(time.Hour) },
		"sends":  func(p *rig.Peer) { p.Send(p.Write(1, 0, nil)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p, qp, accepted := awaiting(t, 2)
			synctest.Wait()
			select {
			case err := <-accepted:
				t.Fatalf("accepted before the peer has sent anything: %v", err)
			default:
			}
			comes(p)
			up, err := name == "sends", <-accepted
			if up && (err != nil || qp.State() != iwarp.StateRTS) || !up &&
				(!errors.Is(err, iwarp.ErrNoRTR) || qp.State() != iwarp.StateIdle) {
				t.Errorf("the peer %s: %v, and the QP is in %v", name, err, qp.State())
			}
			if late := name == "late"; errors.Is(err, os.ErrDeadlineExceeded) != late {
				t.Errorf("the peer %s: %v", name, err)
			}
			if n := qp.Query().Receives; n != 1 {
				t.Errorf("the peer %s: %d receives are left", name, n)
			}
			_ = qp.Abort()
		})
	}
}

// TestAwaitNoRTR: nobody waits for an RTR indication that is not owed.
func TestAwaitNoRTR(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, qp, accepted := awaiting(t, 1)
		rig.Must(t, <-accepted)
		if qp.State() != iwarp.StateRTS {
			t.Errorf("the QP is in %v", qp.State())
		}
		_ = qp.Abort()
	})
}
