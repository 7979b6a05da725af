//go:build interop

package interop_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/stream"
)

// netcat is busybox's in the guest, which uses sockets, and what makes rsockets of them there.
const netcat = "LD_PRELOAD=/usr/lib/librspreload.so timeout -s KILL 120 busybox-dynamic nc"

// putNetcat names what that takes. Debian's busybox is linked dynamically, and that of the guest is not: nothing can be
// preloaded there.
func putNetcat(t *testing.T) map[string]string {
	t.Helper()
	program, err := exec.LookPath("busybox-dynamic")
	if err != nil {
		testrig.Lacks(t, "put the program of Debian's package busybox into the PATH, as busybox-dynamic: "+err.Error())
	}
	put := map[string]string{"/usr/bin/busybox-dynamic": program}
	for path, pattern := range map[string]string{
		"/usr/lib/librspreload.so":             "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so",
		"/lib/x86_64-linux-gnu/libresolv.so.2": "/lib/x86_64-linux-gnu/libresolv.so.2",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			testrig.Lacks(t, "there is no "+pattern)
		}
		put[path] = found[0]
	}
	return put
}

// TestPreloaded has a netcat in the guest, a program of TCP, exchange bytes with package stream in both roles and
// directions: it is unmodified, and its sockets are rsockets over siw.
func TestPreloaded(t *testing.T) {
	t.Parallel()
	g := Boot(t, Options{Put: putNetcat(t)})
	const total = 1_000_000
	fromNetcat := bytes.Repeat([]byte("0123456789\n"), total/11+1)[:total]
	toNetcat := bytes.Repeat([]byte("all that netcat gets\n"), total/21+1)[:total]
	const says, hears = "yes 0123456789 | head -c 1000000 |", "| sha256sum"
	t.Run("guest serves", func(t *testing.T) {
		server := g.Serve(t, fmt.Sprintf("%s %s -l -p %d 0.0.0.0 %s", says, netcat, rpingPort, hears))
		d := stream.Dialer{RDMA: iwarp.Dialer{MPA: mpa.Offer{NoCRC: true}}}
		conn, err := d.Dial(t.Context(), "tcp", g.server())
		testrig.Must(t, err)
		swapped(t, conn, server, toNetcat, fromNetcat)
	})
	t.Run("guest connects", func(t *testing.T) {
		under, port, err := g.listen(t.Context(), iwarp.ListenConfig{})
		testrig.Must(t, err)
		ln := (&stream.Acceptor{RDMA: iwarp.AcceptConfig{MPA: mpa.Answer{NoCRC: true}}}).NewListener(under)
		defer ln.Close()
		late := time.AfterFunc(2*time.Minute, func() { _ = ln.Close() }) // Accept has no context
		defer late.Stop()
		client := g.Start(t, fmt.Sprintf("%s %s $PEER_IP %s %s", says, netcat, port, hears))
		conn, err := ln.Accept()
		testrig.Must(t, err)
		swapped(t, conn.(*stream.Conn), client, toNetcat, fromNetcat)
	})
}

// swapped has both send at once, and compares what has come. Netcat ends when it has heard our end, and leaves without
// a word then: so that comes last, and what becomes of it is nobody's concern.
func swapped(t *testing.T, conn *stream.Conn, peer *Proc, toNetcat, fromNetcat []byte) {
	t.Helper()
	defer conn.Close()
	testrig.Must(t, testrig.Swap(t, conn, toNetcat, fromNetcat))
	_ = conn.CloseWrite()
	peer.WantSuccess(t, 60*time.Second)
	peer.WantOutput(t, fmt.Sprintf("%x", sha256.Sum256(toNetcat)))
}
