package script_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

func links() (a, b *script.Link) {
	x, y := testrig.Pipe("a", "b")
	return script.NewLink(x), script.NewLink(y)
}

// never is a deadline that is not meant to pass.
func never() time.Time { return time.Now().Add(time.Hour) }

// TestStartup plays the startup of every dialect with frames, and takes both frames
// from every split of the bytes.
func TestStartup(t *testing.T) {
	for _, d := range mpa.Dialects() {
		if d == mpa.DialectStartKey {
			continue
		}
		q := mpa.StartupFrame(script.Request(d, 4).Bytes())
		r := mpa.StartupFrame(script.Reply(d, q, 4).Bytes())
		if q.Dialect() != d || q.Key() != mpa.KeyRequest {
			t.Errorf("%v: the Request is of %v: %v", d, q.Dialect(), q)
		}
		if r.Dialect() != d || r.Key() != mpa.KeyReply || r.R() {
			t.Errorf("%v: the Reply is of %v: %v", d, r.Dialect(), r)
		}
		for n := 1; n <= len(q)+1; n++ {
			a, b := links()
			a.SendSplit(0, script.Split(slices.Concat(q, []byte{1}), n)...)
			got, err := b.Frame(never())
			if err != nil || !bytes.Equal(got, q) {
				t.Errorf("%v in pieces of %d: %v, %v", d, n, got, err)
			}
			if rest, err := b.Bytes(1, never()); err != nil || rest[0] != 1 {
				t.Errorf("%v in pieces of %d: after it % x, %v", d, n, rest, err)
			}
		}
	}
}

// TestAnswer looks at the enhanced data by which a Request is answered.
func TestAnswer(t *testing.T) {
	for _, c := range []struct{ asked, want mpa.Enhanced }{
		{mpa.Enhanced{IRD: 9, ORD: 2}, mpa.Enhanced{IRD: 2, ORD: 4}},
		{mpa.Enhanced{IRD: 3, ORD: 2}.WithRTR(mpa.RTRWrite | mpa.RTRRead),
			mpa.Enhanced{IRD: 2, ORD: 3}.WithRTR(mpa.RTRWrite)},
		{mpa.Enhanced{}.WithRTR(mpa.RTRRead | mpa.RTRSend), mpa.Enhanced{IRD: 1}.WithRTR(mpa.RTRRead)},
		{mpa.Enhanced{}.WithRTR(mpa.RTRSend), mpa.Enhanced{}.WithRTR(mpa.RTRSend)},
		{mpa.Enhanced{}.WithRTR(0), mpa.Enhanced{}.WithRTR(mpa.RTRSend)},
		{mpa.Enhanced{IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation},
			mpa.Enhanced{IRD: mpa.NoNegotiation, ORD: mpa.NoNegotiation}},
	} {
		q := script.Request(mpa.DialectRFC6581, 4)
		q.Enhanced = &c.asked
		if got := script.Reply(mpa.DialectRFC6581, q.Bytes(), 4).Enhanced; *got != c.want {
			t.Errorf("asked %v: %v, want %v", c.asked, got, c.want)
		}
	}
}

// TestMissing waits for a frame of which a part comes, up to a deadline, a FIN or a RST.
func TestMissing(t *testing.T) {
	for end, leave := range map[script.End]func(*script.Link){
		script.Open: func(*script.Link) {},
		script.FIN:  func(l *script.Link) { l.CloseWrite() },
		script.RST:  func(l *script.Link) { l.Reset() },
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := links()
			a.Send([]byte("MPA ID"))
			leave(a)
			begun := time.Now()
			_, err := b.Frame(begun.Add(time.Second))
			var missing *script.MissingError
			if !errors.As(err, &missing) || missing.Got != 6 || missing.End != end || b.End() != end {
				t.Errorf("%v: got %+v", end, err)
			}
			if took := time.Since(begun); (took == time.Second) != (end == script.Open) {
				t.Errorf("%v: waited %v", end, took)
			}
			if string(b.Received()) != "MPA ID" {
				t.Errorf("%v: %q is left", end, b.Received())
			}
		})
	}
}

// modes are the terms of Full Operation: CRC and markers on and off.
func modes() (all []script.Terms) {
	for i := range 8 {
		all = append(all, script.Terms{MarkersSend: i&1 != 0, MarkersReceive: i&2 != 0, CRC: i&4 != 0, Version: 1})
	}
	return all
}

// TestOperation has one end send one message of each kind, under some splits, and
// the other end take them.
func TestOperation(t *testing.T) {
	payload := bytes.Repeat([]byte("payload"), 300)
	for _, mode := range modes() {
		for _, n := range []int{1, 7, 512, 1 << 20} {
			a, b := links()
			a.Operate(mode)
			mode.MarkersSend, mode.MarkersReceive = mode.MarkersReceive, mode.MarkersSend
			b.Operate(mode)
			ready, kind := a.Ready(mpa.RTRRead | mpa.RTRSend)
			data := slices.Concat(ready, a.Message(rdmap.OpSend, payload), a.Message(rdmap.OpSend, nil),
				a.Tagged(rdmap.OpWrite, 5, 6, payload), a.EmptyRead())
			if kind != mpa.RTRRead {
				t.Errorf("RTR indication by %v", kind)
			}
			a.SendSplit(0, script.Split(data, n)...)
			a.CloseWrite()
			for _, want := range []struct {
				op      rdmap.Opcode
				msn     uint32
				payload int
			}{{rdmap.OpReadRequest, 1, 28}, {rdmap.OpSend, 1, 2100}, {rdmap.OpSend, 2, 0}, {rdmap.OpWrite, 0, 2100},
				{rdmap.OpReadRequest, 2, 28}} {
				seg, err := b.NextSegment(never())
				if err != nil || rdmap.OpcodeOf(&seg.Header) != want.op || seg.MSN != want.msn ||
					len(seg.Payload) != want.payload || !seg.Last {
					t.Fatalf("%v, pieces of %d: %v, %v, want %+v", mode, n, seg.Header, err, want)
				}
			}
			var missing *script.MissingError
			if _, err := b.NextSegment(never()); !errors.As(err, &missing) || missing.End != script.FIN ||
				missing.Got != 0 || b.ReceiveOffset() != uint64(len(data)) {
				t.Errorf("%v: at the end, at offset %d of %d: %v", mode, b.ReceiveOffset(), len(data), err)
			}
		}
	}
}

