package network_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp/internal/network"
)

// A door counts how often it was closed.
type door int

func (d *door) Close() error { *d++; return nil }

// TestCloseWith ends a context before and after the connection was to be closed with it.
func TestCloseWith(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var d door
			ctx, cancel := context.WithCancel(t.Context())
			stop := network.CloseWith(ctx, &d)
			if stopped && !stop() {
				t.Error("it was too late to stop")
			}
			if synctest.Wait(); d != 0 {
				t.Error("it is closed while the context lasts")
			}
			cancel()
			if synctest.Wait(); (d == 1) == stopped || d > 1 {
				t.Errorf("stopped %v: closed %d times", stopped, d)
			}
		})
	}
}
