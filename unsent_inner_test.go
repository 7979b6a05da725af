package iwarp

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/deadline"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// sockets returns the two ends of a TCP connection.
func sockets(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	x, y, err := testrig.TCPPair(t.Context())
	testrig.Must(t, err)
	t.Cleanup(func() { _, _ = x.Close(), y.Close() })
	return x.(*net.TCPConn), y.(*net.TCPConn)
}

// on returns a QP on a socket, whose close may take an hour.
func on(t *testing.T, c net.Conn) *QP {
	t.Helper()
	rnic := NewRNIC(RNICConfig{})
	t.Cleanup(func() { _ = rnic.Close() })
	pd, err := rnic.AllocPD()
	testrig.Must(t, err)
	qp, err := pd.CreateQP(QPConfig{Nudge: -1, CloseTimeout: time.Hour, CloseLimit: -1, HalfClose: true})
	testrig.Must(t, err)
	t.Cleanup(func() { _ = qp.Abort() })
	testrig.Must(t, qp.ModifyRTS(c, mpa.Negotiated{Role: mpa.RoleInitiator, DDPVersion: 1, RDMAPVersion: 1, SendFirst: true, CRC: true, IRD: 1, ORD: 1}, nil))
	return qp
}

// telling is on for a system that tells what TCP has sent.
func telling(t *testing.T, c net.Conn) *QP {
	t.Helper()
	qp := on(t, c)
	if _, ok := qp.conn.Path(); !ok {
		t.Skip("the system does not tell")
	}
	return qp
}

// sendAll sends so many octets, all of which TCP takes.
func (qp *QP) sendAll(t *testing.T, n int) {
	t.Helper()
	mr, err := qp.PD().Register(make([]byte, n), 0)
	testrig.Must(t, err)
	testrig.Must(t, qp.PostSend(&SendWR{Op: OpSend, SGL: []SGE{mr.Slice(0, n)}}))
	_, err = qp.SendCQ().Next(testrig.Within(t))
	testrig.Must(t, err)
}

// closeByHand begins a close with a round trip that is over at once. The QP's timer is the test's: it calls onTimer.
func (qp *QP) closeByHand() {
	qp.mu.Lock()
	defer qp.unlock()
	qp.timer = deadline.Timer[QP]{}
	qp.timer.Set(time.Now().Add(time.Hour), qp, func(*QP) {}) // and so at whatever it is set to
	qp.eng.BeginClose(time.Now(), 1)
	qp.settle()
}

// wantHeld is what becomes of the FIN at a deadline.
func (qp *QP) wantHeld(t *testing.T, held bool) {
	t.Helper()
	if qp.onTimer(); qp.quiet().IsZero() == held {
		t.Errorf("the FIN is held back: %t", !held)
	}
}

// awaitTCP waits for what TCP says of the QP's octets, and asks it past the QP.
func (qp *QP) awaitTCP(t *testing.T, unsent bool) {
	t.Helper()
	for ctx := testrig.Within(t); ctx.Err() == nil; time.Sleep(time.Millisecond) {
		qp.mu.Lock()
		p, _ := qp.conn.Path()
		qp.mu.Unlock()
		if p.Unsent == unsent {
			return
		}
	}
	t.Fatalf("never unsent: %t", unsent)
}

// TestUnsent: what TCP could not send yet holds a FIN back, however often it is asked for, and then for a round trip
// more: it may have been sent just now, and the peer's next Read waits for it.
func TestUnsent(t *testing.T) {
	a, b := sockets(t)
	testrig.Must(t, b.SetReadBuffer(16<<10))
	qp := telling(t, a)
	qp.sendAll(t, 512<<10) // more than the peer's TCP takes
	qp.awaitTCP(t, true)
	qp.closeByHand()
	for range 3 {
		qp.wantHeld(t, true)
	}
	go func() { _, _ = io.Copy(io.Discard, b) }()
	qp.awaitTCP(t, false)
	qp.wantHeld(t, true)
	qp.wantHeld(t, false)
}

// TestSentBefore: a FIN is held back for one round trip where TCP has sent everything by the beginning of that.
func TestSentBefore(t *testing.T) {
	a, _ := sockets(t)
	qp := telling(t, a)
	qp.sendAll(t, 1)
	qp.awaitTCP(t, false)
	qp.closeByHand()
	qp.wantHeld(t, false)
}

