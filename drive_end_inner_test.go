package iwarp

import (
	"errors"
	"syscall"
	"testing"
)

// TestAttendedTooLate: how a connection ends that the QP has given up is no news for it, and none for its next connection.
func TestAttendedTooLate(t *testing.T) {
	for _, err := range []error{nil, syscall.ECONNRESET} {
		qp, earlier := dialed(t, Dialer{}), dialed(t, Dialer{}).conn
		qp.attended(earlier, err)
		if state, why := qp.State(), qp.Err(); state != StateRTS || why != nil {
			t.Errorf("after %v: %v, %v", err, state, why)
		}
	}
}

// TestAttended: and of the one that it has, it is.
func TestAttended(t *testing.T) {
	qp := dialed(t, Dialer{})
	qp.attended(qp.conn, syscall.ECONNRESET)
	<-qp.Done()
	if state := qp.State(); state != StateError {
		t.Errorf("%v", state)
	}
}

// A halfLink cannot end its half.
type halfLink struct{ link }

func (halfLink) CloseWrite() error { return syscall.ENOTCONN }

// TestPartFails: a half that cannot be ended after the peer's is a connection that was lost, and no end in order.
func TestPartFails(t *testing.T) {
	qp := dialed(t, Dialer{})
	qp.mu.Lock()
	qp.link = halfLink{qp.link}
	qp.part()
	qp.pushUnlocking()
	qp.unlockReceiving()
	if state, err := qp.State(), qp.Err(); state != StateError || !errors.Is(err, syscall.ENOTCONN) {
		t.Errorf("%v, %v", state, err)
	}
}
