package stream_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stream"
)

// TestDeadlines changes deadlines while calls wait.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memoryPair(t, stream.Config{})
		begun := time.Now()
		read := make(chan error, 1)
		go func() {
			_, err := a.Read(make([]byte, 1))
			read <- err
		}()
		must(t, a.SetDeadline(begun.Add(time.Hour)))
		synctest.Wait()
		must(t, a.SetReadDeadline(begun.Add(3*time.Hour)))
		time.Sleep(2 * time.Hour)
		must(t, a.SetReadDeadline(begun.Add(2*time.Hour+time.Second)))
		if err := <-read; !isTimeout(err) || time.Since(begun) != 2*time.Hour+time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		if _, err := a.Write([]byte("late")); !isTimeout(err) {
			t.Errorf("Write after its deadline: %v", err)
		}
		must(t, a.SetDeadline(time.Time{}))
		if _, err := a.Write([]byte("in time")); err != nil {
			t.Error(err)
		}
		closeInOrder(t, a, b)
		if err := a.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a deadline of a closed connection: %v", err)
		}
	})
}

// TestKeepAlive checks that an empty Write is sent if nothing else was, and only then.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memoryPair(t, stream.Config{})
		sent := func() uint64 { synctest.Wait(); return a.QP().Stats().Sent[rdmap.OpWrite].Messages }
		must(t, a.SetKeepAlivePeriod(time.Minute))
		before := sent()
		time.Sleep(10*time.Minute + time.Second)
		if n := sent() - before; n != 10 {
			t.Errorf("%d Writes in ten minutes", n)
		}
		must(t, a.SetKeepAlivePeriod(time.Hour))
		before = sent()
		time.Sleep(59 * time.Minute)
		if n := sent() - before; n != 0 {
			t.Errorf("%d Writes before an hour was over", n)
		}
		must(t, a.SetKeepAlivePeriod(time.Minute))
		before = sent()
		for range 4 {
			time.Sleep(50 * time.Second)
			if _, err := a.Write([]byte("busy")); err != nil {
				t.Error(err)
			}
		}
		if n := sent() - before; n != 4 {
			t.Errorf("%d Writes, where 4 were of data", n)
		}
		must(t, a.SetKeepAlivePeriod(0))
		before = sent()
		time.Sleep(time.Hour)
		if n := sent() - before; n != 0 {
			t.Errorf("%d Writes after it was turned off", n)
		}
		must(t, b.SetKeepAlivePeriod(time.Second))
		closeInOrder(t, a, b)
		if err := a.SetKeepAlivePeriod(time.Second); !errors.Is(err, net.ErrClosed) {
			t.Errorf("of a closed connection: %v", err)
		}
		if b.KeepsAlive() {
			t.Error("a connection that is closed is kept alive")
		}
	})
}

// TestMap writes into memory that the peer has chosen.
func TestMap(t *testing.T) {
	for _, l := range layers {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			a, b := newRig(t, l, stream.Config{Maps: 2}).pair(t)
			if _, err := a.WriteAt([]byte("early"), 1000); !errors.Is(err, stream.ErrNotMapped) {
				t.Errorf("WriteAt where nothing is mapped: %v", err)
			}
			all := randomBytes(500_000, 9)
			here := make([]byte, len(all))
			m, err := b.Map(here[:300_000], 1000)
			must(t, err)
			rest, err := b.Map(here[300_000:], 301_000)
			must(t, err)
			if _, err := b.Map(make([]byte, 1), 0); !errors.Is(err, stream.ErrNoMaps) {
				t.Errorf("a third of two: %v", err)
			}
			say(t, b, a)
			if n, err := a.WriteAt(all, 1000); n != len(all) || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
			if n, err := a.WriteAt(make([]byte, 7), 500_998); n != 2 || !errors.Is(err, stream.ErrNotMapped) {
				t.Errorf("across the end: %d bytes, %v", n, err)
			}
			copy(all[499_998:], []byte{0, 0})
			copy(all[299_990:300_010], make([]byte, 20))
			if n, err := a.WriteAt(all[299_990:300_010], 300_990); n != 20 || err != nil {
				t.Errorf("in the middle of both: %d bytes, %v", n, err)
			}
			say(t, a, b)
			got := make([]byte, 5)
			if _, err := rest.ReadAt(got, 199_995); err != nil || string(got) != string(all[499_995:]) {
				t.Errorf("%x, %v", got, err)
			}
			must(t, m.Close())
			must(t, m.Close())
			must(t, rest.Close())
			if string(here) != string(all) {
				t.Error("the bytes differ")
			}
			closeInOrder(t, a, b)
		})
	}
}

// TestMapAgain maps memory at the offset of a Mapping that is closed. It checks that the peer writes to the new one.
func TestMapAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const there = 1 << 20
		a, b := memoryPair(t, stream.Config{Maps: 4})
		for _, offset := range []uint64{0, there} {
			m, err := b.Map(make([]byte, 5), offset)
			must(t, err)
			defer m.Close()
		}
		b.Unmap()
		here := make([]byte, 5)
		again, err := b.Map(here, there) // in the entry of the first
		must(t, err)
		say(t, b, a)
		_, err = a.WriteAt([]byte("there"), there)
		must(t, err)
		say(t, a, b)
		must(t, again.Close())
		if string(here) != "there" {
			t.Errorf("%q", here)
		}
		closeInOrder(t, a, b)
	})
}

