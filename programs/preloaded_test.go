//go:build linux && interposer

package programs

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/stream"
)

// underRsockets is the library with rdma-core's librspreload after it, which makes rsockets of a program's sockets.
func underRsockets(t *testing.T) Library {
	t.Helper()
	l := built(t)
	// That of another processor's may be there, too.
	preload := filepath.Join("/usr/lib", map[string]string{"amd64": "x86_64-linux-gnu",
		"arm64": "aarch64-linux-gnu"}[runtime.GOARCH], "rsocket/librspreload.so")
	if _, err := os.Stat(preload); err != nil {
		testrig.Lacks(t, "there is no librspreload here: "+err.Error())
	}
	t.Setenv("LD_PRELOAD", preload)
	return l
}

// preloadable returns the first of some programs that is there and is linked dynamically, which that of Debian's
// busybox-static is not. Without one the test is skipped.
func preloadable(t *testing.T, programs ...string) string {
	t.Helper()
	for _, program := range programs {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		file, err := elf.Open(path)
		testrig.Must(t, err)
		dynamic := file.Section(".interp") != nil
		testrig.Must(t, file.Close())
		if dynamic {
			return program
		}
	}
	testrig.Lacks(t, fmt.Sprintf("none of %q is there and linked dynamically", programs))
	return ""
}

// random are bytes that look like no others, the same in each run.
func random(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

const preloadedBytes = 3_000_000

// TestPreloaded has programs of TCP talk to package stream: as Debian has them, under librspreload, which makes
// rsockets of their sockets.
func TestPreloaded(t *testing.T) {
	l := underRsockets(t)
	t.Run("netcat", l.netcat)
	bothWays(t, "curl", 2, l.curl)
}

// netcat has busybox's netcat exchange bytes in both roles, and in both directions at once.
func (l Library) netcat(t *testing.T) {
	busybox := preloadable(t, "busybox-dynamic", "busybox")
	toNetcat, fromNetcat := random(1, preloadedBytes), random(2, preloadedBytes)
	t.Run("netcat serves", func(t *testing.T) {
		port := freePort(t)
		server := startReading(t, l, busybox+" nc -l -p "+port, bytes.NewReader(fromNetcat))
		server.awaitListening(t, port)
		conn, err := stream.Dial(t.Context(), "tcp", "127.0.0.1:"+port)
		testrig.Must(t, err)
		swapped(t, conn, server, toNetcat, fromNetcat)
	})
	t.Run("netcat connects", func(t *testing.T) {
		ln, err := stream.Listen(t.Context(), "tcp", "127.0.0.1:0")
		testrig.Must(t, err)
		defer ln.Close()
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		client := startReading(t, l, busybox+" nc 127.0.0.1 "+port, bytes.NewReader(fromNetcat))
		go func() {
			<-client.done
			ln.Close()
		}()
		conn, err := ln.Accept()
		testrig.Must(t, err)
		swapped(t, conn.(*stream.Conn), client, toNetcat, fromNetcat)
	})
}

// swapped has both send at once, and compares what has come. Netcat ends when it has heard our end, and leaves without
// a word then: so that comes last.
func swapped(t *testing.T, conn *stream.Conn, netcat *process, toNetcat, fromNetcat []byte) {
	t.Helper()
	defer conn.Close()
	wrote := testrig.Swap(t, conn, toNetcat, fromNetcat)
	if err := errors.Join(wrote, conn.CloseWrite()); err != nil && !errors.Is(err, stream.ErrPeerGone) {
		t.Error(err)
	}
	netcat.awaitSuccess(t)
	if got := []byte(netcat.out.String()); !bytes.Equal(got, toNetcat) {
		t.Errorf("netcat has %d bytes, want %d", len(got), len(toNetcat))
	}
}

// curl fetches from a server of net/http, and sends to it.
func (l Library) curl(t *testing.T) {
	preloadable(t, "curl")
	content := random(3, preloadedBytes)
	ln, err := stream.Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	got := make(chan [sha256.Size]byte, 1)
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write(content)
			return
		}
		b, _ := io.ReadAll(r.Body)
		got <- sha256.Sum256(b)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	url := "http://" + ln.Addr().String() + "/"

	fetched := filepath.Join(t.TempDir(), "fetched")
	start(t, l, "curl -sS -o "+fetched+" "+url).awaitSuccess(t)
	file, err := os.ReadFile(fetched)
	if err != nil || !bytes.Equal(file, content) {
		t.Errorf("curl has %d bytes, want %d (%v)", len(file), len(content), err)
	}
	start(t, l, "curl -sS -T "+fetched+" "+url).awaitSuccess(t)
	if sum := <-got; sum != sha256.Sum256(content) {
		t.Errorf("the server has something else: %x", sum)
	}
	testrig.Must(t, server.Close())
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
