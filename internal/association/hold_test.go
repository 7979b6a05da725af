package association_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// A heldWire is a carrier that can hold its peer back, and notes when.
type heldWire struct {
	association.Carrier
	mu    sync.Mutex
	calls []bool
}

func (w *heldWire) HoldFrom() int { return 1000 }

func (w *heldWire) Hold(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, on)
}

func (w *heldWire) wantHolds(t *testing.T, want ...bool) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.calls, want) {
		t.Errorf("holding was switched %v, want %v", w.calls, want)
	}
}

// TestHeldByAll: what the sessions of an association hold counts together, to the byte, and no more once a session has
// ended.
func TestHeldByAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := wires(20)
		w := &heldWire{Carrier: y}
		active := association.New(x, association.Config{Machine: sctp.Config{Active: true}})
		passive := association.New(w, association.Config{Machine: sctp.Config{Listening: true}})
		t.Cleanup(func() { active.Close("the test is over"); <-passive.Gone() })
		a, b := connect(t, active, passive)
		_, c := connect(t, active, passive)
		b.Held(500)
		c.Held(499)
		w.wantHolds(t)
		b.Held(501)
		w.wantHolds(t, true)
		c.Held(600)
		b.Held(399)
		w.wantHolds(t, true, false)
		b.Held(900)
		testrig.Must(t, a.CloseWrite())
		testrig.Must(t, b.Close())
		w.wantHolds(t, true, false, true, false)
		b.Held(5000) // it is over
		w.wantHolds(t, true, false, true, false)
		if want := b.Bounds(); want.Bytes != w.Ahead() || want.First != 1 {
			t.Errorf("bounds %+v", want)
		}
	})
}

// TestEarlyHoldsBack: segments that overtake the Accept hold the peer back, which breaks no rule with them, and are
// there with the session. A carrier that cannot hold the peer back, or does not in time, loses it the session, and the
// association, if there is no other.
func TestEarlyHoldsBack(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, other := wires(21)
				w := &heldWire{Carrier: x}
				a := association.New(w, association.Config{Machine: sctp.Config{Active: true}})
				go other.Run(func(sctp.Message) {}, func(uint16, uint64) {}, func(error) {})
				s, err := a.Begin(mpa.Offer{Dialect: mpa.DialectRFC5044})
				testrig.Must(t, err)
				say := func(ppid uint32, data ...byte) {
					if err := other.Send(sctp.Message{PPID: ppid, Data: data}); err != nil && !late {
						t.Error(err)
					}
					time.Sleep(2 * time.Millisecond) // it has arrived
				}
				n := 10
				if late {
					n = x.Ahead()/1400 + 500
				}
				for i := range n {
					say(16, append([]byte{byte((i + 1) >> 8), byte(i + 1)}, make([]byte, 1400)...)...)
				}
				if late {
					if _, err := s.Answer(t.Context()); !errors.Is(err, sctp.ErrEarly) {
						t.Errorf("answered: %v", err)
					}
					<-a.Gone() // which tells the peer that what SCTP has acknowledged came to nobody
				} else {
					w.wantHolds(t, true)
					say(17, 0, 0, 0, 2)
					_, err := s.Answer(t.Context())
					testrig.Must(t, err)
					for range n {
						if _, err := s.Recv(); err != nil {
							t.Error(err)
						}
					}
				}
				w.wantHolds(t, true, false)
				a.Close("the test is over")
			})
		})
	}
}

// TestHeldByTheDead: what a session holds counts no more when the peer has not acknowledged its end in time.
func TestHeldByTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := wires(22)
		w := &heldWire{Carrier: y}
		active := association.New(x, association.Config{Machine: sctp.Config{Active: true}})
		passive := association.New(w, association.Config{Machine: sctp.Config{Listening: true}})
		t.Cleanup(func() { active.Close("the test is over"); <-passive.Gone() })
		a, b := connect(t, active, passive)
		connect(t, active, passive) // it keeps the association
		time.Sleep(time.Second)
		synctest.Wait()
		y.slow = time.Hour
		testrig.Must(t, a.CloseWrite())
		v, err := b.Recv()
		if testrig.Must(t, err); !v.End {
			t.Fatalf("got %+v", v)
		}
		b.Held(2000)
		testrig.Must(t, b.CloseWrite())
		w.wantHolds(t, true)
		wantGone(t, b, sctp.ErrTimeout)
		w.wantHolds(t, true, false)
	})
}

// TestAllThatIsAhead: what Bounds lets a peer have come ahead may also overtake the Accept, to the byte.
func TestAllThatIsAhead(t *testing.T) {
	for _, more := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			x, other := wires(23)
			a := association.New(x, association.Config{Machine: sctp.Config{Active: true}})
			go other.Run(func(sctp.Message) {}, func(uint16, uint64) {}, func(error) {})
			s, err := a.Begin(mpa.Offer{Dialect: mpa.DialectRFC5044})
			testrig.Must(t, err)
			may := s.Bounds()
			for i := range may.Segments {
				segment := make([]byte, may.Bytes/may.Segments)
				if i == 0 {
					segment = append(segment, make([]byte, more)...)
				}
				testrig.Must(t, other.Send(sctp.Message{PPID: 16, Data: sctp.AppendSegment(nil, uint16(i+1), segment)}))
			}
			time.Sleep(time.Second) // they have arrived, and more than that has ended the association
			if err := other.Send(sctp.Message{PPID: 17, Data: []byte{0, 0, 0, 2}}); err != nil && more == 0 {
				t.Error(err)
			}
			if _, err := s.Answer(t.Context()); (more == 0) != (err == nil) || more > 0 &&
				!errors.Is(err, sctp.ErrEarly) {
				t.Errorf("with %d bytes more: %v", more, err)
			}
			a.Close("the test is over")
		})
	}
}
