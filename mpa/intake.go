package mpa

import (
	"fmt"
	"time"
)

// intake gathers the one startup frame that a machine waits for, in a buffer of
// its own that holds the largest legal frame. It is the part that initiator and
// responder have in common.
//
// RFC 5044, Section 7.1.2: "the amount of Private Data MUST not exceed the
// PD_Length or the application buffer." It takes no octet beyond the frame, and
// judges each part as soon as it is whole, and not before, so that the outcome
// does not depend on how the octets were split. [Q13]
type intake struct {
	role     Role
	buf      [StartupHeaderLen + MaxPrivateData]byte
	have     int
	want     int // octets after which the next part is whole
	dialect  Dialect
	deadline time.Time
	limit    time.Duration
	err      *StartupError // sticky
}

// start arms the timeout for the frame.
//
// RFC 5044, Section 7.1.2: "MPA implementations SHOULD implement a reasonable
// timeout while waiting for the entire set of startup frames". [Q12]
func (in *intake) start(now time.Time, limit time.Duration) {
	in.want, in.limit = KeyLen, limit
	if limit > 0 {
		in.deadline = now.Add(limit)
	}
}

func (in *intake) started() bool { return in.want > 0 }

// whole reports whether the frame has arrived.
func (in *intake) whole() bool { return in.dialect != 0 && in.have == in.want }

func (in *intake) frame() StartupFrame { return StartupFrame(in.buf[:in.have:in.have]) }

// take takes octets and returns how many; whole says whether that was all.
func (in *intake) take(b []byte) (n int, err error) {
	for {
		k := copy(in.buf[in.have:in.want], b[n:])
		n, in.have = n+k, in.have+k
		if in.have < in.want {
			return n, nil
		}
		if in.whole() {
			in.deadline = time.Time{}
			return n, nil
		}
		if in.err = in.judge(); in.err != nil {
			in.deadline = time.Time{}
			return n, in.err
		}
	}
}

// judge judges the part that has just become whole, and sets what to wait for next.
func (in *intake) judge() *StartupError {
	if in.have == KeyLen {
		if got := string(in.buf[:KeyLen]); got != in.role.peerKey() {
			return keyError(in.role, got) // [Q02]
		}
		in.want = StartupHeaderLen
		return nil
	}
	return in.judgeHeader(in.frame())
}

func (in *intake) judgeHeader(f StartupFrame) *StartupError {
	// RFC 5044, Section 7.1.1: "MPA receivers compliant with this version of the
	// specification MUST check this field." [Q07]
	d, err := dialectOf(f.Rev(), f.S())
	if err != nil {
		return in.fail(FailureRevision, err)
	}
	// "if the length of the Private Data field exceeds 512 octets, the receiver MUST
	// close the connection and report an error locally." [Q08]
	if f.PDLength() > MaxPrivateData {
		return in.fail(FailurePrivateData, &Error{
			Code: CodeStartupFrame, Offset: startupPDLength, Field: "PD_Length",
			Reason: fmt.Sprintf("%d octets, and at most %d are allowed", f.PDLength(), MaxPrivateData),
			Hint:   "the peer's private data is too long: send the rest as messages",
		})
	}
	// RFC 6581, Section 6: "if the 'S' flag is set, Private Data MUST begin with
	// enhanced RDMA connection establishment data". [E01]
	if d.row().enhanced && f.PDLength() < EnhancedLen {
		return in.fail(FailurePrivateData, shortEnhanced(int(f.PDLength())))
	}
	in.dialect, in.want = d, StartupHeaderLen+int(f.PDLength())
	return nil
}

func (in *intake) fail(kind Failure, err *Error) *StartupError {
	return &StartupError{Role: in.role, Failure: kind, Err: err}
}

// timedOut returns the error of a deadline that has passed, and nil before that.
func (in *intake) timedOut(now time.Time, hint string) error {
	if in.deadline.IsZero() || now.Before(in.deadline) {
		return nil
	}
	in.deadline = time.Time{}
	in.err = in.fail(FailureTimeout, &Error{
		Code: CodeConnectionLost, Offset: uint64(in.have),
		Reason: fmt.Sprintf("no %s within %v: %s", in.awaited(), in.limit, in.progress()),
		Hint:   hint,
	})
	return in.err
}

// cut returns the error of a connection that ended before the frame was whole.
func (in *intake) cut(cause error, hint string) *StartupError {
	return in.lost(cause, fmt.Sprintf("the peer closed the connection before its %s was whole: %s", in.awaited(), in.progress()), hint)
}

// lost returns the error of a connection that ended.
//
// RFC 5044, Section 8: code 1 "includes lost by timeout, too many retries, RST
// received, or FIN received." [Q16]
func (in *intake) lost(cause error, reason, hint string) *StartupError {
	in.deadline = time.Time{}
	in.err = in.fail(FailureClosed, &Error{
		Code: CodeConnectionLost, Offset: uint64(in.have), Reason: reason, Hint: hint, Err: cause,
	})
	return in.err
}

func (in *intake) awaited() string {
	if in.role == RoleInitiator {
		return "MPA Reply Frame"
	}
	return "MPA Request Frame"
}

// progress says how far the frame had come.
func (in *intake) progress() string {
	switch {
	case in.have == 0:
		return "nothing arrived"
	case in.have < KeyLen:
		return fmt.Sprintf("%d octets of a key arrived: %s", in.have, describeKey(string(in.buf[:in.have])))
	case in.have < StartupHeaderLen:
		return fmt.Sprintf("%d of %d octets of its header arrived", in.have, StartupHeaderLen)
	}
	return fmt.Sprintf("PD_Length is %d and %d octets of Private Data arrived", in.want-StartupHeaderLen, in.have-StartupHeaderLen)
}
