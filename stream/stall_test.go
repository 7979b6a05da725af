package stream_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rsockets"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/stream"
)

// A stalling connection takes no bytes between stop and goOn.
type stalling struct {
	*duplex
	free chan struct{} // has something while it takes what it is given
}

func newStalling() (a *stalling, b *duplex) {
	x, b := newDuplex()
	a = &stalling{x, make(chan struct{}, 1)}
	a.goOn()
	return a, b
}

func (s *stalling) stop() { <-s.free }
func (s *stalling) goOn() { s.free <- struct{}{} }

func (s *stalling) Write(p []byte) (int, error) {
	<-s.free
	defer s.goOn()
	return s.duplex.Write(p)
}

// TestStalls has a network stall for an hour, while this end maps memory, keeps the connection alive, and reads. It
// checks that Map then waits until its deadline. When the network goes on, the peer learns of all that it needs to
// write.
func TestStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const maps = 1024
		under, other := newStalling()
		a, b := pairOver(t, stream.Config{Maps: maps, Credits: 2 * maps}, under, other)
		must(t, a.SetKeepAlivePeriod(time.Second))
		synctest.Wait()
		under.stop()
		mapped, err := 0, error(nil)
		for mapped < maps && err == nil {
			must(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
			if _, err = a.Map(make([]byte, 1), uint64(mapped)); err == nil {
				mapped++
			}
		}
		if !isTimeout(err) || mapped < 100 {
			t.Errorf("%d maps, and %v", mapped, err)
		}
		time.Sleep(time.Hour)
		all := randomBytes(3*stream.DefaultRing, 4)
		wrote := make(chan error, 1)
		go func() { _, err := b.Write(all); wrote <- err }()
		got := make([]byte, len(all))
		_, err = io.ReadFull(a, got[:stream.DefaultRing]) // all that the peer knows of
		must(t, err)
		under.goOn()
		_, err = io.ReadFull(a, got[stream.DefaultRing:])
		must(t, err)
		must(t, <-wrote)
		if string(got) != string(all) {
			t.Error("the bytes differ")
		}
		must(t, a.SetWriteDeadline(time.Time{}))
		_, err = a.Map(make([]byte, 1), 0)
		must(t, err)
		go b.Close()
		must(t, a.Close())
	})
}

// TestDeafPeer has a peer receive nothing, and send more than it has credits for. It checks that the connection ends.
func TestDeafPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, other := newStalling()
		p, conn := byHandOver(t, stream.Config{Credits: 16}, under, other)
		synctest.Wait()
		under.stop()
		read := make(chan error, 1)
		go func() { _, err := io.Copy(io.Discard, conn); read <- err }()
		for len(read) == 0 {
			word := rsockets.NewWord(rsockets.OpData, 1).Append(nil, false)
			if p.qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Inline: word, Unsignaled: true}) != nil {
				break
			}
			synctest.Wait()
		}
		under.goOn()
		if err := <-read; err == nil || errors.Is(err, iwarp.ErrPeerClosed) || errors.Is(err, iwarp.ErrQueueFull) {
			t.Errorf("%v", err)
		}
		<-p.qp.Done()
		_ = conn.Close()
	})
}

// byHandOver connects a peer and a Conn over a connection.
func byHandOver(t *testing.T, cfg stream.Config, ours, others net.Conn) (*peer, *stream.Conn) {
	t.Helper()
	ln := testrig.NewListener("memory")
	listener := (&stream.ListenConfig{Acceptor: stream.Acceptor{Config: cfg}}).NewListener(ln)
	defer listener.Close()
	came := make(chan net.Conn, 1)
	go func() {
		c, _ := listener.Accept()
		came <- c
	}()
	go func() { _ = ln.Offer(context.Background(), ours) }()
	p := &peer{t: t}
	p.over(others)
	return p, (<-came).(*stream.Conn)
}

// over connects a peer, with memory for everything and receives for the first words.
func (p *peer) over(conn net.Conn) {
	p.t.Helper()
	pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	must(p.t, err)
	p.mr, err = pd.Register(make([]byte, peerRing+1000), iwarp.RemoteWrite)
	must(p.t, err)
	said, _ := rsockets.Hello{
		Credits: 32, Entries: 2, Table: rsockets.Place{TO: peerTable, STag: p.mr.STag()},
		Ring: rsockets.Entry{Place: rsockets.Place{TO: peerRing, STag: p.mr.STag()}, Length: 500},
	}.AppendBinary(nil)
	d := iwarp.Dialer{PD: pd, MPA: mpa.Offer{PrivateData: said}, QP: iwarp.QPConfig{Linger: -1}, Prepare: p.prepare}
	p.qp, err = d.Initiate(context.Background(), conn, nil)
	must(p.t, err)
	p.other, err = rsockets.ParseHello(p.qp.Negotiated().PrivateData)
	must(p.t, err)
}

