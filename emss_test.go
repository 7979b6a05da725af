package iwarp

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa/layout"
)

// loopback returns the Initiator's QP of a connection over TCP.
func loopback(t *testing.T) *QP {
	t.Helper()
	return dialed(t, Dialer{})
}

// dialed is loopback with a Dialer of the test's.
func dialed(t *testing.T, d Dialer) *QP {
	t.Helper()
	ctx := testrig.Within(t)
	ln, err := Listen(ctx, "tcp", "127.0.0.1:0", ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close(); ln.RNIC().Close() })
	go func() {
		if req, err := ln.Accept(ctx); err == nil {
			_, _ = req.Accept(ctx, AcceptConfig{})
		}
	}()
	qp, err := d.Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { qp.Abort() })
	awaitRTR(qp)
	return qp
}

// awaitRTR waits until the RTR indication has gone, which the receiving goroutine sends.
func awaitRTR(qp *QP) {
	for {
		qp.mu.Lock()
		sent := !qp.eng.Pending() && !qp.writing
		qp.mu.Unlock()
		if sent {
			return
		}
		runtime.Gosched()
	}
}

// Proves S03: the EMSS is what TCP says, and the MULPDU follows from it.
func TestEMSSOfTCP(t *testing.T) {
	qp := loopback(t)
	n := qp.Negotiated()
	emss := emssOf(qp.conn)
	if emss == 0 {
		t.Skip("this system does not tell the EMSS")
	}
	if n.EMSS <= 0 || n.MULPDU != layout.MULPDU(n.EMSS, false) {
		t.Errorf("EMSS %d, MULPDU %d", n.EMSS, n.MULPDU)
	}
	if n.EMSS < layout.DefaultEMSS || emss < n.EMSS {
		t.Errorf("EMSS on loopback %d, then %d", n.EMSS, emss)
	}
}

