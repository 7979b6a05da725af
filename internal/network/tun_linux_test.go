package network_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestTUN has QPs over a TCP in user space at a TUN device meet others over the host's TCP, in both roles. The device
// is in a network namespace of its own.
func TestTUN(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a network namespace with a TUN device takes root")
	}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = meetAtTUN(testrig.Within(t))
		}
		ended <- err
	}()
	switch err := <-ended; {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV):
		t.Skipf("no network namespace with a TUN device: %v", err)
	case err != nil:
		t.Error(err)
	}
}

func meetAtTUN(ctx context.Context) error {
	user, err := network.Open(network.OnTUN("iwarp0=198.51.100.2"))
	if err != nil {
		return err
	}
	host, err := network.Open(network.TCP)
	if err != nil {
		return err
	}
	if qp, err := user.Dial(ctx, &iwarp.Dialer{}, "198.51.100.1:1"); err == nil || qp != nil || ctx.Err() != nil {
		return fmt.Errorf("dialing where there is no device: %v", err)
	}
	ln, err := user.Listen(ctx, "198.51.100.2:0", &iwarp.ListenConfig{})
	if err != nil {
		return err
	}
	if _, err := user.DialStream(ctx, "198.51.100.1:1"); err == nil ||
		err.Error() != user.Unready().Error() || ctx.Err() != nil {
		return fmt.Errorf("dialing over a device that is not up: %v", err)
	}
	if err := errors.Join(testrig.SetUpTUN("iwarp0"), user.Unready()); err != nil {
		return err
	}
	if err := meet(ctx, host, ln); err != nil {
		return err
	}
	if ln, err = host.Listen(ctx, "198.51.100.1:0", &iwarp.ListenConfig{}); err != nil {
		return err
	}
	return errors.Join(meet(ctx, user, ln), user.Close(), host.Close())
}

// meet connects to a Listener, and ends both ends and it.
func meet(ctx context.Context, from *network.Network, ln *iwarp.Listener) error {
	accepted := make(chan error, 1)
	go func() {
		req, err := ln.Accept(ctx)
		if err == nil {
			var qp *iwarp.QP
			if qp, err = req.Accept(ctx, iwarp.AcceptConfig{}); err == nil {
				err = qp.Close()
			}
		}
		accepted <- err
	}()
	qp, err := from.Dial(ctx, &iwarp.Dialer{}, ln.Addr().String())
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	return errors.Join(qp.Close(), <-accepted, ln.Close())
}
