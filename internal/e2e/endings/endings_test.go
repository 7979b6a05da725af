package endings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/emulation"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// An ending brings a connection to an end, and returns the QP to look at.
type ending func(t *testing.T) *rig.End

// endings are the rows of the table in docs/endings.md.
var endings = map[string]ending{
	"Close here":           func(t *testing.T) *rig.End { return endIni(t, func(ini, _ *rig.End) { _ = ini.Close() }) },
	"Close by the peer":    func(t *testing.T) *rig.End { return endIni(t, func(_, res *rig.End) { _ = res.Close() }) },
	"Modify(StateClosing)": func(t *testing.T) *rig.End { return endIni(t, modified(t, iwarp.StateClosing)) },
	"Abort here":           func(t *testing.T) *rig.End { return endIni(t, func(ini, _ *rig.End) { _ = ini.Abort() }) },
	"Abort by the peer":    func(t *testing.T) *rig.End { return endIni(t, func(_, res *rig.End) { _ = res.Abort() }) },
	"Modify(StateError)":   func(t *testing.T) *rig.End { return endIni(t, modified(t, iwarp.StateError)) },
	"Modify(StateTerminate)": func(t *testing.T) *rig.End {
		return endIni(t, modified(t, iwarp.StateTerminate))
	},
	"Shutdown of the RNIC": func(t *testing.T) *rig.End {
		return endIni(t, func(ini, _ *rig.End) {
			rig.Should(t, ini.RNIC.Shutdown(rig.Within(t)))
		})
	},
	"Modify(StateClosing) with work under way": func(t *testing.T) *rig.End {
		ini, p := rig.InitiateToPeer(t)
		ini.MustPostRecv(1)
		sink := ini.MR(8, iwarp.LocalWrite)
		ini.MustPost(&iwarp.SendWR{ID: 2, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 8)},
			Remote: iwarp.Remote{STag: 5}})
		p.Want(rdmap.OpWrite) // RTR
		p.Want(rdmap.OpReadRequest)
		modified(t, iwarp.StateClosing)(ini, nil)
		return ini
	},
	"Close, and the peer does not": func(t *testing.T) *rig.End {
		res, p := rig.RespondToPeer(t, iwarp.QPConfig{CloseTimeout: 20 * time.Millisecond})
		p.Send(p.Write(1, 0, nil))
		res.MustPostRecv(1)
		_ = res.Close()
		return res
	},
	"An error found here": func(t *testing.T) *rig.End {
		ini, res := rig.Connect(t)
		res.MustPostRecv(1)
		rig.WriteNowhere(ini)
		return res
	},
	"An error found by the peer": func(t *testing.T) *rig.End {
		return endIni(t, func(ini, _ *rig.End) { rig.WriteNowhere(ini) })
	},
	"Close while Sends wait for receives": func(t *testing.T) *rig.End {
		ini, res := rig.Setup{Accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{RNR: iwarp.RNRPolicy{Messages: 2}}}}.Connect(t)
		rig.TwoWait(t, ini, res)
		_ = res.Close()
		return res
	},
	"A FIN inside an FPDU": func(t *testing.T) *rig.End {
		res, p := rig.RespondToPeer(t, iwarp.QPConfig{})
		res.MustPostRecv(1)
		p.Send(p.Write(1, 0, nil))
		p.Send(p.Write(1, 0, nil)[:9])
		_ = p.Link.CloseWrite()
		p.WantTerminate(rdmap.CodeMPAConnectionLost)
		p.WantClosed()
		return res
	},
	"IdleTimeout": func(t *testing.T) *rig.End {
		_, res := rig.Setup{Accept: iwarp.AcceptConfig{Prepare: rig.OneReceive}}.Idles(t)
		return res
	},
	"GapTimeout": func(t *testing.T) *rig.End {
		res := rig.NewEnd(t, iwarp.RNICConfig{})
		ln, err := (&iwarp.ListenConfig{Network: new(iwarpsctp.Network), PD: res.PD, RequestTimeout: -1}).Listen(
			rig.Within(t), "sctp4", "127.0.0.1:0")
		rig.Must(t, err)
		t.Cleanup(func() { _ = ln.Close() })
		accepted := res.Takes(ln, iwarp.AcceptConfig{QP: iwarp.QPConfig{GapTimeout: 20 * time.Millisecond},
			Prepare: rig.OneReceive})
		p := rig.NewSCTPPeer(t, ln)
		p.Says(17, "\x00\x00\x00\x01")
		p.Hears()
		rig.Must(t, <-accepted)
		p.Says(16, rig.SendAhead(2, 2))
		p.WantTerminated()
		if !errors.Is(res.Err(), iwarp.ErrGap) {
			t.Errorf("ended with %v", res.Err())
		}
		p.Says(17, "\x00\x03\x00\x04")
		p.Says(16, rig.SendAhead(1, 1))
		return res
	},
	"RTRTimeout": func(t *testing.T) *rig.End {
		res := rig.NewEnd(t, iwarp.RNICConfig{})
		_, req := rig.Ask(t, rig.Listen(t, iwarp.ListenConfig{PD: res.PD, RTRTimeout: 20 * time.Millisecond}),
			rig.Frame(rig.Request(2)))
		var err error
		if res.QP, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{Prepare: rig.OneReceive}); err != nil {
			t.Fatal(err)
		}
		return res
	},
	"CQ overflow": func(t *testing.T) *rig.End {
		rnic := rig.NewRNIC(t, iwarp.RNICConfig{})
		ini, res := rig.Setup{Accept: iwarp.AcceptConfig{PD: rig.NewPD(t, rnic),
			QP: iwarp.QPConfig{RecvCQ: rig.NewCQ(t, rnic, 1), SendCQ: rig.NewCQ(t, rnic, 200)}}}.Connect(t)
		res.MustPostRecv(1)
		res.MustPostRecv(2)
		for range 2 {
			ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true})
		}
		return res
	},
	"Close of the RNIC": func(t *testing.T) *rig.End {
		return endIni(t, func(ini, _ *rig.End) { rig.Should(t, ini.RNIC.Close()) })
	},
	"Shutdown whose context has ended": func(t *testing.T) *rig.End {
		res, p := rig.RespondToPeer(t, iwarp.QPConfig{CloseTimeout: time.Hour, CloseLimit: -1})
		p.Send(p.Write(1, 0, nil))
		res.MustPostRecv(1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := res.RNIC.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		} else {
			rig.WantSaid(t, "Shutdown", err, context.DeadlineExceeded, "aborted: 1 of 1")
		}
		rig.WantSaid(t, "Err", res.Err(), context.DeadlineExceeded, "Shutdown ran out of time")
		return res
	},
	"Close of a Responder before the first FPDU": func(t *testing.T) *rig.End {
		ini, res := rig.Setup{Dialer: iwarp.Dialer{MPA: mpa.Offer{ClientServer: true}}}.Connect(t)
		res.MustPostRecv(1)
		res.MustPost(&iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Inline: []byte("x")})
		if err := res.Close(); !errors.Is(err, iwarp.ErrAwaitingInitiator) {
			t.Errorf("Close: %v", err)
		}
		if err := ini.WantEnd(); err != nil {
			t.Errorf("the Initiator: %v", err)
		}
		return res
	},
	"Closed by a Listener to make room": func(t *testing.T) *rig.End {
		res := rig.NewEnd(t, iwarp.RNICConfig{})
		ln := rig.Listen(t, iwarp.ListenConfig{PD: res.PD, MaxHalfOpen: 1})
		_, req := rig.Ask(t, ln, rig.Frame(rig.Request(2)))
		var err error
		if res.QP, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{Prepare: rig.OneReceive}); err != nil {
			t.Fatal(err)
		}
		rig.DialPeer(t, ln.Addr()) // before the first has sent its RTR indication
		return res
	},
}

