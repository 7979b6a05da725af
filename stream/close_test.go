package stream_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rsockets"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/stream"
)

// TestEndsLast has a peer end its direction while nobody reads. It checks that CloseWrite ends both directions. The
// peer then ends the connection without a word, and that is in order.
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

// TestCloseEndsCalls checks that Close ends a Read that waits, a Write that waits, and both at once.
func TestCloseEndsCalls(t *testing.T) {
	read := func(c *stream.Conn) error { _, err := c.Read(make([]byte, 1)); return err }
	write := func(c *stream.Conn) error { _, err := c.Write(make([]byte, 3*stream.DefaultRing)); return err }
	for name, calls := range map[string][]func(*stream.Conn) error{
		"Read": {read}, "Write": {write}, "both": {read, write},
	} {
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

// TestShutdownsCross has both ends end their direction before they know of the other. An end that is rdma-core is
// disconnected then: it sends and takes no more words. So all is in order without Disconnect, whichever end closes
// first.
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

// TestDisconnected has an rdma-core peer send Disconnect and free its receives. It checks that the peer gets no
// further word, whether its own was read before Close or not.
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
						t.Errorf("%d bytes, %v", n, err)
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

// TestGoneAtOurWord has an rdma-core peer end the connection as soon as it has our Disconnect, before our Close goes
// on. That is in order. If it has ended the connection before, it may not have everything, and Close says so.
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
				needsWord := conn.Disconnect()
				if want == nil {
					p.want(rsockets.NewWord(rsockets.OpControl, uint32(rsockets.Disconnect)))
					end()
				}
				if err := conn.CloseError(conn.QP().Close(), needsWord); !errors.Is(err, want) {
					t.Errorf("%v, wanted %v", err, want)
				}
				_ = conn.Close()
			})
		})
	}
}

// TestShutdownsCrossUnderWay has the peer's Shutdown arrive while our bytes and our Shutdown are still under way. It
// checks that the peer gets them. If the peer is gone, Close fails.
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

// TestOurShutdownsCross has two Conns end their directions at once, with bytes under way both ways. It checks that
// each reads all. If one closes its QP without Disconnect, Close of the other fails.
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
				all := randomBytes(stream.DefaultRing, 2)
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

// TestResetIsNotClosed has a peer reset the connection, or end it without a word. It checks that no call fails with
// net.ErrClosed before Close at this end, and that the error tells what has happened.
func TestResetIsNotClosed(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*iwarp.QP) error
		want error
	}{"reset": {(*iwarp.QP).Abort, iwarp.ErrConnectionLost}, "no word": {(*iwarp.QP).Close, io.ErrUnexpectedEOF}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, layers[0], stream.Config{Maps: 1})
			a, b := r.pair(t)
			must(t, c.end(b.QP()))
			<-a.QP().Done()
			_, read := a.Read(make([]byte, 1))
			_, written := a.Write(make([]byte, 1))
			_, mapped := a.Map(make([]byte, 1), 0)
			for _, err := range []error{read, written, mapped, a.CloseWrite()} {
				if err == nil || errors.Is(err, net.ErrClosed) || !errors.Is(err, c.want) {
					t.Errorf("%v: net.ErrClosed: %t", err, errors.Is(err, net.ErrClosed))
				}
			}
			_ = a.Close()
			if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		})
	}
}
