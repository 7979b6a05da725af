//go:build interop

package interop_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// A relay passes connections on.
//
// QEMU's user network sends on what it happens to have read, and siw does not survive that pad and CRC of an FPDU are
// cut in two (docs/interop.md). Where all that TCP brings it are multiples of four bytes, as FPDUs are, it cuts
// nowhere else, which leaves a CRC whole that no pad precedes.
type relay struct {
	ln    net.Listener
	to    string
	await func() error // until the server listens for one more connection
	tasks sync.WaitGroup
}

// relayTo returns the port of a relay that ends with the test.
func relayTo(t testing.TB, to string, await func() error) (port string) {
	t.Helper()
	ln, err := (&net.ListenConfig{Control: wholeWords}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	r := &relay{ln: ln, to: to, await: await}
	r.tasks.Go(func() { r.run(t) })
	t.Cleanup(func() {
		_ = ln.Close()
		r.tasks.Wait()
	})
	_, port, err = net.SplitHostPort(ln.Addr().String())
	testrig.Must(t, err)
	return port
}

// wholeWords has the segments of a TCP socket be of a multiple of four bytes, which on loopback they are not: 16384,
// and 12 of options.
func wholeWords(_, _ string, c syscall.RawConn) (err error) {
	failed := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 16384+12)
	})
	return errors.Join(err, failed)
}

func (r *relay) run(t testing.TB) {
	for {
		near, err := r.ln.Accept()
		if err != nil {
			return
		}
		far, err := r.connect()
		if err != nil {
			t.Logf("the relay: %v", err)
			_ = script.NewLink(near).Reset()
			continue
		}
		r.tasks.Go(func() { pass(t.Context(), near, far) })
	}
}

func (r *relay) connect() (net.Conn, error) {
	if err := r.await(); err != nil {
		return nil, err
	}
	return (&net.Dialer{Control: wholeWords}).Dial("tcp", r.to)
}

// pass carries both directions, and their ends.
func pass(ctx context.Context, near, far net.Conn) {
	defer context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })()
	var lanes sync.WaitGroup
	for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
		lanes.Go(func() { _ = script.NewLink(ends[0]).CarryTo(ends[1], func([]byte) {}) })
	}
	lanes.Wait()
	_, _ = near.Close(), far.Close()
}

// anew returns a function that waits until another socket than at its last call listens on rpingPort: perftest connects
// twice, and its server listens anew in between. QEMU's user network accepts a connection before the guest does, and
// resets it if the guest refuses it: a client that comes early ends there.
func (g *Guest) anew() func() error {
	var last string
	return func() error {
		said, err := g.runScript(until(fmt.Sprintf(`i=$(%s) && [ -n "$i" ] && [ "$i" != "%s" ]`,
			listener, last)) + "; " + listener)
		now := inode.FindString(said)
		if err == nil && (now == "" || now == last) {
			return fmt.Errorf("the server does not listen anew: %s", said)
		}
		last = now
		return err
	}
}

// listener tells the inode of the socket that listens on rpingPort.
const listener = `cat /proc/net/tcp /proc/net/tcp6 | awk "/:1C06 0*:0000 0A/ { print \$10 }"`

var inode = regexp.MustCompile(`(?m)^\d+`)
