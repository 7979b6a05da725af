package association_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// wantTook expects that some time has passed since then, in virtual time.
func wantTook(t *testing.T, since time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(since); took != want {
		t.Errorf("it took %v, want %v", took, want)
	}
}

// opposite returns an Association whose peer the test is: what it hears, and how it speaks on stream 0.
func opposite(t *testing.T, w association.Carrier, other *wire, c association.Config) (a *association.Association,
	heard chan sctp.Message, say func(sctp.Message)) {
	a = association.New(w, c)
	heard = make(chan sctp.Message, 100)
	go other.Run(func(m sctp.Message) { heard <- m }, func(uint16, uint64) {}, func(error) {})
	t.Cleanup(func() { a.Close("the test is over") })
	return a, heard, func(m sctp.Message) {
		testrig.Must(t, other.Send(m))
		time.Sleep(2 * time.Millisecond) // it has arrived
		synctest.Wait()
	}
}

// TestUnused: an association in which nobody asks for a session ends, in order, and in time.
func TestUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := wires(40)
		began := time.Now()
		association.New(x, association.Config{Machine: sctp.Config{Active: true, UnusedTimeout: -1}})
		passive := association.New(y, association.Config{Machine: sctp.Config{Listening: true,
			UnusedTimeout: 10 * time.Second}})
		if _, err := passive.Accept(t.Context()); !errors.Is(err, errShutdown) {
			t.Errorf("accepted: %v", err)
		}
		wantTook(t, began, 10*time.Second+shutdownTakes)
		if passive.Used() {
			t.Error("it was not used")
		}
	})
}

// TestUnusedUnbounded: one that may be without a session for as long as it likes, as its peer may ask for one, may not
// be when nobody listens any more.
func TestUnusedUnbounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := wires(40)
		association.New(x, association.Config{Machine: sctp.Config{Active: true, UnusedTimeout: -1}})
		ended := make(chan struct{})
		passive := association.New(y, association.Config{Machine: sctp.Config{Listening: true, UnusedTimeout: -1},
			Ended: func() { close(ended) }})
		time.Sleep(time.Hour)
		select {
		case <-ended:
			t.Fatal("it has ended")
		default:
		}
		stopped := time.Now()
		passive.StopListening()
		<-ended
		wantTook(t, stopped, shutdownTakes)
	})
}

// TestSilence: a peer that does not answer is waited for as long as is said, which is not until an unused association
// would end, and after our end for as long as the closing of a session may take. Who waits for the association's end
// is told.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := wires(42)
		ended := make(chan struct{})
		a, heard, _ := opposite(t, w, other, association.Config{
			Machine: sctp.Config{Active: true, AnswerTimeout: 2 * time.Second, CloseTimeout: 3 * time.Second},
			Ended:   func() { close(ended) },
		})
		time.Sleep(time.Second)
		began := time.Now()
		if _, _, err := dial(t.Context(), a, mpa.Offer{}); !errors.Is(err, sctp.ErrTimeout) {
			t.Errorf("answered: %v", err)
		}
		wantTook(t, began, 2*time.Second)
		<-ended
		wantTook(t, began, 5*time.Second)
		if !a.Used() {
			t.Error("it was used")
		}
		if n := len(heard); n != 2 {
			t.Errorf("%d messages, want an Initiate and a Terminate", n)
		}
	})
}

// TestLostBeforeAnswer: with the association goes what waits for an answer, and nobody can ask any more.
func TestLostBeforeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := wires(44)
		a, _, _ := opposite(t, w, other, association.Config{Machine: sctp.Config{Active: true}})
		s, err := a.Begin(mpa.Offer{})
		testrig.Must(t, err)
		go func() { time.Sleep(time.Second); other.closeBoth(errAbort) }()
		began := time.Now()
		if _, err := s.Answer(t.Context()); !errors.Is(err, errAbort) {
			t.Errorf("answered: %v", err)
		}
		wantTook(t, began, time.Second)
		<-s.PeerAcked()
		if _, err := a.Begin(mpa.Offer{}); !errors.Is(err, errAbort) {
			t.Errorf("again: %v", err)
		}
	})
}

