package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/probe"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
)

// serving has our endpoint listen over SCTP, with rping.
func serving(t *testing.T, reject *string) (addr string) {
	t.Helper()
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network)}).Listen(t.Context(), "sctp4", "127.0.0.1:0")
	testrig.Must(t, err)
	stop := rping.Start(t.Context(), ln, rping.ServerConfig{Persistent: true, Reject: reject})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// probingSCTP asks all questions, of which so many are met with silence. That is all that time is waited for; so where
// more are silent, and the peer may be slow, all are asked again with more time.
func probingSCTP(t *testing.T, addr string, silent int) *probe.SCTPReport {
	t.Helper()
	for _, timeout := range []time.Duration{time.Second, 10 * time.Second, testrig.Soon} {
		r, err := probe.RunSCTP(t.Context(), probe.SCTPConfig{Addr: addr, Timeout: timeout})
		if err == nil && silences(r) <= silent {
			return r
		}
		if err != nil && !errors.Is(err, probe.ErrNoAssociation) && !errors.Is(err, probe.ErrStopped) {
			t.Fatal(err)
		}
		t.Logf("silent within %v: %v", timeout, err)
	}
	t.Fatal("the peer does not answer")
	return nil
}

// silences returns how many questions had no answer, or no end.
func silences(r *probe.SCTPReport) (n int) {
	for _, q := range r.Questions {
		if q.Outcome == probe.Silent || q.Then == probe.Silent {
			n++
		}
	}
	return n
}

// TestStopsSCTP has the listener go after three questions: nothing is concluded from that it does not answer any more.
func TestStopsSCTP(t *testing.T) {
	t.Parallel()
	ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network)}).Listen(t.Context(), "sctp4", "127.0.0.1:0")
	testrig.Must(t, err)
	stop := rping.Start(t.Context(), ln, rping.ServerConfig{Persistent: true})
	begun := 0
	r, err := probe.RunSCTP(t.Context(), probe.SCTPConfig{
		Addr: ln.Addr().String(), Timeout: 2 * time.Second, GiveUp: time.Second,
		Progress: func(string) {
			if begun++; begun == 4 {
				_ = stop()
			}
		},
	})
	if !errors.Is(err, probe.ErrStopped) || r == nil || r.Stopped == nil ||
		r.Stopped.Number != len(r.Questions) || len(r.NotAsked) < 5 {
		t.Fatalf("%v: %+v", err, r)
	}
	var text strings.Builder
	testrig.Must(t, r.Report().WriteText(&text, false))
	if s := text.String(); !strings.Contains(s, "stopped: the peer stopped answering after question") ||
		strings.Contains(s, "Use --network") {
		t.Error(s)
	}
}

// TestSCTP asks our endpoint: what is right is accepted, and answered in kind; what is wrong is not.
func TestSCTP(t *testing.T) {
	t.Parallel()
	r := probingSCTP(t, serving(t, nil), 3)
	if u := r.Setup; u == nil || u.Out != u.In || u.Indication == nil || *u.Indication != 1 {
		t.Errorf("setup %+v", u)
	}
	for _, c := range []struct {
		q             *probe.SessionQuestion
		outcome, then probe.Outcome
		answer        string
	}{
		{r.Sessions.Plain, probe.Accepted, probe.Terminated, "Accept"},
		{r.Sessions.PeerToPeer, probe.Accepted, probe.Terminated,
			"Enhanced Accept: IRD 16, ORD 1, peer-to-peer, RTR write|read"},
		{r.Sessions.ClientServer, probe.Accepted, probe.Terminated, "Enhanced Accept: IRD 16, ORD 1"},
		{r.Indications.None, probe.Aborted, probe.None, "ABORT in answer to the INIT"},
		{r.Indications.Other, probe.Aborted, probe.None, "ABORT in answer to the INIT"},
		{r.PrivateData.Most, probe.Accepted, probe.Terminated, "Accept"},
		{r.PrivateData.Over, probe.Terminated, probe.None, "Terminate"},
		{r.Odd.Unknown, probe.Terminated, probe.None, "Terminate"},
		{r.Odd.Segment, probe.Silent, probe.None, ""},
		{r.Second, probe.Accepted, probe.Terminated, "Accept"},
	} {
		if c.q.Outcome != c.outcome || c.q.Then != c.then || c.q.Answer != c.answer || c.q.Associated {
			t.Errorf("%+v", c.q)
		}
	}
	if !r.Speaks() || len(r.RTR) != 5 || len(r.Depths) != 5 || r.Depths[4].IRD != mpa.NoNegotiation ||
		r.RTR[0].Answered != "write" {
		t.Errorf("%+v, %+v", r.RTR, r.Depths)
	}
	var text strings.Builder
	testrig.Must(t, r.Report().WriteText(&text, true))
	for _, want := range []string{"Use --network sctp", "plain (RFC 5043), enhanced (RFC 6581)",
		fmt.Sprintf("Streams                %d out, %d in", r.Setup.Out, r.Setup.In)} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	if b, err := json.Marshal(r); err != nil || !strings.Contains(string(b), `"network":"sctp"`) {
		t.Errorf("%s (%v)", b, err)
	}
}

