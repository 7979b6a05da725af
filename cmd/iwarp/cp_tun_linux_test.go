package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestCpOverTUN has files go to a server over TCP in user space at a TUN device, and back, from a client over the
// host's TCP. The device is in a network namespace of its own.
func TestCpOverTUN(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a network namespace with a TUN device takes root")
	}
	data, dir, there := bytes.Repeat([]byte("over a TUN device"), 100_000), t.TempDir(), t.TempDir()
	testrig.Must(t, os.WriteFile(filepath.Join(dir, "f"), data, 0o600))
	ctx, cancel := context.WithCancel(testrig.Within(t))
	defer cancel()
	client := exec.CommandContext(ctx, "sh", "-ec", "iwarp cp f 198.51.100.2:; iwarp cp 198.51.100.2:f back")
	client.Dir = dir
	said := &clientAtFirst{cmd: client, over: cancel}
	client.Stderr = &said.stderr
	args := []string{"serve", "--network", "usertcp", "--tun", "iwarp0=198.51.100.2", "--dir", there,
		"--writable", "198.51.100.2:7174"}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = execute(ctx, args, streams{said, io.Discard})
		}
		ended <- err
	}()
	err := errors.Join(<-ended, said.err)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		t.Skipf("no network namespace with a TUN device: %v", err)
	}
	if client.Process == nil {
		t.Fatalf("no client was begun: %v", err)
	}
	<-said.waited
	if !client.ProcessState.Success() {
		t.Fatalf("%v: %v\n%s", client.ProcessState, err, &said.stderr)
	}
	for _, name := range []string{filepath.Join(there, "f"), filepath.Join(dir, "back")} {
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(data), err)
		}
	}
}

// clientAtFirst is the output of a server: with its first line there is a TUN device, which is set up, and a client is
// begun in the same namespace.
type clientAtFirst struct {
	upAtFirst
	cmd    *exec.Cmd
	over   func()
	stderr bytes.Buffer
	waited chan struct{}
}

func (c *clientAtFirst) Write(b []byte) (int, error) {
	first := c.waited == nil
	n, err := c.upAtFirst.Write(b)
	if first {
		c.waited = make(chan struct{})
		c.err = errors.Join(c.err, c.cmd.Start())
		go func() {
			defer close(c.waited)
			_ = c.cmd.Wait() // what it was is in its state
			c.over()
		}()
	}
	return n, err
}
