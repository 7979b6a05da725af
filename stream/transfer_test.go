package stream_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/stream"
)

// randomBytes returns the same bytes for the same seed.
func randomBytes(n int, seed byte) []byte {
	all := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(all)
	return all
}

// wantAll reads until the end of the stream, and compares.
func wantAll(t *testing.T, c io.Reader, want []byte) {
	t.Helper()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, want) {
		same := bytes.HasPrefix(want, got)
		t.Errorf("%d bytes of %d (%v), the same: %v", len(got), len(want), err, same)
	}
}

// writeAll writes pieces of random lengths, limit at most.
func writeAll(t *testing.T, c io.Writer, all []byte, limit int) {
	t.Helper()
	for rnd := rand.New(rand.NewPCG(1, uint64(limit))); len(all) > 0; {
		n := min(1+rnd.IntN(limit), len(all))
		if m, err := c.Write(all[:n]); err != nil || m != n {
			t.Errorf("%d bytes of %d were written: %v", m, n, err)
			return
		}
		all = all[n:]
	}
}

// TestBothWays sends bytes both ways at once, through rings of several sizes.
func TestBothWays(t *testing.T) {
	for _, l := range layers {
		for _, cfg := range []stream.Config{{}, {Ring: 1, Credits: 16}, {Ring: 100_000, Credits: 30}} {
			t.Run(fmt.Sprintf("%s ring %d", l.name, cfg.Ring), func(t *testing.T) {
				t.Parallel()
				a, b := newRig(t, l, cfg).pair(t)
				there, back := randomBytes(1_000_000, 1), randomBytes(700_001, 2)
				var all sync.WaitGroup
				all.Go(func() { writeAll(t, a, there, 300_000); must(t, a.CloseWrite()) })
				all.Go(func() { writeAll(t, b, back, 9000); must(t, b.CloseWrite()) })
				all.Go(func() { wantAll(t, a, back) })
				all.Go(func() { wantAll(t, b, there) })
				all.Wait()
				closeInOrder(t, a, b)
			})
		}
	}
}

// closeInOrder checks that both ends close without an error.
func closeInOrder(t *testing.T, a, b io.Closer) {
	t.Helper()
	var both sync.WaitGroup
	for _, c := range []io.Closer{a, b} {
		both.Go(func() {
			if err := c.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	both.Wait()
}

// TestCloseAfterWrite checks that bytes that Write has taken can be read after the writer is gone.
func TestCloseAfterWrite(t *testing.T) {
	for _, l := range layers {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			a, b := newRig(t, l, stream.Config{}).pair(t)
			all := randomBytes(stream.DefaultRing-5, 3) // nobody reads meanwhile
			writeAll(t, a, all, 100_000)
			must(t, a.Close())
			wantAll(t, b, all)
			if _, err := b.Write([]byte("x")); !errors.Is(err, stream.ErrPeerGone) {
				t.Errorf("Write to one that is gone: %v", err)
			}
			must(t, b.Close())
		})
	}
}

// TestHalfClose checks that one direction goes on after the other has ended.
func TestHalfClose(t *testing.T) {
	a, b := newRig(t, layers[0], stream.Config{}).pair(t)
	must(t, a.CloseWrite())
	must(t, a.CloseWrite())
	if _, err := a.Write([]byte("x")); !errors.Is(err, stream.ErrWriteEnded) {
		t.Errorf("Write after CloseWrite: %v", err)
	}
	wantAll(t, b, nil)
	writeAll(t, b, randomBytes(3_000, 4), 100)
	must(t, b.Close())
	wantAll(t, a, randomBytes(3_000, 4))
	must(t, a.Close())
}

// TestManyWriters checks that Writes of several goroutines do not mix.
func TestManyWriters(t *testing.T) {
	a, b := newRig(t, layers[0], stream.Config{Ring: 10_000}).pair(t)
	const writers, lines, length = 8, 50, 3000
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for range lines {
				if _, err := a.Write(bytes.Repeat([]byte{byte(w)}, length)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { all.Wait(); must(t, a.CloseWrite()) }()
	for line := make([]byte, length); ; {
		_, err := io.ReadFull(b, line)
		if err == io.EOF {
			break
		}
		must(t, err)
		if !bytes.Equal(line, bytes.Repeat(line[:1], length)) {
			t.Fatal("the bytes of two writers are mixed")
		}
	}
	closeInOrder(t, a, b)
}

// TestCopy copies a stream by ReadFrom and io.Copy.
func TestCopy(t *testing.T) {
	a, b := newRig(t, layers[0], stream.Config{}).pair(t)
	c, d := newRig(t, layers[2], stream.Config{}).pair(t)
	all := randomBytes(3_000_000, 5)
	go func() {
		n, err := a.ReadFrom(bytes.NewReader(all))
		if err != nil || n != int64(len(all)) {
			t.Errorf("ReadFrom: %d bytes, %v", n, err)
		}
		must(t, a.CloseWrite())
	}()
	go func() {
		if n, err := io.Copy(c, b); err != nil || n != int64(len(all)) {
			t.Errorf("Copy: %d bytes, %v", n, err)
		}
		must(t, c.CloseWrite())
	}()
	wantAll(t, d, all)
	closeInOrder(t, a, b)
	closeInOrder(t, c, d)
}

// failing is an io.Writer that takes some bytes, and then none.
type failing int

func (f *failing) Write(p []byte) (int, error) {
	n := min(int(*f), len(p))
	if *f -= failing(n); n < len(p) {
		return n, io.ErrNoProgress
	}
	return n, nil
}

// TestCopyFails checks that WriteTo keeps the bytes that the io.Writer has not taken.
func TestCopyFails(t *testing.T) {
	a, b := newRig(t, layers[0], stream.Config{}).pair(t)
	writeAll(t, a, randomBytes(1000, 6), 1000)
	must(t, a.CloseWrite())
	takes := failing(300)
	if n, err := b.WriteTo(&takes); n != 300 || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("%d bytes, %v", n, err)
	}
	wantAll(t, b, randomBytes(1000, 6)[300:])
	if n, err := a.ReadFrom(errorReader{}); n != 0 || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("%d bytes, %v", n, err)
	}
	closeInOrder(t, a, b)
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

// TestWriteDeadline has a Write reach its deadline in the middle. It checks that as many bytes arrive as Write has
// returned, that its memory is the caller's again, and that the stream goes on.
func TestWriteDeadline(t *testing.T) {
	cfg := stream.Config{Ring: 1 << 17}
	for _, l := range layers {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			a, b := newRig(t, l, cfg).pair(t)
			giveUp(t, a, b)
		})
	}
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := memoryPair(t, cfg)
			if left := giveUp(t, a, b); left <= cfg.Ring/2 || left > cfg.Ring {
				t.Errorf("a Write that waited for room has left %d bytes in a ring of %d", left, cfg.Ring)
			}
		})
	})
}

