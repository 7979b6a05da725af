package iwarp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/procstat"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestCompletesWhileTheRestWaits has a peer read no further than the first of two Sends:
// that is complete, although the second one is under way for as long as it takes.
func TestCompletesWhileTheRestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := testrig.Pipe("near", "far")
		_, _ = near.SetWriteBuffer(1024), far.SetWriteBuffer(1024)
		t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
		ini := rig.NewEnd(t, iwarp.RNICConfig{})
		done := rig.DialInBackground(t, func() (err error) {
			d := iwarp.Dialer{PD: ini.PD}
			ini.QP, err = d.Initiate(t.Context(), near, nil)
			return err
		})
		p := rig.NewPeer(t, far)
		p.WantFrame(mpa.KeyRequest)
		p.Send(rig.Frame(rig.Reply(2)))
		rig.Must(t, <-done)
		synctest.Wait() // the receiving goroutine has begun
		for id, n := range []int{64 << 10, 1 << 20} {
			ini.MustPost(&iwarp.SendWR{ID: uint64(id), SGL: []iwarp.SGE{ini.MR(n, 0).Slice(0, n)}})
		}
		synctest.Wait()
		_, err := io.CopyN(io.Discard, far, 80<<10)
		rig.Must(t, err)
		synctest.Wait()
		var wc [2]iwarp.WC
		if n := ini.SendCQ().Poll(wc[:]); n != 1 || wc[0].ID != 0 || wc[0].Err() != nil {
			t.Errorf("%d completions: %v", n, wc[:n])
		}
		_ = ini.Abort()
	})
}

// TestCallsAreCounted counts the calls that receive and send: each of them moves something.
func TestCallsAreCounted(t *testing.T) {
	ini, res := rig.Connect(t)
	rig.Works(t, ini, res)
	for _, e := range []*rig.End{ini, res} {
		s := e.Stats()
		if s.ReceiveCalls == 0 || s.ReceiveCalls > s.ReceivedStream || s.SendCalls == 0 || s.SendCalls > s.SentStream {
			t.Errorf("%d calls have received %d bytes, and %d sent %d",
				s.ReceiveCalls, s.ReceivedStream, s.SendCalls, s.SentStream)
		}
	}
	rig.Finish(t, ini, res)
}

// TestDeadQPHoldsNoBuffer ends connections in the middle of FPDUs that are too long to be kept
// beside a pooled buffer: QPs that nobody has closed yet hold none.
func TestDeadQPHoldsNoBuffer(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory too")
	}
	const n, limit = 40, 24 << 10 // bytes for each: its RNIC, Listener and test take 16 KiB, a receive buffer 128 KiB
	part := make([]byte, 30000)   // one that is kept by itself is beyond the limit, too
	part[0] = 0xf0                // ULPDU_Length
	qps := make([]*rig.End, 0, n)
	var before uint64
	for i := range n + 5 {
		res, p := rig.RespondToPeer(t, iwarp.QPConfig{})
		p.Send(part)
		rig.Must(t, p.Conn.Close())
		rig.Wait(t, res.Done(), "the end of the connection")
		if qps = append(qps, res); i == 4 {
			before, _ = procstat.Held()
		}
	}
	var each int64
	for deadline := time.Now().Add(rig.Soon); time.Now().Before(deadline); {
		h, _ := procstat.Held()
		if each = (int64(h) - int64(before)) / n; each < limit {
			return
		}
	}
	t.Errorf("each of %d dead QPs holds %d bytes", len(qps), each)
}

