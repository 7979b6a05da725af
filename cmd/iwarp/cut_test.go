package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// A heldDisk is in memory. Whoever reads or writes interrupts the copy first, and waits until the test lets it go.
type heldDisk struct {
	*target.Memory
	interrupt context.CancelFunc
	released  chan struct{}
}

func (d *heldDisk) hold() {
	d.interrupt()
	<-d.released
}

// ReadAt reads.
func (d *heldDisk) ReadAt(p []byte, off int64) (int, error) {
	d.hold()
	return d.Memory.ReadAt(p, off)
}

// WriteAt writes.
func (d *heldDisk) WriteAt(p []byte, off int64) (int, error) {
	d.hold()
	return d.Memory.WriteAt(p, off)
}

// serve has it be a target's, and returns the address.
func (d *heldDisk) serve(t *testing.T) string {
	t.Helper()
	under, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	served, err := target.New(target.Config{NQN: "nqn.2026-11.org.example:held",
		Namespaces: []target.Namespace{{Backend: d, Name: "held"}}})
	testrig.Must(t, err)
	ln := new(iwarp.ListenConfig).NewListener(under)
	go served.Serve(context.Background(), ln)
	t.Cleanup(func() {
		close(d.released)
		testrig.Must(t, errors.Join(ln.Close(), served.Shutdown(context.Background())))
	})
	return under.Addr().String()
}

// TestDiskInterrupted has a copy of a disk that was cut be a failure, in either direction.
func TestDiskInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	testrig.Must(t, os.WriteFile(file, make([]byte, 4096), 0o600))
	for option, rest := range map[string][]string{"--read": {"--out", file + ".copy"}, "--write": {file}} {
		t.Run(option, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			m, err := target.NewMemory(1<<20, 512)
			testrig.Must(t, err)
			at := (&heldDisk{m, interrupt, make(chan struct{})}).serve(t)
			var out, errs bytes.Buffer
			args := append([]string{"disk", option, "nvme://" + at + "/nqn.2026-11.org.example:held"}, rest...)
			err = execute(ctx, args, streams{&out, &errs})
			if want := "iwarp: disk: " + option + ": interrupted: the copy is incomplete"; statusOf(ctx,
				err) != statusFailed || printed(err) != want {
				t.Errorf("status %d: %s, want %s", statusOf(ctx, err), printed(err), want)
			}
			if out.Len() > 0 {
				t.Errorf("it says %q", out.String())
			}
			if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
				t.Errorf("it leaves %v beside the file (%v)", left, err)
			}
		})
	}
}

// TestCatInterruptedEarly is a failure of who has something to send to a host, and has not: that must not be taken for
// sent. Who waits for somebody may end.
func TestCatInterruptedEarly(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // who accepts nobody
	testrig.Must(t, err)
	defer silent.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for option, want := range map[string]int{"--connect": statusFailed, "--listen": statusFine} {
		at := silent.Addr().String()
		if option == "--listen" {
			at = "127.0.0.1:0"
		}
		var out, errs bytes.Buffer
		err := execute(ctx, []string{"cat", option, at, "--in", os.DevNull, "--out",
			filepath.Join(t.TempDir(), "out")}, streams{&out, &errs})
		if err == nil || statusOf(ctx, err) != want {
			t.Errorf("%s: status %d: %v", option, statusOf(ctx, err), err)
		}
	}
}
