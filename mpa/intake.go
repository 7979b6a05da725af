package mpa

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
)

// intake gathers the one frame that a machine waits for, in a buffer of its own. It
// is the part that initiator and responder have in common; judge.go has what it
// asks of a frame.
//
// RFC 5044, section 7.1.2: "the amount of Private Data MUST not exceed the
// PD_Length or the application buffer." It takes no byte beyond the frame, and
// judges each part as soon as it is whole, and not before, so that the outcome
// does not depend on how the bytes were split. [Q13]
type intake struct {
	role  Role
	await awaited
	// kind is our RNIC's, and served says which dialects a Request or Reply may
	// have.
	kind   Kind
	served func(Dialect) bool
	// messages: a private data message may stand in place of a Request.
	messages bool
	// asked is the revision of the Request that a Reply answers, and settled is
	// whether CRCs are used, which an Rtr frame repeats.
	asked   uint8
	settled bool

	buf      []byte
	part     part
	want     int // bytes after which the part is whole
	dialect  Dialect
	unserved bool // the dialect is not known: a Reply of another revision rejects
	arrived  arrival
	refusal  *StartupError // to be reported when the frame is whole
	since    time.Time     // when the wait began
	deadline time.Time
	limit    time.Duration
	err      *StartupError // sticky
}

// part is a part of a frame.
type part uint8

const (
	partNone   part = iota
	partLength      // of a private data message
	partKey
	partHeader
	partData
)

// usualFrame is how many bytes most frames have no more than: those without private data.
const usualFrame = StartupHeaderLen + EnhancedLen

// expectFrame makes ready for a frame. What was taken before stays with whoever has it.
func (in *intake) expectFrame(a awaited) {
	in.await, in.arrived, in.buf = a, arrivedNothing, make([]byte, 0, usualFrame)
	in.part, in.want = partKey, KeyLen
	if a == awaitMessage || a == awaitRequest && in.messages {
		in.part, in.want = partLength, messageLenLen
	}
}

// arm sets the timeout for what is awaited.
//
// RFC 5044, section 7.1.2: "MPA implementations SHOULD implement a reasonable
// timeout while waiting for the entire set of startup frames". [Q12]
func (in *intake) arm(now time.Time, limit time.Duration) {
	in.since, in.limit = now, limit
	if limit > 0 {
		in.deadline = now.Add(limit)
	}
}

func (in *intake) started() bool { return in.part != partNone }

// whole reports whether the frame has arrived.
func (in *intake) whole() bool { return in.arrived != arrivedNothing && len(in.buf) == in.want }

// pending reports whether more bytes are awaited.
func (in *intake) pending() bool { return in.started() && in.err == nil && !in.whole() }

func (in *intake) missing() int { return in.want - len(in.buf) }

func (in *intake) frame() StartupFrame { return StartupFrame(in.buf[:len(in.buf):len(in.buf)]) }

// consume consumes bytes and returns how many.
func (in *intake) consume(b []byte) (n int, err error) {
	for {
		k := min(in.missing(), len(b)-n)
		in.buf = append(in.buf, b[n:n+k]...)
		if n += k; in.missing() > 0 {
			return n, nil
		}
		if !in.whole() {
			in.err = in.judge()
		} else if in.refusal != nil {
			in.err = in.refusal
		} else {
			return n, nil
		}
		if in.err != nil {
			in.deadline = time.Time{}
			return n, in.err
		}
	}
}

// judge judges the part that has just become whole, and sets what to wait for next.
func (in *intake) judge() *StartupError {
	switch in.part {
	case partLength:
		return in.judgeLength(int(binary.BigEndian.Uint16(in.buf)))
	case partKey:
		return in.judgeKey(string(in.buf))
	}
	return in.judgeHeader(in.frame())
}

// lastPart says how many bytes of Private Data are left, with which the frame will
// be whole.
func (in *intake) lastPart(a arrival, n int) {
	in.arrived, in.part, in.want = a, partData, len(in.buf)+n
}