// TestCounted: whoever wants to know what was counted is told each time by how much, before it can be seen.
func TestCounted(t *testing.T) {
	for _, asked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var got []sctp.Stats
			c := association.Config{Machine: sctp.Config{Listening: true}}
			if asked {
				c.Counted = func(s sctp.Stats) { got = append(got, s) }
			}
			w, other := wires(46)
			a, heard, say := opposite(t, w, other, c)
			want := []sctp.Stats{{Ordered: 1}, {Dropped: 1}, {Ordered: 1, Dropped: 1}}
			say(sctp.Message{PPID: 17, Ordered: true, Data: []byte{0, 0, 0, 1}})
			s, err := a.Accept(t.Context())
			testrig.Must(t, err)
			if asked && !slices.Equal(got, want[:1]) {
				t.Errorf("with the request, counted %+v", got)
			}
			w.slow = time.Hour // until our rejection is known to have arrived
			testrig.Must(t, s.Reject(nil, 0, 0))
			<-heard
			say(sctp.Message{PPID: 16, Data: []byte{0, 1, 'A'}})
			say(sctp.Message{PPID: 16, Ordered: true, Data: []byte{0, 2, 'B'}})
			if asked && !slices.Equal(got, want) {
				t.Errorf("counted %+v, want %+v", got, want)
			}
		})
	}
}

// TestRejectionTold: a rejection is under way until the peer's acknowledgement is here.
func TestRejectionTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := wires(48)
		w.slow = time.Second
		a, heard, say := opposite(t, w, other, association.Config{Machine: sctp.Config{Listening: true}})
		say(sctp.Message{PPID: 17, Data: []byte{0, 0, 0, 1}})
		s, err := a.Accept(t.Context())
		testrig.Must(t, err)
		testrig.Must(t, s.Reject(nil, 0, 0))
		<-heard
		heardAt := time.Now()
		<-s.PeerAcked()
		if took := time.Since(heardAt); took < w.slow || took > 2*w.slow {
			t.Errorf("told after %v", took)
		}
	})
}

// TestCloseWhileReceiving: who waits for what comes next learns at once that the session was given up.
func TestCloseWhileReceiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive := pair(t, 50)
		_, b := connect(t, active, passive)
		received := make(chan error, 1)
		go func() { _, err := b.Recv(); received <- err }()
		synctest.Wait()
		began := time.Now()
		testrig.Must(t, b.Close())
		if err := <-received; !errors.Is(err, net.ErrClosed) {
			t.Errorf("received: %v", err)
		}
		wantTook(t, began, 0)
	})
}

// TestUnacknowledged: what the peer has not acknowledged is bounded, and goes on with the acknowledgement. What
// waits to be sent does not wait for that.
//
// Proves C12.
func TestUnacknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := wires(52)
		w.slow = time.Hour
		a := association.New(w, association.Config{Machine: sctp.Config{Listening: true}})
		go other.Run(func(sctp.Message) {}, func(uint16, uint64) {}, func(error) {})
		testrig.Must(t, other.Send(sctp.Message{PPID: 17, Data: []byte{0, 0, 0, 1}}))
		s, err := a.Accept(t.Context())
		testrig.Must(t, err)
		_, err = s.Accept(mpa.Answer{})
		testrig.Must(t, err)
		const all, unacknowledged = 1<<15 + 100, 1<<15 - 1 - 2 - 1 // room for two Terminates, and there was the Accept
		var sent atomic.Int32
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ; sent.Load() < all; sent.Add(1) {
				if _, err := s.Send([][]byte{{1}}); err != nil {
					t.Errorf("after %d: %v", sent.Load(), err)
					return
				}
			}
		}()
		time.Sleep(time.Minute * 59)
		synctest.Wait()
		if n := sent.Load(); n != unacknowledged {
			t.Errorf("%d segments were sent, want %d", n, unacknowledged)
		}
		<-done
		a.Close("the test is over")
	})
}

// A teller is a wire that tells how much the peer has acknowledged.
type teller struct{ *wire }

func (teller) AckProgress() uint32 { return 4711 }