// giveUp has a start Writes that are too long for the ring, and sets their deadline when some bytes of each have
// arrived. It returns how many bytes the last one left in the ring.
func giveUp(t *testing.T, a, b *stream.Conn) (left int) {
	t.Helper()
	all := randomBytes(1<<20, 7)
	for range 3 {
		p := bytes.Clone(all[left:])
		ended := make(chan error, 1)
		n := 0
		go func() {
			var err error
			n, err = a.Write(p)
			ended <- err
		}()
		wantNext(t, b, all[:30_000])
		must(t, a.SetWriteDeadline(time.Now().Add(20*time.Millisecond)))
		if err := <-ended; !isTimeout(err) {
			t.Errorf("Write to one that does not read: %v", err)
		}
		clear(p) // it is the caller's
		must(t, a.SetWriteDeadline(time.Time{}))
		all, left = all[30_000:], left+n-30_000
	}
	go func() {
		writeAll(t, a, all[left:], 1<<20)
		must(t, a.CloseWrite())
	}()
	wantAll(t, b, all)
	closeInOrder(t, a, b)
	return left
}

// wantNext reads as many bytes as want has, and compares them.
func wantNext(t *testing.T, r io.Reader, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(r, got)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Error("others have come than were sent")
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestReadBesideWrite has one call wait for bytes, again and again, while another waits for room. It checks that
// neither misses a word that the other has polled.
func TestReadBesideWrite(t *testing.T) {
	a, b := newRig(t, layers[0], stream.Config{Ring: 1}).pair(t)
	all := randomBytes(2_000_000, 10)
	go func() {
		writeAll(t, a, all, 20_000)
		must(t, a.CloseWrite())
	}()
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				must(t, a.SetReadDeadline(time.Now().Add(20*time.Microsecond)))
				if _, err := a.Read(make([]byte, 1)); !isTimeout(err) {
					t.Errorf("%v", err)
					return
				}
			}
		}
	})
	wantAll(t, b, all)
	close(done)
	reader.Wait()
	closeInOrder(t, a, b)
}

// TestWriteLengths has Writes of lengths around each limit: bytes are copied up to 1 KiB, a piece has up to 1 MiB,
// and the ring 2 MiB.
func TestWriteLengths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memoryPair(t, stream.Config{})
		for i, about := range []int{1 << 10, 1 << 20, 1<<20 + 1<<10, 2 << 20} {
			for _, n := range []int{about - 1, about, about + 1} {
				all, got := randomBytes(n, byte(i)), make([]byte, n)
				wrote := make(chan error, 1)
				go func() { _, err := a.Write(all); wrote <- err }()
				_, err := io.ReadFull(b, got)
				must(t, errors.Join(err, <-wrote))
				if !bytes.Equal(got, all) {
					t.Errorf("%d bytes differ", n)
				}
			}
		}
		closeInOrder(t, a, b)
	})
}

// A liar is an io.Writer that returns a length of its choice.
type liar int

func (l liar) Write([]byte) (int, error) { return int(l), nil }

// TestLendToLiars has an io.Writer return a negative length, or more than it got. It checks that WriteTo stays within
// the bytes that there are.
func TestLendToLiars(t *testing.T) {
	for _, c := range []struct {
		says, want int
		err        error
	}{{-1, 0, io.ErrShortWrite}, {1 << 30, 5, nil}} {
		a, b := newRig(t, layers[0], stream.Config{}).pair(t)
		_, err := a.Write([]byte("hello"))
		must(t, err)
		must(t, a.CloseWrite())
		if n, err := b.WriteTo(liar(c.says)); n != int64(c.want) || !errors.Is(err, c.err) {
			t.Errorf("%d: %d bytes, %v", c.says, n, err)
		}
	}
}
