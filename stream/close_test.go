package stream_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stream"
	"github.com/goiwarp/iwarp/stream/rsockets"
)

// TestEndsLast has a peer end its direction while nobody reads: CloseWrite knows of it, and ends both. The peer, which has nothing more to
// say, ends the connection without a word, and all is in order.
func TestEndsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, others := newDuplex()
		p, conn := byHandOver(t, stream.Config{}, ours, others)
		p.want(rsockets.NewWord(rsockets.OpCredit, stream.DefaultCredits))
		p.word(rsockets.OpControl, uint32(rsockets.Shutdown))
		synctest.Wait()
		must(t, conn.CloseWrite())
		p.want(rsockets.NewWord(rsockets.OpControl, uint32(rsockets.Disconnect)))
		must(t, p.qp.Close())
		<-conn.QP().Done()
		must(t, conn.Close())
	})
}

// TestCloseEndsCalls has calls wait, each by itself and both at once: Close ends them.
func TestCloseEndsCalls(t *testing.T) {
	read := func(c *stream.Conn) error { _, err := c.Read(make([]byte, 1)); return err }
	write := func(c *stream.Conn) error { _, err := c.Write(make([]byte, 3*stream.DefaultRing)); return err }
	for name, calls := range map[string][]func(*stream.Conn) error{"Read": {read}, "Write": {write}, "both": {read, write}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := memoryPair(t, stream.Config{})
				defer b.Close()
				ended := make(chan error, len(calls))
				for _, call := range calls {
					go func() { ended <- call(a) }()
					synctest.Wait()
				}
				go a.Close()
				synctest.Wait()
				if len(ended) != len(calls) {
					t.Fatalf("%d of %d calls have ended", len(ended), len(calls))
				}
				for range calls {
					if err := <-ended; !errors.Is(err, net.ErrClosed) {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestShutdownsCross has both ends end their direction before they know of the other: rdma-core's end is disconnected then, and neither says nor
// takes anything more. So all is in order without word 0, whichever end closes first.
func TestShutdownsCross(t *testing.T) {
	for _, tt := range []struct {
		name      string
		peerFirst bool
	}{{"the peer closes first", true}, {"this end closes first", false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, others := newDuplex()
				p, conn := byHandOver(t, stream.Config{}, ours, others)
				p.want(rsockets.NewWord(rsockets.OpCredit, stream.DefaultCredits))
				p.write("hello")
				p.word(rsockets.OpData, 5)
				must(t, conn.CloseWrite())
				p.word(rsockets.OpControl, uint32(rsockets.Shutdown)) // without a look at ours
				p.want(rsockets.NewWord(rsockets.OpControl, uint32(rsockets.Shutdown)))
				if got, err := io.ReadAll(conn); string(got) != "hello" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
				sent := conn.QP().Stats().Sent[rdmap.OpSend].Messages
				if tt.peerFirst {
					must(t, p.qp.Close())
					<-conn.QP().Done()
					must(t, conn.Close())
				} else {
					go func() { must(t, p.qp.Close()) }()
					must(t, conn.Close())
				}
				if n := conn.QP().Stats().Sent[rdmap.OpSend].Messages - sent; n != 0 {
					t.Errorf("%d words more to a peer that takes none", n)
				}
			})
		})
	}
}

// TestDisconnected has an end of rdma-core's say Disconnect and free its receives: it gets no further word, whether the one of its own was read
// before Close or not.
func TestDisconnected(t *testing.T) {
	for name, read := range map[string]bool{"read": true, "not read": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, others := newDuplex()
				p, conn := byHandOver(t, stream.Config{}, ours, others)
				p.want(rsockets.NewWord(rsockets.OpCredit, stream.DefaultCredits))
				must(t, conn.CloseWrite())
				p.want(rsockets.NewWord(rsockets.OpControl, uint32(rsockets.Shutdown)))
				p.word(rsockets.OpControl, uint32(rsockets.Disconnect))
				if read {
					if n, err := conn.Read(make([]byte, 1)); n > 0 || err != io.EOF {
						t.Errorf("%d octets, %v", n, err)
					}
				}
				synctest.Wait()
				must(t, p.mr.Deregister())
				sent := conn.QP().Stats().Sent[rdmap.OpSend].Messages
				go func() { must(t, p.qp.Close()) }()
				must(t, conn.Close())
				if n := conn.QP().Stats().Sent[rdmap.OpSend].Messages - sent; n != 0 {
					t.Errorf("%d words more to a peer that takes none", n)
				}
			})
		})
	}
}