// TestAcknowledged: what the Carrier tells of acknowledgements is passed on, and where it tells nothing nothing ever
// changes.
func TestAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := wires(58)
		a, b := connect(t, association.New(teller{x}, association.Config{Machine: sctp.Config{Active: true}}),
			association.New(y, association.Config{Machine: sctp.Config{Listening: true}}))
		if n, none := a.AckProgress(), b.AckProgress(); n != 4711 || none != 0 {
			t.Errorf("%d, and %d without", n, none)
		}
		y.closeBoth(errAbort)
	})
}

// A frail wire fails to send, or to shut down, and notes with what words it is aborted.
type frail struct {
	*wire
	sends error
	words []string
}

func (f *frail) Send(m sctp.Message) error {
	if f.sends != nil {
		return f.sends
	}
	return f.wire.Send(m)
}

func (f *frail) Shutdown(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (f *frail) Abort(text string) {
	f.words = append(f.words, text)
	f.wire.Abort(text)
}

// TestCannotSend: an association that cannot send is aborted, and says why.
func TestCannotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := wires(54)
		f := &frail{wire: w, sends: errors.New("no way")}
		go other.Run(func(sctp.Message) {}, func(uint16, uint64) {}, func(error) {})
		a := association.New(f, association.Config{Machine: sctp.Config{Active: true}})
		if _, _, err := dial(t.Context(), a, mpa.Offer{}); !errors.Is(err, errAbort) {
			t.Errorf("dialed: %v", err)
		}
		if !slices.Equal(f.words, []string{"no way"}) {
			t.Errorf("aborted with %q", f.words)
		}
	})
}

// TestCannotShutDown: a peer that does not take part in the end of the association is left with an ABORT after 10 s.
func TestCannotShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := wires(56)
		f := &frail{wire: x}
		active := association.New(f, association.Config{Machine: sctp.Config{Active: true}, CloseUnused: true})
		passive := association.New(y, association.Config{Machine: sctp.Config{Listening: true}})
		a, b := connect(t, active, passive)
		testrig.Must(t, a.CloseWrite())
		testrig.Must(t, b.CloseWrite())
		<-a.PeerAcked()
		over := time.Now()
		if _, err := active.Begin(mpa.Offer{}); err == nil || !strings.Contains(err.Error(), "being ended") {
			t.Errorf("began: %v", err)
		}
		<-active.Gone()
		wantTook(t, over, 10*time.Second)
		if !slices.Equal(f.words, []string{sctp.ErrUnused.Error()}) {
			t.Errorf("aborted with %q", f.words)
		}
		<-passive.Gone()
	})
}

// TestRefusedIsTold: who refuses an answer that is none knows when the peer has the Terminate that says so, and so a
// program may end then. What the peer itself has refused it knows at once.
//
// RFC 5043, section 6.1: "the DDP Stream Session MUST be terminated."
func TestRefusedIsTold(t *testing.T) {
	for _, c := range []struct {
		answer sctp.Function
		wrong  bool
	}{{sctp.FunctionInitiate, true}, {sctp.FunctionReject, false}, {sctp.FunctionTerminate, false}} {
		synctest.Test(t, func(t *testing.T) {
			x, other := wires(42)
			a, heard, _ := opposite(t, x, other, association.Config{Machine: sctp.Config{Active: true}})
			s, err := a.Begin(mpa.Offer{Dialect: mpa.DialectRFC5044})
			testrig.Must(t, err)
			<-heard // our Initiate, whose acknowledgment is on its way yet
			testrig.Must(t, other.Send(sctp.Message{PPID: sctp.PPIDControl,
				Data: sctp.AppendControl(nil, &sctp.Control{Function: c.answer})}))
			var v *sctp.Violation
			if _, err := s.Answer(t.Context()); err == nil || errors.As(err, &v) != c.wrong {
				t.Errorf("%v: %v", c.answer, err)
			}
			began := time.Now()
			<-s.PeerAcked()
			if !c.wrong {
				wantTook(t, began, 0)
				return
			}
			select {
			case m := <-heard:
				if m.Function() != sctp.FunctionTerminate {
					t.Errorf("it heard %+v", m)
				}
			default:
				t.Error("it was told, and has heard nothing")
			}
		})
	}
}
