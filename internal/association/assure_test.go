package association_test

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/association"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// An assurer is a wire that ends with the program: it takes its time to tell the peer what has come.
type assurer struct{ *wire }

const assuring = time.Second

func (assurer) Assure() { time.Sleep(assuring) }

// assured connects two sides, of which the active one assures the other, and shuts the association down with the last
// session.
func assured(t *testing.T, seed uint64) (active, passive *association.Association, a, b *association.Session) {
	t.Helper()
	x, y := wires(seed)
	active = association.New(assurer{x}, association.Config{Machine: sctp.Config{Active: true}, CloseUnused: true})
	passive = association.New(y, association.Config{Machine: sctp.Config{Listening: true}})
	a, b = connect(t, active, passive)
	return active, passive, a, b
}

// TestAssured: who waits until the peer has the end of our half waits, too, until it was told that we have all of its
// own, and so does the end of the association.
func TestAssured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, _, a, b := assured(t, 60)
		testrig.Must(t, a.CloseWrite())
		testrig.Must(t, b.CloseWrite())
		<-b.PeerAcked()
		synctest.Wait()
		ended := time.Now()
		<-a.PeerAcked()
		if took := time.Since(ended); took < assuring-10*time.Millisecond {
			t.Errorf("told after %v", took)
		}
		if err := a.LossError(); err != nil || a.HasUnacked() {
			t.Errorf("lost: %v, lacks something: %t", err, a.HasUnacked())
		}
		told := time.Now()
		<-active.Gone()
		wantTook(t, told, shutdownTakes)
	})
}

// TestAssuredMeanwhile: an association whose last session has ended takes another as long as it assures its peer, and
// then goes on with that.
func TestAssuredMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active, passive, a, b := assured(t, 62)
		testrig.Must(t, a.CloseWrite())
		testrig.Must(t, b.CloseWrite())
		<-b.PeerAcked()
		time.Sleep(assuring / 2)
		again, its := connect(t, active, passive)
		<-a.PeerAcked()
		time.Sleep(time.Minute)
		_, err := again.Send([][]byte{[]byte("still here")})
		testrig.Must(t, err)
		if v, err := its.Recv(); err != nil || string(v.Segment) != "still here" {
			t.Errorf("%q, %v", v.Segment, err)
		}
		active.Close("the test is over")
	})
}

// A counter is a wire that knows what its peer has not acknowledged.
type counter struct {
	*wire
	unacked int
}

func (c *counter) Unacked(uint16) int { return c.unacked }

// TestLacks: what the peer has not acknowledged is a loss, but for our Terminate alone: while the session ends, when
// its time is up, and when the association has fallen silent, or the peer has shut it down.
func TestLacks(t *testing.T) {
	for _, c := range []struct {
		unacked int
		want    bool
	}{{0, false}, {sctp.TerminateLen, false}, {sctp.TerminateLen + 1, true}} {
		for _, why := range []error{sctp.ErrTimeout, lowerlayer.ErrSilent, lowerlayer.ErrShutdown} {
			synctest.Test(t, func(t *testing.T) {
				w, other := wires(64)
				w.slow = time.Hour
				cnt := &counter{w, c.unacked}
				a, _, say := opposite(t, cnt, other, association.Config{Machine: sctp.Config{Listening: true}})
				say(sctp.Message{PPID: 17, Data: []byte{0, 0, 0, 1}})
				s, err := a.Accept(t.Context())
				testrig.Must(t, err)
				_, err = s.Accept(mpa.Answer{})
				testrig.Must(t, err)
				testrig.Must(t, s.CloseWrite())
				say(sctp.Message{PPID: 17, Data: []byte{0, 1, 0, 4}})
				if got := s.HasUnacked(); got != c.want {
					t.Errorf("%d bytes: the peer lacks something: %t", c.unacked, got)
				}
				if why != sctp.ErrTimeout {
					w.closeBoth(why)
				}
				<-s.PeerAcked()
				cnt.unacked = 0 // which is too late
				if err := s.LossError(); errors.Is(err, why) != c.want || !c.want && err != nil ||
					s.HasUnacked() != c.want {
					t.Errorf("%d bytes, %v: lost: %v, lacks %t", c.unacked, why, err, s.HasUnacked())
				}
			})
		}
	}
}

