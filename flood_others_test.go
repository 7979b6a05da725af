package iwarp_test

import (
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
)

// The flood of the tests below.
const (
	floodRate   = 11000 // connections from one address, in a second
	farClients  = 12    // from addresses of their own, in the same second
	farDelay    = 300 * time.Millisecond
	floodSource = "192.0.2.1"
)

// flood has one address open connections, each of which says something, or nothing. Meanwhile others connect, whose
// Requests take their time. They are returned when these are on their way.
func (c *crowd) flood(says []byte) (far []*peer) {
	for i := range floodRate {
		p := c.come(floodSource)
		if len(says) > 0 {
			_ = p.link.Send(says)
		}
		time.Sleep(time.Second / floodRate) // of virtual time
		if i%(floodRate/farClients) == floodRate/farClients-1 {
			p := c.come(net.IPv4(198, 51, 100, byte(i/(floodRate/farClients))).String())
			far = append(far, p)
			time.AfterFunc(farDelay, func() { _ = p.link.Send(frame(request(2))) })
		}
	}
	return far
}

// TestFloodSparesOthers has one address open 11,000 connections a second, of which none says anything, and twelve
// others connect over lines of 300 ms each way: all of them come up.
//
// Proves Z04.
func TestFloodSparesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, iwarp.ListenConfig{RNIC: iwarp.NewRNIC(iwarp.RNICConfig{})})
		go c.serve(t.Context())
		far := c.flood(nil)
		time.Sleep(farDelay) // of virtual time
		for i, p := range far {
			p.wantFrame(mpa.KeyReply)
			p.send(p.write(1, 0, nil))
			synctest.Wait()
			if !c.isOpen(p) {
				t.Errorf("client %d was closed", i)
			}
		}
		if s := c.ln.Stats(); s.Established != farClients || s.HalfOpen > 1024 || s.Evicted < floodRate-1024 {
			t.Errorf("counted %+v", s)
		}
		_ = c.ln.Close()
	})
}

// TestFloodOfRequestsSparesOthers is the same with a whole Request on each connection, and a server that is not as
// fast as they come: those of the others reach Accept.
//
// Proves Z04.
func TestFloodOfRequestsSparesOthers(t *testing.T) {
	for _, busy := range []time.Duration{50 * time.Microsecond, 200 * time.Microsecond, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, iwarp.ListenConfig{RNIC: iwarp.NewRNIC(iwarp.RNICConfig{})})
			served := map[string]int{}
			go func() {
				for {
					req, err := c.ln.Accept(t.Context())
					if err != nil {
						return
					}
					ip, _, _ := net.SplitHostPort(req.RemoteAddr().String())
					served[ip]++
					time.Sleep(busy) // of virtual time
					_ = req.Close()
				}
			}()
			c.flood(frame(request(2)))
			time.Sleep(10 * time.Second) // of virtual time
			_ = c.ln.Close()
			synctest.Wait()
			if len(served) != farClients+1 || served[floodSource] == 0 {
				t.Errorf("%v for each Request: Accept returned some from %d of %d other addresses, %d of the flood's", busy, len(served)-1, farClients, served[floodSource])
			}
		})
	}
}

// TestWaitingRequestMakesRoom: where all places are taken by the Requests of one address that wait for Accept, the oldest
// of them is closed for a connection from another, and Accept returns the rest. The address itself gets no more.
//
// Proves Z04.
func TestWaitingRequestMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		log := slog.New(handler(func(r slog.Record) {
			r.Attrs(func(a slog.Attr) bool {
				told.Add(int32(wording.Bit(a.Key == "cause" && a.Value.String() == iwarp.ErrEvicted.Error())))
				return true
			})
		}))
		c := newCrowd(t, iwarp.ListenConfig{MaxHalfOpen: 3, RNIC: newRNIC(t, iwarp.RNICConfig{Logger: log})})
		come := func(ip string) *peer {
			p := c.come(ip)
			_ = p.link.Send(frame(request(2)))
			synctest.Wait()
			return p
		}
		first, second, third := come(floodSource), come(floodSource), come(floodSource)
		if more := c.come(floodSource); c.isOpen(more) {
			t.Error("there is a place for a fourth of one address")
		}
		other := come("198.51.100.1")
		if c.isOpen(first) || !c.isOpen(second) || !c.isOpen(third) || !c.isOpen(other) {
			t.Error("closed another than the oldest Request of the address that has most")
		}
		if more := come("198.51.100.2"); !c.isOpen(more) || c.isOpen(second) {
			t.Error("a third address got no place")
		}
		if more := come("198.51.100.3"); c.isOpen(more) {
			t.Error("a Request was closed though no address has more than another would have")
		}
		for _, want := range []string{floodSource, "198.51.100.1", "198.51.100.2"} {
			req, err := c.ln.Accept(t.Context())
			must(t, err)
			if ip, _, _ := net.SplitHostPort(req.RemoteAddr().String()); ip != want {
				t.Errorf("Accept returned a Request from %s, want %s", ip, want)
			}
			should(t, req.Close())
		}
		if told.Load() != 4 {
			t.Errorf("%d records of connections that were closed to make room", told.Load())
		}
		if s := c.ln.Stats(); s.Evicted != 4 || s.HalfOpen != 0 || s.Waiting != 0 {
			t.Errorf("counted %+v", s)
		}
		_ = c.ln.Close()
	})
}
