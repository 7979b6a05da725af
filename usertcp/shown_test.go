package usertcp

import (
	"bytes"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A record of what was shown of a stream that a test knows.
type record struct {
	mu     sync.Mutex
	stream []byte
	read   uint64 // bytes that Read has returned
	shown  int
	wrong  int
	tooFar int
}

func (r *record) add(at uint64, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown += len(data)
	if at > uint64(len(r.stream)) || !bytes.HasPrefix(r.stream[at:], data) {
		r.wrong++
	}
	if at+uint64(len(data)) > r.read+MaxReceiveBuffer {
		r.tooFar++
	}
}

// TestShown holds that what is shown is what Read returns at that place, with losses, late segments and receive
// buffers of several sizes, some of them too small for what arrives, and slower for it.
func TestShown(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		size int
	}{{"4 MiB", Config{ReceiveBuffer: 4 << 20}, 3 << 20}, {"64 KiB", Config{ReceiveBuffer: 64 << 10}, 1 << 20},
		{"16 KiB", Config{ReceiveBuffer: 16 << 10}, 256 << 10}, {"growing", Config{}, 3 << 20}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := Path{Seed: 8, Loss: .02, Reorder: .05, Duplicate: .01, Delay: 200 * time.Microsecond}
			out, in := connection(t, c.cfg, path, Path{Delay: path.Delay})
			stream := make([]byte, c.size)
			rand.NewChaCha8([32]byte{1}).Read(stream)

			// A few bytes are read before: the first place of what is shown is after them.
			_, err := out.Write([]byte("startup"))
			must(t, err)
			_, err = io.ReadFull(in, make([]byte, 7))
			must(t, err)
			r := &record{stream: stream}
			in.ShowAhead(r.add)
			go func() {
				if _, err := out.Write(stream); err != nil {
					t.Error(err)
				}
			}()
			got := make([]byte, 0, len(stream))
			for part := make([]byte, 100_000); len(got) < len(stream); {
				n, err := in.Read(part)
				must(t, err)
				got = append(got, part[:n]...)
				r.mu.Lock()
				r.read = uint64(len(got))
				r.mu.Unlock()
			}
			in.ShowAhead(nil)
			r.mu.Lock()
			defer r.mu.Unlock()
			if !bytes.Equal(got, stream) || r.wrong > 0 || r.shown == 0 || r.tooFar > 0 {
				t.Errorf("%d bytes shown, %d times others, %d times too far; the stream is right: %t",
					r.shown, r.wrong, r.tooFar, bytes.Equal(got, stream))
			}
		})
	}
}

// TestShowAheadLocks holds that what is shown may take a lock with which Read, Write and Close are called, and that
// ShowAhead(nil) waits for a call under way.
func TestShowAheadLocks(t *testing.T) {
	p, c, _ := play(t)
	var lock sync.Mutex
	begun, goOn := make(chan bool), make(chan bool)
	c.ShowAhead(func(uint64, []byte) {
		begun <- true
		<-goOn
		lock.Lock()
		defer lock.Unlock()
	})
	p.in <- p.ahead(100, 100).packet(p.echo)
	<-begun
	lock.Lock()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	must(t, c.SetReadDeadline(time.Unix(1, 0)))
	_, _ = c.Read(make([]byte, 1))
	_ = c.EMSS()
	must(t, c.Close())
	lock.Unlock()
	ended := make(chan bool)
	go func() {
		c.ShowAhead(nil)
		close(ended)
	}()
	select {
	case <-ended:
		t.Error("ShowAhead(nil) has not waited")
	default:
	}
	goOn <- true
	select {
	case <-ended:
	case <-testrig.Within(t).Done():
		t.Error("ShowAhead(nil) does not return")
	}
}

// TestNothingShown holds that nothing is shown after ShowAhead(nil), after Close, and of what Read has returned.
func TestNothingShown(t *testing.T) {
	p, c, seen := play(t)
	p.in <- p.ahead(100, 50).packet(p.echo)
	p.sends([]byte("m"))
	p.until(p.nxt)
	c.ShowAhead(nil)
	p.in <- p.ahead(200, 50).packet(p.echo)
	p.sends([]byte("m"))
	p.until(p.nxt)
	c.ShowAhead(seen.add)
	must(t, c.CloseWrite())
	must(t, c.Close())
	p.in <- p.ahead(300, 50).packet(p.echo)
	p.in <- p.made(p.nxt, []byte("m")).packet(p.echo)
	for !p.reset { // of what came for a connection that is closed
		p.next()
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if seen.evil != 50 {
		t.Errorf("%d bytes were shown", seen.evil)
	}
}
