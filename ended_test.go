package iwarp

import (
	"errors"
	"net"
	"testing"
)

// TestEndedError: a call on a QP that has ended says what the QP is, and why, and is each of that.
func TestEndedError(t *testing.T) {
	cause := errors.New("the cause")
	for _, c := range []struct {
		endedError
		want string
	}{
		{endedError{StateIdle, nil, true, false, false}, "the QP was closed"},
		{endedError{StateRTS, nil, false, false, false}, "the QP is being closed"},
		{endedError{StateClosing, nil, false, false, false}, "the QP is being closed"},
		{endedError{StateClosing, nil, false, true, false}, "the QP is being closed, as the peer has closed its half"},
		{endedError{StateError, cause, true, false, false}, "the QP was closed: the cause"},
		{endedError{StateRTS, cause, false, false, false}, "the QP was closed: the cause"},
		{endedError{StateClosed, cause, false, false, false},
			"the cause; after Modify(StateIdle) the QP can have another connection"},
		{endedError{StateClosing, nil, false, true, true},
			"the peer has closed its half; our direction, too, has ended, as nothing was left to be sent (QPConfig.Linger): QPConfig.HalfClose keeps it open until Close"},
		{endedError{StateClosed, cause, false, false, true},
			"the cause; our direction, too, has ended, as nothing was left to be sent (QPConfig.Linger): QPConfig.HalfClose keeps it open until Close"},
		{endedError{StateError, cause, false, false, false},
			"the QP is in state " + StateError.String() + ": the cause"},
	} {
		err := error(&c.endedError)
		if err.Error() != c.want || !errors.Is(err, net.ErrClosed) || !errors.Is(err, ErrBadState) ||
			errors.Is(err, cause) != (c.cause != nil) || errors.Is(err, ErrPeerClosed) != c.peer {
			t.Errorf("%q, want %q", err, c.want)
		}
	}
}

// TestCause: of a completion's error, QP.Cause is why the connection ended, if the error tells that.
func TestCause(t *testing.T) {
	cause := errors.New("the cause")
	late := &OpError{Op: "post send", Err: &endedError{state: StateClosed, cause: cause, lingered: true}}
	for _, err := range []error{cause, &WCError{Status: StatusFlushed, Cause: cause}, late} {
		if got := new(QP).Cause(err); got != cause {
			t.Errorf("%v: %v", err, got)
		}
	}
	if got := new(QP).Cause(&endedError{state: StateClosing, peer: true}); !errors.Is(got, ErrPeerClosed) ||
		got.Error() != ErrPeerClosed.Error() {
		t.Error(got)
	}
	if err := error(&endedError{state: StateIdle, released: true}); new(QP).Cause(err) != err {
		t.Errorf("%v: %v", err, new(QP).Cause(err))
	}
	if err := error(&WCError{Status: StatusLocalLength}); new(QP).Cause(err) != err {
		t.Errorf("%v: %v", err, new(QP).Cause(err))
	}
}

// TestNoConn: of a connection that is none nothing can be read, at once or when that has been told.
func TestNoConn(t *testing.T) {
	told := make(chan struct{})
	close(told)
	for _, c := range []noConn{{}, {told: told}} {
		if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, net.ErrClosed) {
			t.Errorf("read %d, %v", n, err)
		}
	}
}
