package iwarp

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/mpa"
)

// The driver of a QP: it carries octets between the engine and the socket. One
// goroutine receives as long as there is a connection. Who posts work sends it,
// as far as the socket takes it without waiting; only if it does not, a second
// goroutine runs until all that is queued has gone. The receiving goroutine never
// waits for a sender.

var gathers = sync.Pool{New: func() any { return engine.NewGather() }}

// The EMSS is asked for again after refreshFirst octets, as TCP raises it when it
// has come to know the path, and then at growing distances up to refreshEvery.
const (
	refreshFirst = 64 << 10
	refreshEvery = 8 << 20
)

// claim reserves the QP, in StateIdle, for one attempt to connect it.
func (qp *QP) claim() error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	err := qp.connectable()
	qp.connecting = qp.connecting || err == nil
	return err
}

func (qp *QP) connectable() error {
	switch s := qp.eng.State(); {
	case qp.destroyed:
		return ErrClosed
	case s != engine.Idle:
		return fmt.Errorf("in state %v: %w", s, ErrBadState)
	case qp.connecting:
		return fmt.Errorf("the QP is being connected already: %w", ErrBadState)
	}
	return nil
}

// unclaim ends the attempt, whatever came of it.
func (qp *QP) unclaim() {
	qp.mu.Lock()
	qp.connecting = false
	qp.mu.Unlock()
}

// stream returns the attributes for the next connection.
func (qp *QP) stream() StreamAttr {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.attr
}

// start puts the QP into RTS on a connection whose startup phase is over.
func (qp *QP) start(c *tcp.Conn, n Negotiated, a StreamAttr) error {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.destroyed {
		return ErrClosed
	}
	if err := a.checkNegotiated(qp.rnic.kind, &n.Negotiated); err != nil {
		return err
	}
	qp.measure(c, &n)
	p := engine.Params{Negotiated: n.Negotiated, MULPDU: n.MULPDU, ORD: int(n.ORD), IRD: int(n.IRD)}
	if err := qp.eng.Connect(p); err != nil {
		return err
	}
	qp.conn, qp.neg, qp.closedLLP, qp.attr = c, n, false, a
	qp.logStart(&n)
	select {
	case <-qp.done: // of an earlier connection
		qp.done = make(chan struct{})
	default:
	}
	go qp.receive(c)
	qp.push()
	return nil
}

func (qp *QP) measure(c *tcp.Conn, n *Negotiated) {
	if n.EMSS = c.EMSS(); n.EMSS <= 0 {
		n.EMSS = mpa.DefaultEMSS
	}
	n.MULPDU = mpa.MULPDU(n.EMSS, n.MarkersSend)
	qp.refresh = refreshFirst
}

// receive is the receiving goroutine.
func (qp *QP) receive(c *tcp.Conn) {
	for {
		err := c.Recv()
		more := qp.received(c, err)
		if !more {
			c.Release()
		}
		c.Done()
		if !more {
			return
		}
		// Whoever was woken by what came goes first: to find the socket empty and
		// wait for it takes a system call.
		runtime.Gosched()
	}
}

// tryReceive takes in what has come, if anything has and nobody else is at it: a
// consumer that polls drives its own connection, and is spared the way through
// another goroutine.
func (qp *QP) tryReceive() {
	qp.mu.Lock()
	c := qp.conn
	qp.mu.Unlock()
	if c == nil {
		return
	}
	if ok, err := c.TryRecv(); ok {
		qp.received(c, err)
		c.Done()
	}
}

// received takes in what Recv brought and reports whether to go on.
func (qp *QP) received(c *tcp.Conn, err error) bool {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.conn != c || qp.closedLLP { // of an earlier connection, or at its end
		return false
	}
	now := time.Now()
	b := c.Unread()
	n := 0
	if err == nil {
		n = qp.eng.Input(now, b)
		c.Consume(n, qp.eng.Need())
	}
	switch {
	case errors.Is(err, io.EOF):
		qp.eng.PeerClosed(now, len(b))
	case err != nil:
		qp.eng.Failed(now, err)
	}
	qp.push()
	return err == nil && !qp.closedLLP
}

// push sends what the engine has to send, as far as that needs no waiting, and
// hands out whatever happened. The caller holds qp.mu, which is released while
// the socket is written to.
func (qp *QP) push() {
	for !qp.writing && qp.conn != nil && qp.eng.Pending() && qp.sendSome() {
	}
	qp.settle()
}

// sendSome builds and sends one gathered write. It reports false if there was
// nothing to send after all, or if the socket would not take it all: then a
// goroutine has taken over.
func (qp *QP) sendSome() bool {
	if qp.gather == nil {
		qp.gather = gathers.Get().(*engine.Gather)
	}
	v := qp.eng.Output(time.Now(), qp.gather)
	if len(v) == 0 {
		qp.putGather()
		return false
	}
	c := qp.conn
	qp.writing = true
	qp.mu.Unlock()
	n, wait, err := c.TrySend(v)
	qp.mu.Lock()
	qp.sent(n, err)
	if err == nil && wait {
		go qp.sendRest(c)
		return false
	}
	qp.writing = false
	qp.putGather()
	return true
}