// Proves S03: a change of the EMSS takes effect while the connection is up. The
// QP is made to believe that it was small before.
func TestEMSSFollowed(t *testing.T) {
	qp := loopback(t)
	if emssOf(qp.conn) == 0 {
		t.Skip("this system does not tell the EMSS")
	}
	qp.mu.Lock()
	qp.eng.SetMULPDU(layout.MinMULPDU, 0, 0)
	qp.segments.emss, qp.segments.refresh = 0, 0
	qp.mu.Unlock()
	if err := qp.PostSend(&SendWR{Op: OpWrite}); err != nil {
		t.Fatal(err)
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if got, want := qp.eng.Negotiated().MULPDU, layout.MULPDU(emssOf(qp.conn), false); got != want {
		t.Errorf("MULPDU %d, want %d", got, want)
	}
}

// Proves S03: where TCP does not report it, 1460 octets are assumed.
func TestEMSSUnknown(t *testing.T) {
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	s := (&QP{cfg: QPConfig{FPDUs: FPDUsAligned}}).measured(tcp.New(a), ends{})
	if s.fpdus != FPDUsUnaligned {
		t.Errorf("FPDUs are %v where TCP does not end its records", s.fpdus)
	}
	if n := overPipe(t).Negotiated(); s.emss != 1460 || n.EMSS != 1460 || n.MULPDU != 1454 {
		t.Errorf("EMSS %d and %d, MULPDU %d", s.emss, n.EMSS, n.MULPDU)
	}

	up := loopback(t) // and where TCP does not report it any more, it stays what it was
	up.mu.Lock()
	defer up.mu.Unlock()
	up.followEMSSUnlocking(time.Now().Add(time.Hour), 0)
	before, known := up.segments.emss, up.conn
	up.conn = tcp.New(a)
	up.followEMSSUnlocking(time.Now().Add(2*time.Hour), 0)
	if up.conn = known; up.segments.emss != before {
		t.Errorf("EMSS %d, later %d", before, up.segments.emss)
	}
}

// overPipe returns the Initiator of a connection without TCP.
func overPipe(t *testing.T) *QP {
	t.Helper()
	a, b := testrig.Pipe("ini", "res")
	go func() {
		if req, err := Respond(t.Context(), b, nil, ListenConfig{}); err == nil {
			_, _ = req.Accept(t.Context(), AcceptConfig{})
		}
	}()
	qp, err := (&Dialer{QP: QPConfig{FPDUs: FPDUsAligned}}).Initiate(t.Context(), a, nil)
	testrig.Must(t, err)
	t.Cleanup(func() { _ = qp.Abort() })
	return qp
}

// emssOf asks TCP.
func emssOf(c *tcp.Conn) int {
	emss, _ := c.Limits()
	return emss
}

// FPDUs are aligned with an EMSS that they can fill, which a multiple of four is; with
// another one only if that is asked for.
//
// Proves S04.
func TestAlignedEMSS(t *testing.T) {
	for _, c := range []struct {
		fpdus FPDUs
		emss  int
		want  int
	}{
		{FPDUsAligned, 1448, 1448},
		{FPDUsAligned, 1446, 1446},
		{FPDUsUnaligned, 1448, 0},
		{FPDUsLarge, 1448, 0},
	} {
		s := segments{fpdus: c.fpdus, always: true, emss: c.emss, record: 10 * c.emss}
		if emss, record := s.aligned(); emss != c.want || record != 10*c.want {
			t.Errorf("%v, EMSS %d: aligned with %d, records of %d", c.fpdus, c.emss, emss, record)
		}
	}
	for emss, want := range map[int]int{1448: 1448, 1447: 0, 1446: 0, 1445: 0, 1444: 1444} {
		s := segments{fpdus: FPDUsAligned, emss: emss}
		if got, _ := s.aligned(); got != want {
			t.Errorf("EMSS %d by default: aligned with %d, want %d", emss, got, want)
		}
	}
}

// FPDUs may come to be aligned where nothing else was asked for, or just that.
func TestMayAlign(t *testing.T) {
	for f, want := range map[FPDUs]bool{FPDUsDefault: true, FPDUsAligned: true, FPDUsUnaligned: false, FPDUsLarge: false} {
		if f.mayAlign() != want {
			t.Errorf("%v: %t", f, !want)
		}
	}
}

// FPDUs are aligned by default where a network is between, and on loopback where that is asked for: with any EMSS then.
//
// Proves S04.
func TestSettledFPDUs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("FPDUs are not aligned here")
	}
	qp := loopback(t)
	for _, remote := range []net.IP{{192, 0, 2, 1}, {127, 0, 0, 1}} {
		byDefault := FPDUsAligned
		if remote.IsLoopback() {
			byDefault = FPDUsUnaligned
		}
		for asked, want := range map[FPDUs]FPDUs{
			FPDUsDefault: byDefault, FPDUsAligned: FPDUsAligned, FPDUsUnaligned: FPDUsUnaligned, FPDUsLarge: FPDUsLarge,
		} {
			other := &QP{cfg: QPConfig{FPDUs: asked}}
			if s := other.measured(qp.conn, ends{remote: &net.TCPAddr{IP: remote}}); s.fpdus != want || s.always != (asked == FPDUsAligned) {
				t.Errorf("%v to %v: %v, with any EMSS: %t", asked, remote, s.fpdus, s.always)
			}
		}
	}
}

// Proves S03: what a record of TCP holds is followed, too, where the EMSS stays.
func TestRecordFollowed(t *testing.T) {
	qp := loopback(t)
	if emssOf(qp.conn) == 0 {
		t.Skip("this system does not tell the EMSS")
	}
	qp.mu.Lock()
	qp.followEMSSUnlocking(time.Now().Add(time.Hour), 0)
	_, want := qp.conn.Limits()
	qp.segments.record = want - 1
	qp.followEMSSUnlocking(time.Now().Add(2*time.Hour), 0)
	defer qp.mu.Unlock()
	if got := qp.segments.record; got != want {
		t.Errorf("a record has %d octets, want %d", got, want)
	}
}
