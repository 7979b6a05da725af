package startup

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
)

// untilHeld returns a context that ends when another request has been posted that waits for
// the Initiator: a deadline might pass before.
func untilHeld(t *testing.T, res *rig.End) context.Context {
	before := res.Stats().Held
	return rig.EndsOnce(t, func() bool { return res.Stats().Held != before })
}

// TestAwaitingInitiator has both applications wait for the other to begin: the Responder's
// calls say why nothing comes of them, Close does not wait, and a counter tells.
//
// Proves Q11.
func TestAwaitingInitiator(t *testing.T) {
	t.Parallel()
	patient := iwarp.AcceptConfig{QP: iwarp.QPConfig{CloseTimeout: time.Hour, CloseLimit: -1}}
	for _, s := range []rig.Setup{
		{Dialer: iwarp.Dialer{MPA: mpa.Offer{ClientServer: true}}, Accept: patient},
		{Dialer: iwarp.Dialer{MPA: mpa.Offer{Dialect: mpa.DialectRFC5044}}, Accept: patient},
	} {
		ini, res := s.Connect(t)
		mr := res.MR(8, iwarp.LocalWrite)
		for name, call := range map[string]func(context.Context) error{
			"Send": func(ctx context.Context) error { return res.Send(ctx, mr.Slice(0, 8)) },
			"Write": func(ctx context.Context) error {
				_,
					err := res.Write(ctx, mr.Slice(0, 8), iwarp.Remote{})
				return err
			},
			"Read": func(ctx context.Context) error {
				_,
					err := res.Read(ctx, mr.Slice(0, 8), iwarp.Remote{})
				return err
			},
		} {
			err := call(untilHeld(t, res))
			if !errors.Is(err, iwarp.ErrAwaitingInitiator) || !errors.Is(err, context.Canceled) ||
				!rig.Contains(err, "the Initiator's first FPDU") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := res.Stats().Held; n != 3 {
			t.Errorf("%d requests were held", n)
		}
		closed := rig.DialInBackground(t, func() error { return ini.WantEnd() })
		if err := rig.Outcome(t, rig.DialInBackground(t, res.Close)); !errors.Is(err, iwarp.ErrAwaitingInitiator) ||
			!rig.Contains(err, "requests that were never sent: 3") {
			t.Errorf("Close: %v", err)
		}
		if err := <-closed; err != nil && !errors.Is(err, iwarp.ErrPeerClosed) {
			t.Errorf("the Initiator's end: %v", err)
		}
	}
}

// TestAwaitingInitiatorAborted aborts a connection whose Close has given up a Send: Close says so.
//
// Proves Q11.
func TestAwaitingInitiatorAborted(t *testing.T) {
	patient := iwarp.AcceptConfig{QP: iwarp.QPConfig{CloseTimeout: time.Hour, CloseLimit: -1}}
	stays := iwarp.Dialer{MPA: mpa.Offer{ClientServer: true}, QP: iwarp.QPConfig{HalfClose: true}}
	_, res := rig.Setup{Dialer: stays, Accept: patient}.Connect(t)
	rig.Must(t, res.PostSend(&iwarp.SendWR{ID: 1, Op: iwarp.OpSend}))
	closed := rig.DialInBackground(t, res.Close)
	rig.Until(t, func() bool { return res.Err() != nil || res.Query().Sends == 0 }, "the Send to be given up")
	_ = res.Abort()
	if err := rig.Outcome(t, closed); !errors.Is(err, iwarp.ErrAwaitingInitiator) {
		t.Errorf("Close: %v", err)
	}
}

// sendsEarly has a Responder send first, against RFC 5044, as siw lets it: by the preset,
// and by the QP's own setting. Without either its Send waits.
func sendsEarly(t *testing.T, siw *iwarp.Preset) {
	without := *siw
	without.SendEarly = 0
	for _, c := range []struct {
		accept iwarp.AcceptConfig
		early  bool
	}{
		{iwarp.AcceptConfig{Preset: siw}, true},
		{iwarp.AcceptConfig{QP: iwarp.QPConfig{SendEarly: time.Millisecond}}, true},
		{iwarp.AcceptConfig{Preset: &without}, false},
	} {
		ini, res := rig.Setup{Dialer: iwarp.Dialer{MPA: mpa.Offer{ClientServer: true}}, Accept: c.accept}.Connect(t)
		ini.MustPostRecv(1, ini.MR(8, iwarp.LocalWrite).Slice(0, 8))
		if !c.early {
			if err := res.Send(untilHeld(t, res), res.MR(8, 0).Slice(0, 8)); !errors.Is(err,
				iwarp.ErrAwaitingInitiator) {
				t.Error(err)
			}
			continue
		}
		rig.Should(t, res.Send(rig.Within(t), res.Filled(8, 1, 0).Slice(0, 8)))
		ini.WantReceived(1, iwarp.StatusSuccess)
		if n := ini.Stats().Odd.Early; n != 1 {
			t.Errorf("the Initiator has counted %d", n)
		}
	}
}
