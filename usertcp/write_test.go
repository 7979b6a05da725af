package usertcp

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gvisor.dev/gvisor/pkg/log"
)

// TestLongFPDU: a slice that no segment has room for goes out all the same, and counts as a whole.
func TestLongFPDU(t *testing.T) {
	c, s := connection(t, Config{}, Path{}, Path{})
	n, err := c.WriteFPDUs([][]byte{make([]byte, 3*c.EMSS()), make([]byte, 10)})
	if must(t, err); n != 3*c.EMSS()+10 {
		t.Errorf("%d bytes were taken", n)
	}
	_, err = io.ReadFull(s, make([]byte, n))
	must(t, err)
}

// TestEmptyWrite: what writes nothing is told of the end all the same, and of a deadline that has passed.
func TestEmptyWrite(t *testing.T) {
	c, _ := connection(t, Config{}, Path{}, Path{})
	_, err := c.Write(nil)
	must(t, err)
	must(t, c.SetDeadline(time.Unix(1, 0)))
	for _, p := range [][]byte{nil, {1}} {
		if _, err := c.Write(p); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes after the deadline: %v", len(p), err)
		}
	}
	must(t, c.Close())
	for range 50 { // Close comes before a deadline
		_, werr := c.Write(nil)
		_, rerr := c.Read(nil)
		if !errors.Is(werr, net.ErrClosed) || !errors.Is(rerr, net.ErrClosed) {
			t.Fatalf("after Close: %v; %v", werr, rerr)
		}
	}
}

// TestToldOnce: gVisor tells one call why the connection was lost; others hear of the same.
func TestToldOnce(t *testing.T) {
	for name, call := range map[string]func(*Conn) error{
		"Read":  func(c *Conn) error { _, err := c.Read(make([]byte, 1)); return err },
		"Write": func(c *Conn) error { _, err := c.Write([]byte{1}); return err },
	} {
		c, s := connection(t, Config{}, Path{}, Path{})
		must(t, s.Reset())
		<-c.PeerAcked()
		_ = c.ep.LastError()
		if err := call(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPipeOrder: what is sent at the same moment arrives as it was sent, in buffers that are used again.
func TestPipeOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(1500, Path{Delay: time.Millisecond}, Path{})
		var got []uint32
		defer b.Close()
		go func() { _ = b.Receive(func(p []byte) { got = append(got, binary.BigEndian.Uint32(p)) }) }()
		for round := range 3 {
			for i := range 100 {
				a.Send(binary.BigEndian.AppendUint32(nil, uint32(100*round+i)))
			}
			time.Sleep(time.Second) // of virtual time
		}
		synctest.Wait()
		a.out.mu.Lock()
		defer a.out.mu.Unlock()
		if !slices.IsSorted(got) || len(got) != 300 {
			t.Errorf("%d arrived, in order: %t", len(got), slices.IsSorted(got))
		}
		if none := slices.ContainsFunc(a.out.spare, func(b []byte) bool { return b == nil }); none ||
			len(a.out.spare) != 100 {
			t.Errorf("%d buffers are kept for a hundred packets at a time", len(a.out.spare))
		}
	})
}

// TestWholeShares: all packets may be lost.
func TestWholeShares(t *testing.T) {
	a, b, err := Pair(Config{}, Path{Loss: 1, Duplicate: 1, Reorder: 1}, Path{})
	must(t, err)
	must(t, errors.Join(a.Close(), b.Close()))
}

// TestQuietTwice: a target of gVisor's own kind that writes nowhere is left as it is.
func TestQuietTwice(t *testing.T) {
	was := log.Log().Emitter
	defer log.SetTarget(was)
	log.SetTarget(log.GoogleEmitter{})
	silenceLog()
	if _, ok := log.Log().Emitter.(log.GoogleEmitter); !ok {
		t.Errorf("the target is a %T", log.Log().Emitter)
	}
}

// TestUnsent: what the peer's window has no room for was not sent, until it has.
func TestUnsent(t *testing.T) {
	c, s := connection(t, Config{}, Path{}, Path{})
	if c.Unsent() {
		t.Error("before the first byte")
	}
	const size = 8 << 20 // more than the peer's TCP takes
	written := make(chan error, 1)
	go func() {
		_, err := c.Write(make([]byte, size))
		written <- err
	}()
	for !c.Unsent() {
		time.Sleep(time.Millisecond)
	}
	_, err := io.ReadFull(s, make([]byte, size))
	must(t, err)
	must(t, <-written)
	for c.HasUnacked() {
		time.Sleep(time.Millisecond)
	}
	if c.Unsent() {
		t.Error("after the last, which the peer has")
	}
}