// TestLastWQEAtEveryEnd: however a connection ends, a QP with a Shared Receive Queue tells once that it takes no more
// from it.
func TestLastWQEAtEveryEnd(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(here, there *rig.End){
		"close here":                 func(here, _ *rig.End) { _ = here.Close() },
		"close by the peer":          func(_, there *rig.End) { _ = there.Close() },
		"abort here":                 func(here, _ *rig.End) { _ = here.Abort() },
		"abort by the peer":          func(_, there *rig.End) { _ = there.Abort() },
		"an error found here":        func(_, there *rig.End) { rig.WriteNowhere(there) },
		"an error found by the peer": func(here, _ *rig.End) { rig.WriteNowhere(here) },
		"Modify(StateClosing)":       modified(t, iwarp.StateClosing),
		"Modify(StateError)":         modified(t, iwarp.StateError),
	} {
		s := rig.NewSRQRig(t, iwarp.SRQConfig{})
		there, here := s.Connect(t)
		do(here, there)
		rig.Wait(t, here.Done(), name)
		_ = here.Close()
		if got, want := eventsAtEnd(here, t), iwarp.EventLastWQE.String(); strings.Count(got, want) != 1 {
			t.Errorf("%s: events %q, want one %q", name, got, want)
		}
	}
}

func endIni(t *testing.T, do func(ini, res *rig.End)) *rig.End {
	t.Helper()
	ini, res := rig.Connect(t)
	rig.Works(t, ini, res)
	ini.MustPostRecv(1)
	do(ini, res)
	return ini
}

