package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestConformListensAtTUN has an Initiator over the host's TCP come to the suite at a TUN device. The device is in a
// network namespace of its own. Its packets are recorded.
func TestConformListensAtTUN(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a network namespace with a TUN device takes root")
	}
	pcap := filepath.Join(t.TempDir(), "tun.pcapng")
	args := append(strings.Fields("conform --network usertcp --tun iwarp0=198.51.100.2 --listen 198.51.100.2:7174 --timeout 30s --quiet 10ms --run ^startup/rep-works$ --pcap "+pcap),
		"--exec", "iwarp rping -c -a {host} -p {port} -C 1")
	var out upAtFirst
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = execute(t.Context(), args, streams{&out, io.Discard})
		}
		ended <- err
	}()
	switch err := errors.Join(<-ended, out.err); {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV):
		t.Skipf("no network namespace with a TUN device: %v", err)
	case err != nil || !strings.Contains(out.String(), "listening on 198.51.100.2:7174\n") ||
		!strings.Contains(out.String(), "1 passed, 0 failed"):
		t.Fatalf("%v\n%s", err, &out)
	}
	var text bytes.Buffer
	// the client is killed in the end: the connection may have failed
	err := execute(t.Context(), []string{"decode", pcap}, streams{&text, io.Discard})
	if statusOf(t.Context(), err) > statusFindings || !strings.Contains(text.String(), "ird") ||
		!strings.Contains(text.String(), " 0 errors, ") {
		t.Errorf("%v\n%s", err, &text)
	}
}

// upAtFirst is an output whose first line is written when there is a TUN device, which it sets up.
type upAtFirst struct {
	bytes.Buffer
	err error
}

func (u *upAtFirst) Write(b []byte) (int, error) {
	if u.Len() == 0 {
		u.err = testrig.SetUpTUN("iwarp0")
	}
	return u.Buffer.Write(b)
}
