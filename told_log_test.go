package iwarp_test

import (
	"log/slog"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa"
)

// TestFarewellLogged: while the peer is waited for the log tells of no end. Then it tells of the one there is: in order, or of a
// connection that was lost from Closing.
func TestFarewellLogged(t *testing.T) {
	for end, lost := range map[string]error{"Closing to Idle": nil, "Closing to Error": syscall.ECONNRESET} {
		synctest.Test(t, func(t *testing.T) {
			var states []string
			ini, res := newEnd(t, iwarp.RNICConfig{Logger: slog.New(handler(func(r slog.Record) {
				states = append(states, changeOf(&r)...)
			}))}), newEnd(t, iwarp.RNICConfig{})
			ini.QP, res.QP = create(t, ini.pd, iwarp.QPConfig{}), create(t, res.pd, iwarp.QPConfig{})
			x, y := newShuffled(1, nil)
			a := &acks{all: make(chan struct{}), lost: lost}
			must(t, ini.ModifyRTSOver(toldStream{x, a}, negotiated(mpa.RoleInitiator), nil))
			must(t, res.ModifyRTSOver(y, negotiated(mpa.RoleResponder), nil))
			must(t, res.CloseWrite())
			time.Sleep(50 * time.Millisecond)
			closed := dialInBackground(t, ini.Close)
			want := []string{"Idle to RTS", "RTS to Closing"}
			if synctest.Wait(); !slices.Equal(states, want) {
				t.Errorf("while the peer is waited for: %q", states)
			}
			close(a.all)
			if err := <-closed; (err == nil) != (lost == nil) {
				t.Errorf("Close: %v", err)
			}
			if synctest.Wait(); !slices.Equal(states, append(want, end)) {
				t.Errorf("after it: %q, want %q last", states, end)
			}
			must(t, res.Close())
		})
	}
}

// changeOf returns the change of state that a log record tells of.
func changeOf(r *slog.Record) []string {
	if r.Message != "iwarp: state" {
		return nil
	}
	told := map[string]string{}
	r.Attrs(func(a slog.Attr) bool { told[a.Key] = a.Value.String(); return true })
	return []string{told["from"] + " to " + told["to"]}
}