func modified(t *testing.T, s iwarp.State) func(ini, res *rig.End) {
	return func(ini, _ *rig.End) {
		rig.Should(t, ini.Modify(s))
	}
}

// TestEndings brings about every end of the table in docs/endings.md, and compares what
// each call, completion and event says.
//
// Proves D08, D34, D35, P38, Q15, R08: how a connection has ended reaches the consumer.
func TestEndings(t *testing.T) {
	rows := endingRows(t)
	for name, do := range endings {
		row, ok := rows[name]
		if !ok {
			t.Errorf("docs/endings.md has no row %q", name)
			continue
		}
		delete(rows, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := do(t)
			rig.Wait(t, e.Done(), "the end of the connection")
			if got := e.State().String(); got != row.state {
				t.Errorf("state %s, want %s", got, row.state)
			}
			for what, err := range afterwards(e, t) {
				if !errors.Is(err, iwarp.ErrClosed) {
					t.Errorf("%s: not ErrClosed: %v", what, err)
				}
				if got := kindOf(err); got != row.err && !strings.HasPrefix(what, "Wait") {
					t.Errorf("%s: %s, want %s: %v", what, got, row.err, err)
				}
				if isCall(what) && !errors.Is(err, iwarp.ErrBadState) {
					t.Errorf("%s: not ErrBadState: %v", what, err)
				}
			}
			if err := e.Close(); (err == nil) != (row.close == "nil") || err != nil && kindOf(err) != row.err {
				t.Errorf("Close: %v, want %s", err, row.close)
			}
			if err := e.SendCQ().Wait(rig.Within(t)); name != "CQ overflow" && !errors.Is(err, iwarp.ErrNoQP) {
				t.Errorf("Wait after Close: %v", err)
			}
			if got := eventsAtEnd(e, t); got != row.events {
				t.Errorf("events %q, want %q", got, row.events)
			}
		})
	}
	for name := range rows {
		t.Errorf("docs/endings.md has a row %q that is not tested", name)
	}
}

// isCall reports whether what is in afterwards is the name of a call that takes work, or changes the state.
func isCall(what string) bool {
	return what != "Err" && !strings.HasPrefix(what, "completion") && !strings.HasPrefix(what, "Wait")
}

type endingRow struct{ state, err, events, close string }

func endingRows(t *testing.T) map[string]endingRow {
	t.Helper()
	root, err := testrig.Root()
	rig.Must(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "endings.md"))
	rig.Must(t, err)
	rows := map[string]endingRow{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 5 || strings.Contains(line, "How it ends") {
			continue
		}
		rows[strings.TrimPrefix(cells[0], "| ")] = endingRow{cells[1], cells[2], cells[3],
			strings.TrimSuffix(cells[4], " |")}
	}
	return rows
}

// kindOf is what an error is, in the words of the table.
func kindOf(err error) string {
	var term *iwarp.TerminateError
	switch {
	case errors.As(err, &term) && term.Remote:
		return fmt.Sprintf("TerminateError 0x%04x from the peer", uint16(term.Code))
	case errors.As(err, &term):
		return fmt.Sprintf("TerminateError 0x%04x found here", uint16(term.Code))
	case errors.Is(err, iwarp.ErrPeerClosed):
		return "ErrPeerClosed"
	case errors.Is(err, iwarp.ErrAwaitingInitiator):
		return "ErrAwaitingInitiator"
	case errors.Is(err, iwarp.ErrConnectionLost):
		return "ErrConnectionLost"
	case errors.Is(err, iwarp.ErrIdle):
		return "ErrIdle"
	case errors.Is(err, iwarp.ErrNoRTR):
		return "ErrNoRTR"
	case errors.Is(err, iwarp.ErrCQOverflow):
		return "ErrCQOverflow"
	case errors.Is(err, iwarp.ErrEvicted):
		return "ErrEvicted"
	case errors.Is(err, context.DeadlineExceeded):
		return "context.DeadlineExceeded"
	case errors.Is(err, iwarp.ErrClosed):
		return "ErrClosed"
	}
	return "something else"
}

