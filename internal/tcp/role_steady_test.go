package tcp

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestTakeSteadily has consumers come so often that the bell stays disarmed between them. When
// none comes any more, bytes reach the receiving goroutine all the same, and so does what the
// consumers left.
func TestTakeSteadily(t *testing.T) {
	s := standBack(t)
	for range 3 {
		s.acquire()
		leads := s.steadily() + 1
		s.write("x")
		s.wantRead("x")
		s.c.ReleaseRole(false, false)
		s.write("y")
		s.wantBack(leads)
		s.wantTimed(false)
		recv(t, s.c, 1, 0)
		s.again()
	}
}

// steadily has consumers leave and come back until the bell's timer runs when they do, and returns how often. On a busy
// machine it may have rung meanwhile.
func (s *standby) steadily() (leads int) {
	s.t.Helper()
	for ctx := testrig.Within(s.t); ; testrig.Must(s.t, ctx.Err()) {
		for range 2 * steady {
			s.c.ReleaseRole(false, false)
			s.acquire()
			leads++
		}
		s.c.role.mu.Lock()
		timed := s.c.role.timed
		s.c.role.mu.Unlock()
		if timed {
			return leads
		}
	}
}

// TestEndOfSteady has consumers come so often that the bell is not armed when the last of them leaves, and the peer end
// then: nobody waits for the timer, which does not ring here.
func TestEndOfSteady(t *testing.T) {
	for name, end := range map[string]func(*Conn) error{"FIN": (*Conn).CloseWrite, "RST": (*Conn).Reset} {
		t.Run(name, func(t *testing.T) {
			s := steadied(t)
			s.stopTimer()
			s.c.ReleaseRole(false, false)
			s.wantArmed(false)
			testrig.Must(t, end(s.peer))
			s.wantBack(2*steady + 1)
		})
	}
}

// steadied is a connection whose consumers have come so often that the bell stays disarmed when one leaves; one has the
// role.
func steadied(t *testing.T) *standby {
	t.Helper()
	s := standBack(t)
	s.acquire()
	for range 2 * steady {
		s.c.ReleaseRole(false, false)
		s.acquire()
	}
	return s
}

// stopTimer has the bell's timer not ring, whoever thinks that it runs.
func (s *standby) stopTimer() {
	s.t.Helper()
	r := &s.c.role
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timed, r.before = r.bell.ringAfter(0), r.leads; !r.timed {
		s.t.Fatal("there is no timer")
	}
}