// TestGoneAtOurWord has an end of rdma-core's end the connection as soon as it has our word, before Close has gone on to end it, too: that is in
// order. Where it had ended the connection before, it may not have everything.
func TestGoneAtOurWord(t *testing.T) {
	for name, want := range map[string]error{"at our word": nil, "before": io.ErrUnexpectedEOF} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, others := newDuplex()
				p, conn := byHandOver(t, stream.Config{}, ours, others)
				p.want(rsockets.NewWord(rsockets.OpCredit, stream.DefaultCredits))
				end := func() { must(t, p.qp.Close()); <-conn.QP().Done() }
				if want != nil {
					end()
				}
				owed := conn.Disconnect()
				if want == nil {
					p.want(rsockets.NewWord(rsockets.OpControl, uint32(rsockets.Disconnect)))
					end()
				}
				if err := conn.Ended(conn.QP().Close(), owed); !errors.Is(err, want) {
					t.Errorf("%v, wanted %v", err, want)
				}
				_ = conn.Close()
			})
		})
	}
}

// TestShutdownsCrossUnderWay has the peer's word come while octets of ours, and our word, are still under way: the peer gets them; if it
// is gone, Close says so.
func TestShutdownsCrossUnderWay(t *testing.T) {
	for _, tt := range []struct {
		name string
		gone bool
		want error
	}{{"the peer reads on", false, nil}, {"the peer is gone", true, iwarp.ErrConnectionLost}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				under, other := newStalling()
				p, conn := byHandOver(t, stream.Config{}, under, other)
				p.want(rsockets.NewWord(rsockets.OpCredit, stream.DefaultCredits))
				synctest.Wait()
				under.stop()
				for range 3 {
					_, err := conn.Write([]byte("some"))
					must(t, err)
				}
				must(t, conn.CloseWrite())
				p.word(rsockets.OpControl, uint32(rsockets.Shutdown))
				if got, err := io.ReadAll(conn); len(got) > 0 || err != nil {
					t.Errorf("%q, %v", got, err)
				}
				closed := make(chan error, 1)
				go func() { closed <- conn.Close() }()
				synctest.Wait()
				if tt.gone {
					_ = p.qp.Abort()
				}
				under.goOn()
				if !tt.gone {
					for range 3 {
						p.want(rsockets.NewWord(rsockets.OpData, 4))
					}
					p.want(rsockets.NewWord(rsockets.OpControl, uint32(rsockets.Shutdown)))
					must(t, p.qp.Close())
				}
				if err := <-closed; !errors.Is(err, tt.want) {
					t.Errorf("Close: %v, wanted %v", err, tt.want)
				}
			})
		})
	}
}

// TestOurShutdownsCross has two ends of ours end their directions at once, with octets under way in both: each has them all. Of one that closes
// its QP without a word the other's Close tells.
func TestOurShutdownsCross(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*stream.Conn) error
		want error
	}{
		{"in order", (*stream.Conn).Close, nil},
		{"without a word", func(c *stream.Conn) error { return c.QP().Close() }, io.ErrUnexpectedEOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				under, other := newStalling()
				a, b := pairOver(t, stream.Config{}, under, other)
				all := octets(stream.DefaultRing, 2)
				for _, c := range []*stream.Conn{a, b} {
					writeAll(t, c, all, 100_000)
				}
				synctest.Wait()
				under.stop()
				must(t, a.CloseWrite())
				must(t, b.CloseWrite()) // cannot know of the other's
				under.goOn()
				wantAll(t, a, all)
				wantAll(t, b, all)
				go tt.end(b)
				synctest.Wait()
				if err := a.Close(); !errors.Is(err, tt.want) {
					t.Errorf("Close: %v, wanted %v", err, tt.want)
				}
			})
		})
	}
}