// sendRest is the sending goroutine: it waits for the socket and ends when
// nothing is left to send.
func (qp *QP) sendRest(c *tcp.Conn) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	for {
		v := qp.eng.Output(time.Now(), qp.gather)
		if len(v) == 0 {
			break
		}
		qp.mu.Unlock()
		n, err := c.Send(v)
		qp.mu.Lock()
		qp.sent(n, err)
		qp.settle()
	}
	qp.putGather()
	qp.writing = false
	qp.push()
}

// sent tells the engine how a write went.
func (qp *QP) sent(n int, err error) {
	now := time.Now()
	if err != nil {
		qp.eng.Abandon(now, qp.gather)
		qp.eng.Failed(now, err)
		return
	}
	qp.eng.Sent(now, qp.gather, n)
	if s := qp.eng.StreamSent(); s >= qp.refresh {
		qp.refresh = s + min(s, refreshEvery)
		if emss := qp.conn.EMSS(); emss > 0 {
			qp.eng.SetMULPDU(mpa.MULPDU(emss, qp.neg.MarkersSend))
		}
	}
}

func (qp *QP) putGather() {
	if qp.gather != nil {
		gathers.Put(qp.gather)
		qp.gather = nil
	}
}

// settle hands out completions and notices and does what the engine wants done
// to the connection and the timer.
func (qp *QP) settle() {
	qp.deliver()
	for how := qp.eng.LLP(); how != engine.Keep; how = qp.eng.LLP() {
		qp.endLLP(how)
		qp.deliver()
	}
	if qp.closedLLP && !qp.eng.InFlight() {
		qp.end()
	}
	qp.setTimer(qp.eng.Deadline())
}

func (qp *QP) endLLP(how engine.LLP) {
	switch how {
	case engine.Finish:
		qp.sendFIN()
	case engine.Drop:
		_ = qp.conn.Close()
		qp.closedLLP = true
	case engine.Reset:
		_ = qp.conn.Reset()
		qp.closedLLP = true
	}
}

// sendFIN closes our half. Where a connection has no halves all of it is closed:
// nothing that the peer might still send would be of use.
func (qp *QP) sendFIN() {
	if qp.conn.HasHalves() {
		_ = qp.conn.CloseWrite()
		return
	}
	qp.eng.PeerClosed(time.Now(), 0)
}

// end closes Done: the socket, if there was one, is closed and all work flushed.
func (qp *QP) end() {
	select {
	case <-qp.done:
	default:
		close(qp.done)
		if qp.conn != nil {
			qp.logEnd()
		}
	}
}

// setTimer has onTimer called at the engine's deadline.
func (qp *QP) setTimer(at time.Time) {
	if at.Equal(qp.timerAt) {
		return
	}
	qp.timerAt = at
	switch {
	case at.IsZero():
		qp.timer.Stop()
	case qp.timer == nil:
		qp.timer = time.AfterFunc(time.Until(at), qp.onTimer)
	default:
		qp.timer.Reset(time.Until(at))
	}
}

func (qp *QP) onTimer() {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.timerAt.IsZero() {
		return
	}
	qp.timerAt = time.Time{}
	qp.eng.HandleTimeout(time.Now())
	qp.push()
}

// deliver hands completions to the CQs, or to the one-call form that waits for
// one, and notices to the RNIC.
func (qp *QP) deliver() {
	done, notices := qp.eng.Drain()
	for i := range done {
		qp.complete(&done[i])
		done[i] = engine.Completion{}
	}
	for i := range notices {
		qp.notice(&notices[i])
		notices[i] = engine.Notice{}
	}
}

func (qp *QP) complete(c *engine.Completion) {
	wc := WC{ID: c.ID, Status: Status(c.Status), Op: Op(c.Op), Length: int(c.Length), Invalidated: c.Invalidated, Solicited: c.Solicited, QP: qp}
	switch {
	case c.Cookie != nil:
		c.Cookie.(*call).done <- wc
	case wc.Op != OpRecv:
		qp.unpolledSends.Add(1)
		qp.sendCQ.push(&wc)
	default:
		if qp.cfg.SRQ == nil { // an SRQ has counted it already
			qp.unpolledRecvs.Add(1)
		}
		qp.recvCQ.push(&wc)
	}
}

var noticeEvents = [...]EventKind{
	engine.NoticeTerminateReceived: EventTerminateReceived,
	engine.NoticeTerminateSent:     EventTerminateSent,
	engine.NoticeConnectionLost:    EventConnectionLost,
	engine.NoticeBadClose:          EventBadClose,
	engine.NoticeHalfClosed:        EventHalfClosed,
	engine.NoticeCloseComplete:     EventCloseComplete,
	engine.NoticeNudge:             0,
}

func (qp *QP) notice(n *engine.Notice) {
	qp.logNotice(n)
	if k := noticeEvents[n.Kind]; k != 0 {
		qp.rnic.event(Event{Kind: k, QP: qp, Err: publicError(n.Err)})
	}
}