// TestPeek looks at an FPDU without taking it.
func TestPeek(t *testing.T) {
	a, b := links()
	terms := script.Terms{MarkersSend: true, MarkersReceive: true, CRC: true}
	a.Operate(terms)
	b.Operate(terms)
	a.Send(a.Message(rdmap.OpSend, []byte("text")))
	for range 2 {
		if f, err := b.PeekFPDU(never()); err != nil || len(f.ULPDU) != ddp.UntaggedHeaderLen+4 || b.Heard() {
			t.Fatalf("%v, %v", f, err)
		}
	}
	f, err := b.NextFPDU(never())
	if err != nil || len(f.Bytes) != f.Size || !b.Heard() || len(b.Received()) != 0 {
		t.Errorf("%v, %v", f, err)
	}
}

// TestSpoil spoils a CRC, and makes it right again.
func TestSpoil(t *testing.T) {
	for _, seal := range []bool{false, true} {
		a, b := links()
		a.Operate(script.Terms{CRC: true, Version: 1})
		b.Operate(a.Terms())
		fpdu := script.SpoilCRC(a.EmptyWrite())
		if seal {
			fpdu = script.Seal(fpdu)
		}
		a.Send(fpdu)
		_, err := b.NextSegment(never())
		var bad *mpa.Error
		if errors.As(err, &bad) == seal || !seal && bad.Code != mpa.CodeCRC {
			t.Errorf("sealed %v: %v", seal, err)
		}
	}
}

// TestParting leaves Responders that wait for an RTR indication, and others.
func TestParting(t *testing.T) {
	q := mpa.StartupFrame(script.Request(mpa.DialectRFC6581, 4).Bytes())
	r := script.Reply(mpa.DialectRFC6581, q, 4)
	a, b := links()
	b.Operate(script.TermsOf(mpa.RoleResponder, q, r.Bytes()))
	for _, fpdu := range a.Parting(q, r.Bytes()) {
		a.Send(fpdu)
		seg, err := b.NextSegment(never())
		if err != nil || mpa.RTROf(rdmap.ZeroLength(&seg)) != mpa.RTRWrite {
			t.Errorf("%v, %v", seg.Header, err)
		}
	}
	if again := a.Parting(q, r.Bytes()); len(again) != 1 {
		t.Errorf("%d FPDUs after the RTR indication", len(again))
	}
	plain := script.Request(mpa.DialectRFC5044, 0).Bytes()
	if c, _ := links(); c.Parting(plain, script.Reply(mpa.DialectRFC5044, plain, 0).Bytes()) != nil {
		t.Error("RFC 5044 has no RTR indication")
	}
}

// TestTerms settles CRCs and markers.
func TestTerms(t *testing.T) {
	q, r := script.Request(mpa.DialectRFC5044, 0), script.Request(mpa.DialectRFC5044, 0)
	q.M, q.C, r.C = true, false, true
	if got := script.TermsOf(mpa.RoleInitiator, q.Bytes(),
		r.Bytes()).String(); got != "version 1, CRC, markers received" {
		t.Error(got)
	}
	if got := script.TermsOf(mpa.RoleResponder, q.Bytes(),
		r.Bytes()).String(); got != "version 1, CRC, markers sent" {
		t.Error(got)
	}
	r.Rev = 0
	if got := script.TermsOf(mpa.RoleInitiator, q.Bytes(),
		r.Bytes()).String(); got != "version 0, CRC, markers sent, markers received" {
		t.Error(got)
	}
	ours := mpa.AppendStartKey(nil, &mpa.StartKeyFields{M: true})
	if got := script.TermsOfKeys(ours, mpa.AppendStartKey(nil,
		&mpa.StartKeyFields{})).String(); got != "version 0, markers received" {
		t.Error(got)
	}
}

// TestReset ends a connection by a RST.
func TestReset(t *testing.T) {
	a, b := links()
	a.Reset()
	if _, err := b.Rest(never()); err != nil || b.End() != script.RST {
		t.Errorf("%v, %v", b.End(), err)
	}
}

// TestEndless does not wait for the end of a connection on which more comes than is kept.
func TestEndless(t *testing.T) {
	a, b := links()
	for range 3 {
		a.Send(make([]byte, script.MaxRest))
	}
	var missing *script.MissingError
	if _, err := b.Rest(never()); !errors.Is(err, script.ErrEndless) || !errors.As(err, &missing) ||
		missing.End != script.Open || len(b.Received()) > 2*script.MaxRest {
		t.Errorf("%v, %d bytes kept", err, len(b.Received()))
	}
}