// TestFPDUs asks for each way in which FPDUs may lie to TCP's segments.
//
// Proves S01, S04.
func TestFPDUs(t *testing.T) {
	for _, c := range []struct {
		fpdus   iwarp.FPDUs
		aligned bool
		large   bool
	}{
		{fpdus: iwarp.FPDUsDefault}, // unaligned on loopback
		{fpdus: iwarp.FPDUsAligned, aligned: runtime.GOOS == "linux"},
		{fpdus: iwarp.FPDUsUnaligned},
		{fpdus: iwarp.FPDUsLarge, large: true},
	} {
		t.Run(fmt.Sprint(c.fpdus), func(t *testing.T) {
			ini, res := rig.Setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{FPDUs: c.fpdus}}}.Connect(t)
			src, dst := ini.MR(1<<20, 0), res.MR(1<<20, iwarp.RemoteWrite)
			for range 3 {
				if _, err := ini.Write(rig.Within(t), src.Slice(0, 1<<20), dst.Remote(0)); err != nil {
					t.Fatal(err)
				}
			}
			var s iwarp.Stats
			rig.Until(t, func() bool { // who sends counts a write when it is over, which is after its completion
				s = ini.Stats()
				total := ini.RNIC.Stats()
				return total.SocketWrites == s.SocketWrites && total.AlignedWrites == s.AlignedWrites
			}, "an RNIC that counts as many writes as its only QP")
			want := layout.MULPDU(s.EMSS, false)
			if c.large {
				want = layout.MaxUnpadded
			}
			if s.MULPDU != want || s.MULPDU != ini.Query().MULPDU || s.EMSS < ini.Negotiated().EMSS {
				t.Errorf("EMSS %d, MULPDU %d, want %d", s.EMSS, s.MULPDU, want)
			}
			// A write that was under way when the EMSS changed is not counted.
			if s.SocketWrites < 3 || c.aligned && s.AlignedWrites < s.SocketWrites/2 ||
				!c.aligned && s.AlignedWrites > 0 {
				t.Errorf("%d of %d writes are aligned", s.AlignedWrites, s.SocketWrites)
			}
		})
	}
}

// There is no other way.
func TestFPDUsUnknown(t *testing.T) {
	e := rig.NewEnd(t, iwarp.RNICConfig{})
	if _, err := e.PD.CreateQP(iwarp.QPConfig{FPDUs: iwarp.FPDUsLarge + 1}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("err = %v", err)
	}
}

// A peer that reads slowly gets all of a Write as it was before Detach, and not a byte of what the program has
// put into its memory afterwards.
func TestDetachWhileSending(t *testing.T) {
	t.Parallel()
	ini, p := rig.InitiateToPeer(t)
	p.Want(rdmap.OpWrite) // RTR
	const n = 16 << 20    // more than the sockets hold
	mr := ini.MR(n, 0)
	for i := range mr.Bytes() {
		mr.Bytes()[i] = 1
	}
	ini.MustPost(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{mr.Slice(0, n)}, Remote: iwarp.Remote{STag: 7}})
	rig.Must(t, mr.Detach())
	for i := range mr.Bytes() { // the program's own again
		mr.Bytes()[i] = 2
	}
	for got := 0; got < n; {
		f, err := p.Link.NextSegment(time.Time{})
		if err != nil {
			t.Fatalf("peer: %v", err)
		}
		if rest := bytes.Trim(f.Payload, "\x01"); len(rest) > 0 {
			t.Fatalf("after byte %d: %d, written after Detach", got, rest[0])
		}
		got += len(f.Payload)
	}
	if wc := rig.Next(t, ini.SendCQ()); wc.Status != iwarp.StatusSuccess {
		t.Errorf("completed with %v", wc.Status)
	}
	rig.Must(t, mr.Deregister())
	if err := mr.Detach(); !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("after Deregister: %v", err)
	}
}

// TestConfirm has a Write and a Send complete when the peer has carried them out, over each lower layer: nothing else
// has to be waited for. A Write that the peer refuses fails itself.
//
// Proves P40.
func TestConfirm(t *testing.T) {
	overLayers(t, iwarp.QPConfig{Confirm: true}, func(t *testing.T, ini, res *rig.End, _ func()) {
		rig.Works(t, ini, res) // a Responder may not send first
		const n = 100_000
		ctx, src := t.Context(), res.Filled(n, 1, 0)
		for id := range uint64(3) {
			written, received := ini.MR(n, iwarp.RemoteWrite), ini.MR(n, iwarp.LocalWrite)
			_, err := res.Write(ctx, src.Slice(0, n), written.Remote(0))
			rig.Must(t, err)
			rig.Same(t, "Write", written, src)
			ini.MustPostRecv(id, received.Slice(0, n))
			rig.Must(t, res.Send(ctx, src.Slice(0, n)))
			rig.Same(t, "Send", received, src)
			if wc := ini.WantReceived(id, iwarp.StatusSuccess); wc.Length != n {
				t.Errorf("%d bytes", wc.Length)
			}
		}
		_, err := res.Write(ctx, src.Slice(0, n), ini.MR(n, iwarp.RemoteRead).Remote(0))
		var failed *iwarp.WCError
		if !errors.As(err, &failed) || failed.Status != iwarp.StatusRemoteAccess {
			t.Errorf("a Write without the right to: %v", err)
		}
	})
}