// TestStalledWrites has a network stall while this end writes single bytes. It checks that Write waits before the
// Send Queue is full, and that the stream goes on when the network does.
func TestStalledWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, other := newStalling()
		a, b := pairOver(t, stream.Config{}, under, other)
		synctest.Wait()
		var sent int
		for range 3 {
			under.stop()
			must(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
			before, err := sent, error(nil)
			for err == nil {
				if _, err = a.Write([]byte{byte(sent)}); err == nil {
					sent++
				}
			}
			if !isTimeout(err) || sent-before < 100 {
				t.Fatalf("%d Writes, and %v", sent-before, err)
			}
			under.goOn()
			for i := before; i < sent; i++ {
				var one [1]byte
				_, err := io.ReadFull(b, one[:])
				must(t, err)
				if one[0] != byte(i) {
					t.Fatalf("byte %d is %d", i, one[0])
				}
			}
		}
		must(t, a.SetWriteDeadline(time.Time{}))
		large := randomBytes(3*stream.DefaultRing, 5)
		wrote := make(chan error, 1)
		go func() { _, err := a.Write(large); wrote <- err }()
		got := make([]byte, len(large))
		_, err := io.ReadFull(b, got)
		must(t, errors.Join(err, <-wrote))
		if string(got) != string(large) {
			t.Error("the bytes differ")
		}
		go b.Close()
		must(t, a.Close())
	})
}

// TestWriteLeavesNothing has Writes reach their deadline with pieces under way. It checks that a copy of those is
// sent, whatever the caller does with its memory. Nothing stays registered after that.
func TestWriteLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, other := newStalling()
		a, b := pairOver(t, stream.Config{Maps: 1}, under, other)
		there := make([]byte, 1000)
		_, err := b.Map(there, 0)
		must(t, err)
		synctest.Wait()
		rnic := a.QP().PD().RNIC()
		base := rnic.Stats().MRs
		holds := func(more int, when string) {
			t.Helper()
			if got := rnic.Stats().MRs - base; got != more {
				t.Errorf("%s: %d MRs more, not %d", when, got, more)
			}
		}
		var sent []byte
		write := func(n int, late bool) {
			t.Helper()
			p := randomBytes(n, byte(len(sent)>>10))
			all := append([]byte(nil), p...)
			must(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
			m, err := a.Write(p)
			if isTimeout(err) != late || err != nil && !late {
				t.Fatalf("%d bytes: %d, %v", n, m, err)
			}
			clear(p)
			sent = append(sent, all[:m]...)
		}
		reads := func() {
			t.Helper()
			got := make([]byte, len(sent))
			_, err := io.ReadFull(b, got)
			must(t, err)
			if string(got) != string(sent) {
				t.Error("the bytes differ")
			}
			sent = nil
			synctest.Wait()
		}
		write(100_000, false)
		holds(0, "all is sent")
		under.stop()
		write(300_000, true)
		write(100, false)
		write(200_000, true)
		holds(2, "two are under way")
		under.goOn()
		reads()
		write(0, false)
		holds(0, "they are complete")
		write(2*stream.DefaultRing, true)
		write(100_000, true)
		holds(0, "there is no room")
		reads()
		write(stream.DefaultRing-100, false)
		write(100, false) // of which no completion tells
		write(100_000, true)
		holds(0, "there is no room, and what came before may be under way")
		reads()
		under.stop()
		write(300_000, true)
		must(t, a.SetWriteDeadline(time.Time{}))
		_, err = a.Map(make([]byte, 1), 0)
		must(t, err)
		under.goOn()
		reads()
		write(0, false)
		holds(1, "a map is told, and is what stays")
		under.stop()
		must(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
		if n, err := a.WriteAt([]byte("late"), 0); n != 4 || !isTimeout(err) {
			t.Errorf("%d bytes, %v", n, err)
		}
		write(0, false)
		holds(2, "a WriteAt is under way")
		under.goOn()
		synctest.Wait()
		write(0, false)
		holds(1, "it is complete")
		go b.Close()
		must(t, a.Close())
		if string(there[:4]) != "late" {
			t.Errorf("there is %q", there[:4])
		}
	})
}

// TestWriteToOneThatLeft has a peer close in order while no call waits. It checks that Write says so.
func TestWriteToOneThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memoryPair(t, stream.Config{})
		go a.Close()
		synctest.Wait()
		if _, err := b.Write([]byte("x")); !errors.Is(err, stream.ErrPeerGone) {
			t.Errorf("got %v", err)
		}
		must(t, b.Close())
	})
}
