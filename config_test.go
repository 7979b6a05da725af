package iwarp_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestLingerIsSet: our half stays open for as long as QPConfig.Linger says when the peer has closed its own. Without a
// setting it does so where the program may answer, or be told by an event.
func TestLingerIsSet(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		linger, want      time.Duration
		received, watched bool
	}{
		{0, 0, false, false}, {0, second / 10, true, false}, {0, second / 10, false, true},
		{3 * second, 3 * second, false, false}, {-1, 0, true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			linger, want := c.linger, c.want
			ini, res := rig.Setup{Pipe: true, Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{Linger: linger}}}.Connect(t)
			if c.received {
				res.MustPostRecv(1, res.MR(8, iwarp.LocalWrite).Slice(0, 8))
				rig.PostSmall(ini, 1)
			}
			if c.watched {
				_, _ = res.RNIC.NextEvent(rig.Canceled(t))
			}
			synctest.Wait()
			began := time.Now()
			rig.Must(t, ini.CloseWrite())
			<-res.Done()
			if took := time.Since(began); took != want {
				t.Errorf("Linger %v: the end came after %v, want %v", linger, took, want)
			}
			rig.Finish(t, ini, res)
		})
	}
}

// TestCloseLimitIsSet: a Close gives up after QPConfig.CloseLimit, where CloseTimeout is longer.
func TestCloseLimitIsSet(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: time.Minute,
		3 * time.Second: 3 * time.Second, -1: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ini, res := rig.Setup{
				Pipe: true, Dialer: iwarp.Dialer{QP: iwarp.QPConfig{CloseTimeout: time.Hour, CloseLimit: limit}},
				Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{HalfClose: true}}, // which does not close
			}.Connect(t)
			synctest.Wait()
			began := time.Now()
			err := ini.Close()
			if took := time.Since(began); took != want || !errors.Is(err, iwarp.ErrConnectionLost) {
				t.Errorf("CloseLimit %v: Close took %v, want %v: %v", limit, took, want, err)
			}
			_ = res.Abort()
		})
	}
}

// TestStrictRTRIsSet: an Initiator that begins with something else than the indication that was agreed on is refused
// where QPConfig.StrictRTR says so, and only there.
func TestStrictRTRIsSet(t *testing.T) {
	for _, strict := range []bool{false, true} {
		res := rig.NewEnd(t, iwarp.RNICConfig{})
		p, req := rig.Ask(t, rig.Listen(t, iwarp.ListenConfig{PD: res.PD}), rig.Frame(rig.Request(2)))
		var err error
		res.QP, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{QP: iwarp.QPConfig{StrictRTR: strict, RecvDepth: 4},
			Prepare: rig.OneReceive})
		rig.Must(t, err)
		p.Send(p.Message(rdmap.OpSend, 1, nil))
		want := iwarp.StatusSuccess
		if strict {
			want = iwarp.StatusFlushed
		}
		res.WantReceived(1, want)
		if refused := errors.As(res.Err(), new(*iwarp.TerminateError)); refused != strict {
			t.Errorf("StrictRTR %t: %v", strict, res.Err())
		}
		_ = res.Abort()
	}
}
