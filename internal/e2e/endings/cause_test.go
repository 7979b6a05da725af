package endings

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/iwarpsctp"
)

// TestCauseOfCancel: whatever waits with a context that the caller cancels returns an error that wraps the caller's
// cause, and context.Canceled too.
func TestCauseOfCancel(t *testing.T) {
	ini, res := rig.Setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: 1}}}}.Connect(t)
	ln := rig.Listen(t, iwarp.ListenConfig{})
	mr := ini.MR(8, iwarp.LocalWrite)
	silent, err := net.ListenPacket("udp4", "127.0.0.1:0")
	rig.Must(t, err)
	defer silent.Close()
	for name, wait := range map[string]func(context.Context) error{
		"Recv":    func(ctx context.Context) error { _, err := ini.Recv(ctx, mr.Slice(0, 8)); return err },
		"CQ.Wait": func(ctx context.Context) error { return ini.RecvCQ().Wait(ctx) },
		"RNIC.NextEvent": func(ctx context.Context) error {
			_, err := rig.NewRNIC(t, iwarp.RNICConfig{}).NextEvent(ctx)
			return err
		},
		"Listener.Accept": func(ctx context.Context) error { _, err := ln.Accept(ctx); return err },
		"Dial, nobody answers": func(ctx context.Context) error {
			_, err := iwarp.Dial(ctx, "tcp", rig.ListenTCP(t).Addr().String())
			return err
		},
		"Dial over SCTP": func(ctx context.Context) error {
			_, err := (&iwarp.Dialer{Network: new(iwarpsctp.Network)}).Dial(ctx, "sctp", silent.LocalAddr().String())
			return err
		},
		"Initiate, nobody there": func(ctx context.Context) error {
			quiet, _ := testrig.Pipe("initiator", "nobody")
			_, err := new(iwarp.Dialer).Initiate(ctx, quiet, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			why := errors.New("the user went home")
			for _, before := range []bool{true, false} {
				ctx, cancel := context.WithCancelCause(t.Context())
				failed := make(chan error, 1)
				if before {
					cancel(why)
				} else { // a wait that begins later gives the same error
					time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
				}
				go func() { failed <- wait(ctx) }()
				if err := <-failed; !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
					t.Errorf("before %v: %v", before, err)
				}
			}
		})
	}
	rig.Finish(t, ini, res)
}