// afterwards returns the errors of all calls on a QP that has ended, and of what was
// flushed.
func afterwards(e *rig.End, t *testing.T) map[string]error {
	t.Helper()
	ctx := rig.Within(t)
	wrs := []iwarp.SendWR{{Inline: []byte("x")}}
	n, posted := e.PostSends(wrs)
	_, written := e.Write(ctx, iwarp.SGE{}, iwarp.Remote{})
	_, read := e.Read(ctx, iwarp.SGE{}, iwarp.Remote{})
	_, received := e.Recv(ctx, iwarp.SGE{})
	errs := map[string]error{
		"Err": e.Err(), "PostSend": e.PostSend(&wrs[0]), "PostSends": posted, "PostAll": emulation.PostAll(e.QP, &wrs),
		"PostRecv": e.PostRecv(&iwarp.RecvWR{}),
		"Send":     e.Send(ctx, iwarp.SGE{}), "Write": written, "Read": read, "Recv": received,
		"CloseWrite": e.CloseWrite(), "Modify": e.Modify(iwarp.StateClosing),
	}
	m, givenAll := e.PostRecvs([]iwarp.RecvWR{{}})
	if n > 0 || m > 0 {
		t.Errorf("%d requests and %d receives posted", n, m)
	}
	errs["PostRecvs"] = givenAll
	_, errs["FetchAdd"] = e.FetchAdd(ctx, iwarp.Remote{}, 1)
	_, errs["CompareSwap"] = e.CompareSwap(ctx, iwarp.Remote{}, 1, 2)
	_, errs["WriteImm"] = e.WriteImm(ctx, iwarp.SGE{}, iwarp.Remote{}, 1)
	if e.State() == iwarp.StateError { // from StateClosed they lead to another connection
		connectsAgain(e, t, errs)
	}
	for _, cq := range []*iwarp.CQ{e.SendCQ(), e.RecvCQ()} {
		var wc [1]iwarp.WC
		for cq.Poll(wc[:]) == 1 {
			if err := wc[0].Err(); err != nil {
				errs[fmt.Sprint("completion of ", wc[0].Op, wc[0].ID)] = err
			}
		}
		err := overflow(cq.Wait(ctx))
		if err != iwarp.ErrClosed && !errors.Is(err, iwarp.ErrNoQP) {
			t.Errorf("Wait: %v, want ErrNoQP", err)
		}
		errs[fmt.Sprintf("Wait on %p", cq)] = err
	}
	return errs
}

// connects adds the errors of all calls that would give a QP another connection.
func connectsAgain(e *rig.End, t *testing.T, errs map[string]error) {
	t.Helper()
	a, b := testrig.Pipe("a", "b")
	s, _ := rig.NewShuffled(1, nil)
	_, req := rig.Ask(t, rig.Listen(t, iwarp.ListenConfig{}), rig.Frame(rig.Request(2)))
	n := rig.Negotiated(mpa.RoleInitiator)
	errs["ModifyStream"] = e.ModifyStream(iwarp.StreamAttr{})
	errs["ModifyRTS"] = e.ModifyRTS(a, n, nil)
	errs["ModifyRTSOver"] = e.ModifyRTSOver(s, n, nil)
	errs["DialQP"] = new(iwarp.Dialer).DialQP(rig.Within(t), e.QP, "tcp", "127.0.0.1:1")
	errs["InitiateQP"] = new(iwarp.Dialer).InitiateQP(rig.Within(t), e.QP, b, nil)
	errs["AcceptQP"] = req.AcceptQP(rig.Within(t), e.QP, iwarp.AcceptConfig{})
	rig.Should(t, req.Close())
}

// overflow takes the error of a CQ that is lost itself for one of a QP.
func overflow(err error) error {
	if errors.Is(err, iwarp.ErrCQOverflow) {
		return iwarp.ErrClosed
	}
	return err
}

// events returns the kinds of all events of the QP, which ends its RNIC.
func eventsAtEnd(e *rig.End, t *testing.T) string {
	t.Helper()
	_ = e.RNIC.Close()
	var kinds []string
	for {
		ev, err := e.RNIC.NextEvent(rig.Within(t))
		if err != nil {
			break
		}
		if ev.QP == e.QP && ev.Kind != iwarp.EventEstablished { // which is of its beginning
			kinds = append(kinds, ev.Kind.String())
		}
	}
	if len(kinds) == 0 {
		return "-"
	}
	return strings.Join(kinds, ", ")
}