func (in *intake) fail(kind Failure, err *Error) *StartupError {
	return &StartupError{Role: in.role, Failure: kind, Err: err}
}

// timedOut returns the error of a deadline that has passed, and nil before that.
func (in *intake) timedOut(now time.Time, hint string) error {
	if in.deadline.IsZero() || now.Before(in.deadline) {
		return nil
	}
	return in.timeoutError(in.limit, nil, hint)
}

// cancelError returns the error of a wait that the caller has ended, for a cause of its own.
func (in *intake) cancelError(now time.Time, cause error, hint string) error {
	if in.err != nil {
		return in.err
	}
	return in.timeoutError(now.Sub(in.since), cause, hint)
}

// timeoutError returns the error of a wait that was in vain.
func (in *intake) timeoutError(waited time.Duration, cause error, hint string) error {
	in.deadline = time.Time{}
	in.err = in.fail(FailureTimeout, &Error{
		Code: CodeConnectionLost, Offset: uint64(len(in.buf)),
		Reason: fmt.Sprintf("no %s within %s: %s", in.await, wording.Elapsed(waited), in.progress()),
		Hint:   hint, Err: cause,
	})
	return in.err
}

// truncatedError returns the error of a connection that ended before the frame was whole.
func (in *intake) truncatedError(cause error, hint string) *StartupError {
	return in.connectionError(cause, fmt.Sprintf("the peer closed the connection before its %s was whole: %s",
		in.await, in.progress()), hint)
}

// connectionError returns the error of a connection that ended.
//
// RFC 5044, section 8: code 1 "includes lost by timeout, too many retries, RST
// received, or FIN received." [Q16]
func (in *intake) connectionError(cause error, reason, hint string) *StartupError {
	in.deadline = time.Time{}
	in.err = in.fail(FailureClosed, &Error{
		Code: CodeConnectionLost, Offset: uint64(len(in.buf)), Reason: reason, Hint: hint, Err: cause,
	})
	return in.err
}

// progress says how far the frame had come.
func (in *intake) progress() string {
	have := len(in.buf)
	switch {
	case have == 0:
		return "nothing arrived"
	case in.part == partLength:
		return "one byte of its length arrived"
	case in.part == partKey:
		return fmt.Sprintf("%s of a key arrived: %s", wording.Bytes(have), describeKey(string(in.buf)))
	case in.part == partHeader:
		return fmt.Sprintf("%d of %d bytes of its header arrived", have, StartupHeaderLen)
	}
	header, field := StartupHeaderLen, "PD_Length"
	if in.arrived == arrivedMessage {
		header, field = messageLenLen, "its length"
	}
	return fmt.Sprintf("%s is %d and %s of Private Data arrived", field, in.want-header, wording.Bytes(have-header))
}

// Want returns how many bytes may be read next without reading one beyond the
// frame that the machine waits for: the bytes that are missing of key and header, or of the
// Private Data. It is 0 when the machine waits for none, as after an error. A
// reader that asks the socket for no more than that leaves what follows the startup where
// the first FPDU, or the consumer after a rejection, will find it.
func (i *Initiator) Want() int { return i.in.wanted(i.done) }

// Want returns how many bytes may be read next, as with [Initiator.Want]: none
// between a Request and its answer.
func (r *Responder) Want() int { return r.in.wanted(r.done) }

func (in *intake) wanted(done bool) int {
	if done || !in.pending() {
		return 0
	}
	if in.part == partKey && in.hasHeader() {
		return in.missing() + StartupHeaderLen - KeyLen
	}
	return in.missing()
}

// hasHeader reports whether every frame that may come has more than its key: a Start Key has no more.
func (in *intake) hasHeader() bool {
	return in.await != awaitStartKey && (in.await != awaitRequest || !in.served(DialectStartKey))
}
