package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestIdle tells an idle connection from one that is in use, by the counters of
// two moments, and ends it: what it held can be taken by another.
//
// Proves Z32, Z01.
func TestIdle(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{QPs: 2}})
	pd := rig.NewPD(t, rnic)
	busy, a := rig.Setup{Accept: iwarp.AcceptConfig{PD: pd}}.Connect(t)
	idle, b := rig.Setup{Accept: iwarp.AcceptConfig{PD: pd}}.Connect(t)
	rig.Works(t, idle, b)
	activity := func() map[*iwarp.QP]uint64 {
		m := make(map[*iwarp.QP]uint64)
		for _, qp := range rnic.QPs() {
			s := qp.Stats()
			m[qp] = s.SentStream + s.ReceivedStream
		}
		return m
	}
	// What a QP has sent is counted when the system has taken it, which may be after
	// the peer has got it: its last bytes may still be counted in the first round.
	for aborted := false; !aborted; {
		before := activity()
		rig.Works(t, busy, a)
		for qp, n := range activity() {
			if n != before[qp] {
				continue
			}
			if aborted = true; qp != b.QP {
				t.Errorf("QP %d counts as idle", qp.Num())
			}
			rig.Should(t, qp.Abort())
		}
	}
	if err := idle.WantEnd(); !errors.Is(err, iwarp.ErrConnectionLost) {
		t.Errorf("the idle one ended with %v", err)
	}
	third, c := rig.Setup{Accept: iwarp.AcceptConfig{PD: pd}}.Connect(t)
	rig.Works(t, third, c)
	rig.Works(t, busy, a)
}

