package iwarp

import (
	"errors"
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
)

// CloseWrite closes our half of the connection: no more work is taken, what was
// posted is carried out, then a FIN is sent. Receiving goes on until the peer
// closes its half. A Read that the peer asks for after that is an error.
func (qp *QP) CloseWrite() error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	switch {
	case qp.eng.State() != engine.RTS:
		return &OpError{Op: "close write", Err: ErrBadState}
	case !qp.conn.HasHalves():
		return &OpError{Op: "close write", Addr: qp.conn.RemoteAddr(), Err: errors.ErrUnsupported}
	}
	qp.eng.BeginHalfClose(time.Now())
	qp.push()
	return nil
}

// Close ends the connection in order: no more work is taken, what was posted is
// carried out, the peer's Reads are answered, then both halves are closed. It
// returns when that is done, or has not gone on for twice CloseTimeout, and
// releases the QP. Its error is one of a connection that was lost.
func (qp *QP) Close() error {
	qp.mu.Lock()
	connected := qp.conn != nil
	qp.eng.BeginClose(time.Now())
	qp.push()
	done := qp.done
	qp.mu.Unlock()
	if connected {
		qp.awaitEnd(done)
	}
	qp.destroy()
	if err := qp.Err(); errors.Is(err, ErrConnectionLost) {
		return &OpError{Op: "close", Addr: qp.RemoteAddr(), Err: err}
	}
	return nil
}

// awaitEnd waits for the end of the connection as long as octets move.
func (qp *QP) awaitEnd(done <-chan struct{}) {
	patience := 2 * qp.cfg.CloseTimeout
	t := time.NewTimer(patience)
	defer t.Stop()
	for moved := qp.moved(); ; {
		select {
		case <-done:
			return
		case <-t.C:
		}
		now := qp.moved()
		if now == moved {
			qp.abortAndWait(fmt.Errorf("nothing has moved for %v in the course of a close: %w: %w", patience, ErrConnectionLost, engine.ErrTimeout))
			return
		}
		moved = now
		t.Reset(patience)
	}
}

// moved returns how many octets have gone either way.
func (qp *QP) moved() uint64 {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	s := qp.eng.Stats()
	return s.SentStream + s.RecvStream
}

// Abort ends the connection at once (RST), flushes all work and releases the QP.
func (qp *QP) Abort() error {
	qp.abortAndWait(errAborted)
	qp.destroy()
	return nil
}

// abortAndWait returns when nothing refers to the consumer's memory any more.
func (qp *QP) abortAndWait(cause error) {
	if done := qp.abort(cause); done != nil {
		<-done
	}
}

// abort ends the connection. It returns what is closed when all work is flushed,
// or nil if there is nothing to wait for.
func (qp *QP) abort(cause error) <-chan struct{} {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	qp.eng.Abort(cause)
	qp.push()
	if qp.conn == nil {
		return nil
	}
	return qp.done
}

// destroy releases what the QP holds of others. Its connection has ended.
func (qp *QP) destroy() {
	qp.mu.Lock()
	if qp.destroyed {
		qp.mu.Unlock()
		return
	}
	qp.destroyed = true
	if qp.eng.State() == engine.Idle {
		qp.eng.Abort(errReleased)
		qp.settle()
	}
	if qp.conn == nil {
		qp.end()
	}
	qp.mu.Unlock()
	qp.release()
}
