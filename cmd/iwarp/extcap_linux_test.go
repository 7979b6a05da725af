package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestDumpcap has Wireshark's program capture in our place. Without it, why we cannot is told.
func TestDumpcap(t *testing.T) {
	why := errors.New("not permitted")
	read := func(from io.Reader) error {
		r, err := capture.Open(from)
		if err == nil {
			_, err = r.Next()
		}
		return err
	}
	if _, err := exec.LookPath("dumpcap"); err != nil {
		if err := dumpcap(t.Context(), "lo", why, read); !errors.Is(err, why) {
			t.Error(err)
		}
		testrig.Lacks(t, err.Error())
	}
	if os.Getuid() != 0 {
		t.Skip("dumpcap may not capture here, if it is not root's")
	}
	ctx := testrig.Within(t)
	ln, err := testrig.ListenTCP(ctx)
	testrig.Must(t, err)
	defer ln.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if greedyStartup(ctx, ln) != nil {
				return
			}
		}
	}()
	if err := dumpcap(ctx, "lo", why, read); err != nil {
		t.Error(err)
	}
	ln.Close()
	<-done
}

// TestExtcapEnough has Wireshark close its end of the FIFO: that is the end.
func TestExtcapEnough(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	testrig.Must(t, unix.Mkfifo(fifo, 0o600))
	go func() {
		f, err := os.Open(fifo)
		if err == nil {
			_, _ = f.Read(make([]byte, 100))
			_ = f.Close()
		}
	}()
	const file = "../../interop/testdata/captures/siw-rping-crc-65000.pcap"
	if err := execute(testrig.Within(t), []string{"extcap", "--capture", "--extcap-interface", "iwarp", "--fifo", fifo,
		"--file", file}, streams{io.Discard, io.Discard}); err != nil {
		t.Error(err)
	}
}