// TestReadBeforeFIN: a Read that has come is answered before the FIN, although the goroutine that receives has yet to
// run when the time of the FIN has come.
//
// Proves D30.
func TestReadBeforeFIN(t *testing.T) {
	a, b := sockets(t)
	release := withhold(t, a)
	peer, qp := on(t, b), telling(t, a)
	defer release()
	from, err := qp.PD().Register([]byte("octets"), RemoteRead)
	testrig.Must(t, err)
	to, err := peer.PD().Register(make([]byte, 6), LocalWrite)
	testrig.Must(t, err)
	testrig.Must(t, peer.PostSend(&SendWR{Op: OpRead, SGL: []SGE{to.Slice(0, 6)}, Remote: from.Remote(0)}))
	for ctx := testrig.Within(t); !tcp.Waiting(a); time.Sleep(time.Millisecond) {
		testrig.Must(t, ctx.Err())
	}
	qp.closeByHand()
	qp.onTimer()
	wc, err := peer.SendCQ().Next(testrig.Within(t))
	if err != nil || wc.Err() != nil || string(to.Bytes()) != "octets" {
		t.Errorf("%v, %v: %q", err, wc.Err(), to.Bytes())
	}
}

// halfClosed has the peer send its FIN, and waits until the QP has taken it in.
func (qp *QP) halfClosed(t *testing.T, peer *net.TCPConn) {
	t.Helper()
	testrig.Must(t, peer.CloseWrite())
	for ctx := testrig.Within(t); ; {
		ev, err := qp.rnic.NextEvent(ctx)
		testrig.Must(t, err)
		if ev.Kind == EventHalfClosed {
			return
		}
	}
}

// closesUnread begins to close after the peer's FIN, when TCP has not sent everything yet. It returns the peer's end.
func closesUnread(t *testing.T) (qp *QP, peer *net.TCPConn, done <-chan struct{}) {
	t.Helper()
	a, b := sockets(t)
	testrig.Must(t, b.SetReadBuffer(16<<10))
	qp = telling(t, a)
	qp.halfClosed(t, b)
	qp.sendAll(t, 512<<10) // more than the peer's TCP takes
	qp.awaitTCP(t, true)
	return qp, b, qp.beginClose()
}

// TestAcknowledgedLate: the end comes when the peer has it all.
func TestAcknowledgedLate(t *testing.T) {
	qp, b, done := closesUnread(t)
	select {
	case <-done:
		t.Error("the end comes before the peer has everything")
	default:
	}
	go func() { _, _ = io.Copy(io.Discard, b) }()
	select {
	case <-done:
	case <-testrig.Within(t).Done():
		t.Fatal("no end")
	}
	if err := qp.Err(); !errors.Is(err, ErrPeerClosed) {
		t.Errorf("ended with %v", err)
	}
}

// TestAcknowledgedSlowly: a peer that has acknowledged something by the end of its time has as much time again.
func TestAcknowledgedSlowly(t *testing.T) {
	qp, b, done := closesUnread(t)
	by, owed := qp.closesBy(), qp.owed(t)
	_, err := io.ReadFull(b, make([]byte, 256<<10))
	testrig.Must(t, err)
	for ctx := testrig.Within(t); qp.owed(t) == owed; time.Sleep(time.Millisecond) {
		testrig.Must(t, ctx.Err())
	}
	if qp.onTimer(); !qp.closesBy().After(by) {
		t.Error("no more time for a peer that has acknowledged something")
	}
	select {
	case <-done:
		t.Errorf("ended with %v", qp.Err())
	default:
	}
}

// TestAcknowledgedNoMore: a peer that acknowledges nothing more after its FIN has no more time at a deadline than it had before, whichever
// end was the first to send its FIN.
func TestAcknowledgedNoMore(t *testing.T) {
	for _, first := range []bool{true, false} {
		for try := 0; !acknowledgedNoMore(t, first); try++ {
			if try == 20 {
				t.Fatal("the peer acknowledges something each time")
			}
		}
	}
}

// acknowledgedNoMore reports whether the peer has acknowledged nothing in the time of the test, as it is to.
func acknowledgedNoMore(t *testing.T, first bool) bool {
	a, b := sockets(t)
	testrig.Must(t, b.SetReadBuffer(16<<10))
	qp := telling(t, a)
	qp.sendAll(t, 512<<10) // more than the peer's TCP takes
	qp.awaitTCP(t, true)
	if first {
		testrig.Must(t, qp.CloseWrite())
	}
	owed := qp.owed(t)
	qp.halfClosed(t, b)
	if !first {
		qp.beginClose()
		owed++ // for the FIN
	}
	by := qp.closesBy()
	if qp.onTimer(); qp.owed(t) != owed {
		return false
	}
	if !qp.closesBy().Equal(by) {
		t.Errorf("more time, and our FIN the first: %t", first)
	}
	return true
}

// closesBy returns when a close is given up.
func (qp *QP) closesBy() time.Time {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.eng.Deadline()
}

// owed asks TCP what the peer has not acknowledged, past the QP.
func (qp *QP) owed(t *testing.T) int {
	t.Helper()
	owed, err := qp.conn.Owes()
	testrig.Must(t, err)
	return owed
}
