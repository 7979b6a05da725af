package driver

import (
	"runtime"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/tcp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// emssOf asks TCP.
func emssOf(c *tcp.Conn) int {
	emss, _ := c.Limits()
	return emss
}

// toldEMSS returns a connection whose TCP tells its EMSS.
func toldEMSS(t *testing.T) *burster {
	t.Helper()
	b := newBurster(t)
	if emssOf(b.tcp) == 0 {
		t.Skip("this system does not tell the EMSS")
	}
	return b
}

// TestEMSSOfTCP: the EMSS is what TCP says, and the MULPDU follows from it.
//
// Proves S03.
func TestEMSSOfTCP(t *testing.T) {
	a, _ := sockets(t)
	e, m := newSetup(mpa.RoleInitiator).prepared(t, a)
	l := e.Limits(false)
	emss, mulpdu := l.EMSS, l.MULPDU
	now := emssOf(e.tcp)
	if now == 0 {
		t.Skip("this system does not tell the EMSS")
	}
	if emss <= 0 || mulpdu != layout.MULPDU(emss, false) || m.Negotiated().MULPDU != mulpdu {
		t.Errorf("EMSS %d, MULPDU %d, and %d in use", emss, mulpdu, m.Negotiated().MULPDU)
	}
	if emss < layout.DefaultEMSS || now < emss {
		t.Errorf("EMSS on loopback %d, then %d", emss, now)
	}
	if marked := e.Limits(true).MULPDU; marked != layout.MULPDU(emss, true) {
		t.Errorf("with markers: MULPDU %d", marked)
	}
}

// TestEMSSFollowed: a change of the EMSS takes effect while the connection is up. The connection is made to believe
// that it was small before.
//
// Proves S03.
func TestEMSSFollowed(t *testing.T) {
	b := toldEMSS(t)
	b.Conn.mu.Lock()
	b.machine.SetMULPDU(layout.MinMULPDU, 0, 0)
	b.segments.emss, b.segments.refresh = 0, 0
	b.Conn.mu.Unlock()
	b.post(1)
	emss := emssOf(b.tcp)
	if f := b.Figures(); f.Params.MULPDU != layout.MULPDU(emss, false) || f.EMSS != emss {
		t.Errorf("MULPDU %d and EMSS %d, want those of an EMSS of %d", f.Params.MULPDU, f.EMSS, emss)
	}
}

// TestRecordFollowed: what a record of TCP holds is followed, too, where the EMSS stays.
//
// Proves S03.
func TestRecordFollowed(t *testing.T) {
	b := toldEMSS(t)
	record := func(set int) (is int) {
		b.Conn.mu.Lock()
		defer b.Conn.mu.Unlock()
		is = b.segments.record
		b.segments.record, b.segments.refresh = set, 0
		return is
	}
	_, want := b.tcp.Limits()
	record(want - 1)
	b.post(1)
	if got := record(want); got != want {
		t.Errorf("a record has %d bytes, want %d", got, want)
	}
}

// TestEMSSUnknown: where TCP does not report it, 1460 bytes are assumed.
//
// Proves S03.
func TestEMSSUnknown(t *testing.T) {
	a, b := testrig.Pipe("ini", "res")
	defer b.Close()
	s := newSetup(mpa.RoleInitiator)
	s.conn.FPDUs = FPDUsAligned
	e := s.on(t, a)
	if e.segments.fpdus != FPDUsUnaligned {
		t.Errorf("FPDUs are %v where TCP does not end its records", e.segments.fpdus)
	}
	if f := e.Figures(); f.EMSS != 1460 || f.Params.MULPDU != 1454 || f.Params.EMSS != 0 {
		t.Errorf("EMSS %d, MULPDU %d, aligned with %d", f.EMSS, f.Params.MULPDU, f.Params.EMSS)
	}
}

// TestEMSSKept: where TCP does not report it any more, it stays what it was.
//
// Proves S03.
func TestEMSSKept(t *testing.T) {
	b := toldEMSS(t)
	before := b.Figures()
	if before.EMSS < layout.DefaultEMSS { // which writes that did not ask have left
		t.Errorf("EMSS %d after a write", before.EMSS)
	}
	silent, far := testrig.Pipe("ini", "res")
	defer far.Close()
	other, _ := newSetup(mpa.RoleInitiator).prepared(t, silent)
	w := write{batch: [][]byte{{1}}, asks: true}
	w.write(other.Conn)
	if w.err != nil || w.emss != 0 {
		t.Fatalf("%v, EMSS %d", w.err, w.emss)
	}
	b.Conn.mu.Lock()
	b.followMULPDU(&w)
	b.Conn.mu.Unlock()
	if f := b.Figures(); f.EMSS != before.EMSS || f.Params.MULPDU != before.Params.MULPDU {
		t.Errorf("EMSS %d, later %d; MULPDU %d, later %d", before.EMSS, f.EMSS, before.Params.MULPDU, f.Params.MULPDU)
	}
}

// TestEMSSDue: TCP is asked again after 64 KiB, at distances that grow to 1 MiB, and when a second has passed.
func TestEMSSDue(t *testing.T) {
	began := time.Now()
	s := segments{refresh: refreshFirst, asked: began}
	var at []uint64
	for sent := uint64(0); sent < 4<<20; sent += 16 << 10 {
		if s.due(began, sent) {
			at = append(at, sent>>10)
		}
	}
	for i, want := range []uint64{64, 128, 256, 512, 1024, 2048, 3072} {
		if i >= len(at) || at[i] != want {
			t.Fatalf("asked at %v KiB", at)
		}
	}
	if sent := uint64(4 << 20); s.due(began.Add(time.Second-1), sent-1) || !s.due(began.Add(time.Second), sent-1) {
		t.Error("not asked after the time")
	}
}

// TestAlignedEMSS: FPDUs are aligned with an EMSS that they can fill, which a multiple of four is; with another one
// only if that is asked for.
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

// TestSettledFPDUs: FPDUs are aligned by default where a network is between, and on loopback where that is asked for:
// with any EMSS then.
//
// Proves S04.
func TestSettledFPDUs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("FPDUs are not aligned here")
	}
	a, _ := sockets(t)
	c := tcp.New(a)
	for _, loopback := range []bool{false, true} {
		byDefault := FPDUsAligned
		if loopback {
			byDefault = FPDUsUnaligned
		}
		for asked, want := range map[FPDUs]FPDUs{
			FPDUsDefault: byDefault, FPDUsAligned: FPDUsAligned, FPDUsUnaligned: FPDUsUnaligned, FPDUsLarge: FPDUsLarge,
		} {
			if s := measured(c, asked, loopback); s.fpdus != want || s.always != (asked == FPDUsAligned) {
				t.Errorf("%v, loopback %t: %v, with any EMSS: %t", asked, loopback, s.fpdus, s.always)
			}
		}
	}
}