// TestStats counts a known conversation.
func TestStats(t *testing.T) {
	ini, res := rig.Connect(t)
	src, dst := ini.Filled(10000, 1, iwarp.LocalWrite), res.MR(10000, iwarp.RemoteWrite|iwarp.RemoteRead)
	ctx := rig.Within(t)
	for range 3 {
		if _, err := ini.Write(ctx, src.Slice(0, 10000), dst.Remote(0)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ini.Read(ctx, src.Slice(0, 500), dst.Remote(0)); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, func() bool { return res.Stats().SentStream == ini.Stats().ReceivedStream }, "the last count")
	i, r := ini.Stats(), res.Stats()
	for _, c := range []struct {
		op   rdmap.Opcode
		want iwarp.Traffic
		at   iwarp.Stats
	}{
		{rdmap.OpWrite, iwarp.Traffic{Messages: 4, Bytes: 30000}, i}, // with the RTR indication
		{rdmap.OpReadRequest, iwarp.Traffic{Messages: 1, Bytes: 28}, i},
		{rdmap.OpReadResponse, iwarp.Traffic{Messages: 1, Bytes: 500}, r},
	} {
		if got := c.at.Sent[c.op]; got != c.want {
			t.Errorf("%v sent: %+v, want %+v", c.op, got, c.want)
		}
	}
	if r.Received[rdmap.OpWrite] != i.Sent[rdmap.OpWrite] ||
		i.Received[rdmap.OpReadResponse] != r.Sent[rdmap.OpReadResponse] {
		t.Errorf("sent %+v, received %+v", i.Sent, r.Received)
	}
	if i.SentStream != r.ReceivedStream || r.SentStream != i.ReceivedStream ||
		i.SentFPDUs != r.ReceivedFPDUs || i.SentStream < 30000 {
		t.Errorf("the Initiator has %+v, the Responder %+v", i, r)
	}
	rig.Finish(t, ini, res)
	if s := ini.RNIC.Stats(); s.Sent[rdmap.OpWrite].Messages != 4 || s.QPs != 0 || s.Startup.Established != 1 {
		t.Errorf("the RNIC has %+v", s)
	}
}

// TestStatsOfEmptyMessage sends one Send of nothing: it is counted, and of what was not sent there is no count.
func TestStatsOfEmptyMessage(t *testing.T) {
	ini, res := rig.Connect(t)
	res.MustPostRecv(1)
	rig.Must(t, ini.Send(rig.Within(t), iwarp.SGE{}))
	res.WantReceived(1, iwarp.StatusSuccess)
	// The first Write is the RTR indication.
	want := map[rdmap.Opcode]iwarp.Traffic{rdmap.OpWrite: {Messages: 1}, rdmap.OpSend: {Messages: 1}}
	if got := res.Stats().Received; !maps.Equal(got, want) {
		t.Errorf("received %+v", got)
	}
	if s, all := res.Stats(), res.RNIC.Stats(); len(s.Sent) != 0 ||
		all.ReceiveCalls != s.ReceiveCalls || s.ReceiveCalls == 0 {
		t.Errorf("sent %+v, with %d calls that received, on the RNIC %d", s.Sent, s.ReceiveCalls, all.ReceiveCalls)
	}
	rig.Until(t, func() bool {
		return ini.Stats().SendCalls > 0 &&
			ini.Stats().SendCalls == ini.RNIC.Stats().SendCalls
	}, "the RNIC's count of calls that sent")
}

// TestListenerStats counts apart what two Listeners of an RNIC see.
func TestListenerStats(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
	quiet, busy := rig.Listen(t, iwarp.ListenConfig{RNIC: rnic}), rig.Listen(t, iwarp.ListenConfig{RNIC: rnic})
	for _, b := range [][]byte{rig.Frame(rig.Reply(2)), rig.Frame(rig.Reply(1)), make([]byte, 20)} {
		p := rig.DialPeer(t, busy.Addr())
		p.Send(b)
		p.WantClosed()
	}
	served := serveOne(t, busy)
	qp, err := new(iwarp.Dialer).Dial(rig.Within(t), "tcp", busy.Addr().String())
	rig.Must(t, err)
	rig.Must(t, <-served)
	s := rig.WaitFailed(t, busy)
	if s.Started != 4 || s.Established != 1 || s.Failed[mpa.FailureResponderResponder.String()] != 2 ||
		s.Failed[mpa.FailureKey.String()] != 1 {
		t.Errorf("counted %+v", s)
	}
	if q := quiet.Stats(); q.Started != 0 {
		t.Errorf("the other Listener counted %+v", q)
	}
	if all := rnic.Stats().Startup; all.Started != 4 {
		t.Errorf("the RNIC counted %+v", all)
	}
	_ = qp.Abort()
}

// TestOddities counts what a peer does that is legal and yet unusual, on its
// connection and on the RNIC.
//
// Proves Z30.
func TestOddities(t *testing.T) {
	t.Parallel()
	res := rig.NewEnd(t, iwarp.RNICConfig{})
	ln := rig.Listen(t, iwarp.ListenConfig{PD: res.PD})
	p, req := rig.Ask(t, ln, rig.Frame(rig.Request(2)))
	if _, err := req.Accept(rig.Within(t), iwarp.AcceptConfig{Prepare: res.TwoReceives}); err != nil {
		t.Fatal(err)
	}
	p.WantFrame(mpa.KeyReply)
	p.Send(p.Message(rdmap.OpSend, 1, []byte("no RTR indication")))
	for range 7 + 3 { // of which seven may be an indication and nudges
		p.Send(p.Write(1, 0, nil))
	}
	p.Send(p.Message(rdmap.OpSend, 2, nil))
	res.WantReceived(0, iwarp.StatusSuccess)
	res.WantReceived(1, iwarp.StatusSuccess)
	var want iwarp.Stats
	want.Odd.NotRTR, want.Odd.Empty = 1, 3
	if got := res.Stats().Odd; got != want.Odd {
		t.Errorf("counted %+v, want %+v", got, want.Odd)
	}
	_ = res.Abort()
	if got := res.RNIC.Stats().Odd; got != want.Odd {
		t.Errorf("the RNIC counted %+v, want %+v", got, want.Odd)
	}
}

// TestEventsDropped keeps the newest events when nobody fetches them.
//
// Proves Z31.
func TestEventsDropped(t *testing.T) {
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{EventDepth: 4})
	pd := rig.NewPD(t, rnic)
	var last *iwarp.QP
	for range 5 {
		ini, res := rig.Setup{Accept: iwarp.AcceptConfig{PD: pd}}.Connect(t)
		rig.Until(t, func() bool { return res.Stats().ReceivedFPDUs > 0 },
			"the RTR indication, of which an event tells")
		_ = ini.Abort()
		_ = res.WantEnd()
		last = res.QP
	}
	if s := rnic.Stats(); s.EventsDropped != 6 {
		t.Errorf("%d events dropped", s.EventsDropped)
	}
	e := &rig.End{T: t, RNIC: rnic}
	e.WantEvent(iwarp.EventConnectionLost)
	if ev := e.WantEvent(iwarp.EventConnectionLost); ev.QP != last {
		t.Errorf("the newest event is %v", ev)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rnic.NextEvent(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("NextEvent: %v", err)
	}
}

// TestLog logs at each level what belongs there.
func TestLog(t *testing.T) {
	for _, c := range []struct {
		level    slog.Level
		want     []string
		unwanted string
	}{
		{slog.LevelWarn, []string{"level=WARN msg=\"iwarp: startup failed\""}, "connection established"},
		{slog.LevelInfo, []string{"connection established", "connection ended",
			"startup failed"}, "startup frame sent"},
		{slog.LevelDebug, []string{"startup frame received", "MPA ID Req Frame C S rev 2", "startup frame sent",
			"state", "connection ended"}, "FPDU sent"},
		{iwarp.LevelFrame, []string{"FPDU sent", "FPDU received", "RDMA Write"}, "nothing"},
	} {
		var out testrig.Buffer
		rnic := rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(slog.NewTextHandler(&out,
			&slog.HandlerOptions{Level: c.level}))})
		ln := rig.Listen(t, iwarp.ListenConfig{RNIC: rnic})
		p := rig.DialPeer(t, ln.Addr())
		p.Send(make([]byte, 20))
		p.WantClosed()
		ini, res := rig.Setup{Accept: iwarp.AcceptConfig{PD: rig.NewPD(t, rnic)}}.Connect(t)
		rig.Works(t, ini, res)
		rig.Finish(t, ini, res)
		_ = ln.Close()
		// What is logged is logged a little later, when no lock is held.
		for _, text := range c.want {
			rig.Until(t, func() bool { return strings.Contains(out.String(), text) },
				fmt.Sprintf("level %v: %q", c.level, text))
		}
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "iwarp: connection ") &&
				(!strings.Contains(line, " local=127.0.0.1:") || !strings.Contains(line, " peer=127.0.0.1:")) {
				t.Errorf("level %v: addresses are missing: %s", c.level, line)
			}
		}
		if strings.Contains(out.String(), c.unwanted) {
			t.Errorf("level %v: %q in\n%s", c.level, c.unwanted, out.String())
		}
	}
}

// TestCallsOfThePast has an RNIC count the calls of a QP that is gone.
func TestCallsOfThePast(t *testing.T) {
	ini, res := rig.Connect(t)
	rig.Works(t, ini, res)
	rig.Must(t, ini.Close())
	rig.Until(t, func() bool { return ini.RNIC.Stats().QPs == 0 }, "the end of the QP")
	own, all := ini.Stats(), ini.RNIC.Stats()
	if own.SendCalls == 0 || own.ReceiveCalls == 0 || all.SendCalls != own.SendCalls ||
		all.ReceiveCalls != own.ReceiveCalls {
		t.Errorf("the QP has sent with %d calls and received with %d, all QPs together with %d and %d",
			own.SendCalls, own.ReceiveCalls, all.SendCalls, all.ReceiveCalls)
	}
}