// TestSCTPRejects asks one whose consumer rejects each session: it speaks DDP all the same.
func TestSCTPRejects(t *testing.T) {
	t.Parallel()
	text := "not you"
	r := probingSCTP(t, serving(t, &text), 3)
	if q := r.Sessions.Plain; q.Outcome != probe.Rejected ||
		q.Answer != "Reject, 7 bytes of private data" || !r.Speaks() {
		t.Errorf("%+v", q)
	}
	if q := r.Sessions.PeerToPeer; q.Outcome != probe.Rejected || !strings.HasPrefix(q.Answer, "Enhanced Reject: ") {
		t.Errorf("%+v", q)
	}
}

// TestSCTPForeign asks one who answers with messages that have no room for a DDP-SSN.
func TestSCTPForeign(t *testing.T) {
	t.Parallel()
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	testrig.Must(t, err)
	var peer sync.WaitGroup
	defer peer.Wait()
	defer pc.Close()
	peer.Go(func() {
		for {
			a, err := script.Answer(t.Context(), pc, script.DDPSetup(), time.Time{})
			if err != nil {
				return
			}
			stream, ok := a.Asked(time.Now().Add(time.Minute))
			for a.Send(sctp.Message{Stream: stream, PPID: sctp.PPIDSegment, Data: []byte{0}}); ok; {
				_, ok = a.Next(time.Now().Add(time.Minute)) // until the peer leaves
			}
		}
	})
	r := probingSCTP(t, pc.LocalAddr().String(), 0)
	if q := r.Sessions.Plain; q.Outcome != probe.Foreign ||
		q.Answer != "PPID 16 without room for a DDP-SSN" || r.Speaks() {
		t.Errorf("%+v", q)
	}
}

// TestSCTPLimit ends a probe over SCTP when its time is over: the answers to what nobody says are waited for in vain.
func TestSCTPLimit(t *testing.T) {
	t.Parallel()
	r, err := probe.RunSCTP(t.Context(), probe.SCTPConfig{Addr: serving(t, nil),
		Timeout: time.Minute, Limit: time.Second})
	if !errors.Is(err, probe.ErrOutOfTime) || r != nil && !(r.OutOfTime && r.Incomplete) {
		t.Fatalf("%+v, %v", r, err)
	}
}

// TestSCTPNobody asks where nobody is, and with what cannot be sent.
func TestSCTPNobody(t *testing.T) {
	t.Parallel()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0") // who says nothing
	testrig.Must(t, err)
	defer pc.Close()
	r, err := probe.RunSCTP(t.Context(), probe.SCTPConfig{Addr: pc.LocalAddr().String(),
		Timeout: 50 * time.Millisecond})
	if r != nil || !errors.Is(err, probe.ErrNoAssociation) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := probe.RunSCTP(t.Context(), probe.SCTPConfig{Addr: pc.LocalAddr().String(),
		PrivateData: make([]byte, 509)}); err == nil {
		t.Error("too much private data, and no error")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("enough"))
	if _, err := probe.RunSCTP(ctx, probe.SCTPConfig{Addr: pc.LocalAddr().String()}); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}