// TestUnmapTwice has the program and Close of the Conn close a Mapping at the same time, for the race detector.
func TestUnmapTwice(t *testing.T) {
	a, b := memoryPair(t, stream.Config{Maps: 64})
	for range 20 {
		var both sync.WaitGroup
		m, err := b.Map(make([]byte, 1), 0)
		must(t, err)
		both.Go(b.Unmap)
		both.Go(func() { _ = m.Close() })
		both.Wait()
	}
	closeInOrder(t, a, b)
}

// say has one end tell the other that something was done.
func say(t *testing.T, from io.Writer, to io.Reader) {
	t.Helper()
	_, err := from.Write([]byte("!"))
	must(t, err)
	_, err = io.ReadFull(to, make([]byte, 1))
	must(t, err)
}

// TestMapUnread checks that WriteAt finds a Mapping of which nothing was read from the stream yet.
func TestMapUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memoryPair(t, stream.Config{Maps: 1})
		here := make([]byte, 5)
		_, err := b.Map(here, 0)
		must(t, err)
		synctest.Wait()
		if n, err := a.WriteAt([]byte("there"), 0); n != 5 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		closeInOrder(t, a, b)
		if string(here) != "there" {
			t.Errorf("%q", here)
		}
	})
}

// TestNoMaps checks that a Conn takes no maps by default.
func TestNoMaps(t *testing.T) {
	a, b := newRig(t, layers[0], stream.Config{}).pair(t)
	if _, err := a.Map(make([]byte, 1), 0); !errors.Is(err, stream.ErrNoMaps) {
		t.Errorf("%v", err)
	}
	if _, err := a.Map(nil, 0); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("of nothing: %v", err)
	}
	closeInOrder(t, a, b)
	if _, err := a.Map(make([]byte, 1), 0); !errors.Is(err, net.ErrClosed) {
		t.Errorf("of a closed connection: %v", err)
	}
}

// TestMapAfterTheEnd checks that Map and WriteAt fail like Write after the connection has ended.
func TestMapAfterTheEnd(t *testing.T) {
	for name, ends := range map[string]func(*stream.Conn){
		"close": func(c *stream.Conn) { go c.Close() },
		"abort": func(c *stream.Conn) { _ = c.QP().Abort() },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newRig(t, layers[0], stream.Config{Maps: 2}).pair(t)
			ends(b)
			<-a.QP().Done()
			_, mapped := a.Map(make([]byte, 1), 0)
			_, there := a.WriteAt(make([]byte, 1), 0)
			_, wrote := a.Write(make([]byte, 1))
			var want *net.OpError
			if !errors.As(wrote, &want) {
				t.Fatalf("Write: %v", wrote)
			}
			for call, err := range map[string]error{"Map": mapped, "WriteAt": there} {
				var got *net.OpError
				if !errors.As(err, &got) || got.Err.Error() != want.Err.Error() {
					t.Errorf("%s: %v; Write: %v", call, err, wrote)
				}
			}
		})
	}
}

// TestGivesBack checks that nothing of the caller's Protection Domain stays in use, however a connection or a Dial
// ends.
func TestGivesBack(t *testing.T) {
	pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	must(t, err)
	r := newRig(t, layers[0], stream.Config{Maps: 1})
	r.dialer.RDMA.PD = pd
	a, b := r.pair(t)
	_, err = a.Map(make([]byte, 10), 0)
	must(t, err)
	must(t, a.SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
	if _, err := a.Write(make([]byte, 3<<20)); !isTimeout(err) {
		t.Errorf("%v", err)
	}
	closeInOrder(t, a, b)
	if _, err := r.dialer.Dial(t.Context(), "tcp", "127.0.0.1:1"); err == nil {
		t.Error("connected with nobody")
	}
	r.dialer.Config.Credits = 1
	if _, err := r.dialer.Dial(t.Context(), "tcp", r.to); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("%v", err)
	}
	s := pd.RNIC().Stats()
	if s.QPs != 0 || s.CQs != 0 || s.MRs != 0 {
		t.Errorf("%d QPs, %d CQs and %d MRs are left", s.QPs, s.CQs, s.MRs)
	}
	must(t, pd.Close())
}

// TestConfig checks that values out of range are rejected.
func TestConfig(t *testing.T) {
	for _, cfg := range []stream.Config{
		{Ring: -1}, {Ring: 1<<30 + 1}, {Credits: 15}, {Credits: 1<<15 + 1}, {Maps: -1}, {Maps: 32513},
	} {
		d := stream.Dialer{Config: cfg}
		if _, err := d.Dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestListenerCloses checks that Close ends Accept, and the connections that Accept has not returned. The others go
// on.
func TestListenerCloses(t *testing.T) {
	r := newRig(t, layers[0], stream.Config{})
	a, b := r.pair(t)
	untaken, err := r.dialer.Dial(t.Context(), r.net, r.to)
	must(t, err)
	must(t, r.ln.Close())
	if _, err := r.ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
	if err := r.ln.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Close again: %v", err)
	}
	if _, err := untaken.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("of one that nobody has taken: %v", err)
	}
	_ = untaken.Close()
	say(t, a, b)
	closeInOrder(t, a, b)
	if err := a.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Close of a connection again: %v", err)
	}
	if _, err := a.Read(nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read: %v", err)
	}
}