// A stuck wire takes no messages any more, from some time on. Those that it has taken are acknowledged.
type stuck struct {
	counter
	from atomic.Bool
}

func (s *stuck) Send(m sctp.Message) error {
	if s.from.Load() {
		<-s.over
		return net.ErrClosed
	}
	return s.wire.Send(m)
}

// TestLacksUntaken: what the Carrier has not taken the peer has not, although the Carrier knows of nothing that is not
// acknowledged: what waits for it, and the one that it is being given. The Terminate alone is no loss.
func TestLacksUntaken(t *testing.T) {
	for _, c := range []struct {
		name     string
		early    bool // our Accept is not taken either
		segments int
		want     bool
	}{
		{"the Terminate", false, 0, false},
		{"one segment, which is being given", false, 1, true},
		{"two segments", false, 2, true},
		{"the Accept is being given, and a segment waits", true, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, other := wires(66)
				st := &stuck{counter: counter{wire: w}}
				st.from.Store(c.early)
				a, _, say := opposite(t, st, other, association.Config{Machine: sctp.Config{Listening: true}})
				say(sctp.Message{PPID: 17, Data: []byte{0, 0, 0, 1}})
				s, err := a.Accept(t.Context())
				testrig.Must(t, err)
				_, err = s.Accept(mpa.Answer{})
				testrig.Must(t, err)
				time.Sleep(5 * time.Millisecond) // it is acknowledged
				st.from.Store(true)
				for range c.segments {
					_, err := s.Send([][]byte{make([]byte, 18)})
					testrig.Must(t, err)
				}
				testrig.Must(t, s.CloseWrite())
				say(sctp.Message{PPID: 17, Data: []byte{0, 1, 0, 4}})
				if got := s.HasUnacked(); got != c.want {
					t.Errorf("the peer lacks something: %t", got)
				}
				if got := s.Unsent(); got != c.want {
					t.Errorf("something was not sent: %t", got)
				}
				w.closeBoth(lowerlayer.ErrSilent)
				<-s.PeerAcked()
				if err := s.LossError(); errors.Is(err, lowerlayer.ErrSilent) != c.want || s.HasUnacked() != c.want {
					t.Errorf("lost: %v, lacks %t", err, s.HasUnacked())
				}
			})
		})
	}
}

// TestWithdrawnTold: who waits until the peer has what we had to say to a request does not, where the peer takes that
// back.
func TestWithdrawnTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := wires(68)
		a, _, say := opposite(t, w, other, association.Config{Machine: sctp.Config{Listening: true}})
		say(sctp.Message{PPID: 17, Data: []byte{0, 0, 0, 1}})
		s, err := a.Accept(t.Context())
		testrig.Must(t, err)
		say(sctp.Message{PPID: 17, Data: []byte{0, 1, 0, 4}})
		<-s.PeerAcked()
	})
}

// A surveyor is a wire that knows whether it has sent everything of a stream, and how long its path is.
type surveyor struct {
	*wire
	unsent map[uint16]bool
}

func (w *surveyor) Unsent(stream uint16) bool { return w.unsent[stream] }
func (w *surveyor) RoundTrip() time.Duration  { return time.Minute }

// TestTells: a session tells what the Carrier knows of its own stream and of the path; of a Carrier that does not know,
// nothing.
func TestTells(t *testing.T) {
	for _, c := range []struct {
		knows  bool
		unsent map[uint16]bool
		want   bool
		trip   time.Duration
	}{
		{true, map[uint16]bool{0: true}, true, time.Minute},
		{true, map[uint16]bool{1: true}, false, time.Minute},
		{false, nil, false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, other := wires(70)
			var over association.Carrier = w
			if c.knows {
				over = &surveyor{w, c.unsent}
			}
			a, _, say := opposite(t, over, other, association.Config{Machine: sctp.Config{Listening: true}})
			say(sctp.Message{PPID: 17, Data: []byte{0, 0, 0, 1}})
			s, err := a.Accept(t.Context())
			testrig.Must(t, err)
			_, err = s.Accept(mpa.Answer{})
			testrig.Must(t, err)
			time.Sleep(5 * time.Millisecond) // the Carrier has taken our Accept
			if s.Unsent() != c.want || s.RoundTrip() != c.trip {
				t.Errorf("%+v: something was not sent: %t; a round trip takes %v", c, s.Unsent(), s.RoundTrip())
			}
		})
	}
}
