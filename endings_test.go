package iwarp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// An ending brings a connection to an end, and returns the QP to look at.
type ending func(t *testing.T) *end

// endings are the rows of the table in docs/endings.md.
var endings = map[string]ending{
	"Close here":           func(t *testing.T) *end { return endIni(t, func(ini, _ *end) { _ = ini.Close() }) },
	"Close by the peer":    func(t *testing.T) *end { return endIni(t, func(_, res *end) { _ = res.Close() }) },
	"Modify(StateClosing)": func(t *testing.T) *end { return endIni(t, modified(t, iwarp.StateClosing)) },
	"Abort here":           func(t *testing.T) *end { return endIni(t, func(ini, _ *end) { _ = ini.Abort() }) },
	"Abort by the peer":    func(t *testing.T) *end { return endIni(t, func(_, res *end) { _ = res.Abort() }) },
	"Modify(StateError)":   func(t *testing.T) *end { return endIni(t, modified(t, iwarp.StateError)) },
	"Modify(StateTerminate)": func(t *testing.T) *end {
		return endIni(t, modified(t, iwarp.StateTerminate))
	},
	"Shutdown of the RNIC": func(t *testing.T) *end {
		return endIni(t, func(ini, _ *end) {
			should(t, ini.rnic.Shutdown(within(t)))
		})
	},
	"Modify(StateClosing) with work under way": func(t *testing.T) *end {
		ini, p := initiateToPeer(t)
		ini.postRecv(1)
		sink := ini.mr(8, iwarp.LocalWrite)
		ini.post(&iwarp.SendWR{ID: 2, Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 8)}, Remote: iwarp.Remote{STag: 5}})
		p.want(rdmap.OpWrite) // RTR
		p.want(rdmap.OpReadRequest)
		modified(t, iwarp.StateClosing)(ini, nil)
		return ini
	},
	"Close, and the peer does not": func(t *testing.T) *end {
		res, p := respondToPeer(t, iwarp.QPConfig{CloseTimeout: 20 * time.Millisecond})
		p.send(p.write(1, 0, nil))
		res.postRecv(1)
		_ = res.Close()
		return res
	},
	"An error found here": func(t *testing.T) *end {
		ini, res := connect(t)
		res.postRecv(1)
		writeNowhere(ini)
		return res
	},
	"An error found by the peer": func(t *testing.T) *end {
		return endIni(t, func(ini, _ *end) { writeNowhere(ini) })
	},
	"Close while Sends wait for receives": func(t *testing.T) *end {
		ini, res := setup{accept: iwarp.AcceptConfig{QP: iwarp.QPConfig{Unready: iwarp.Unready{Messages: 2}}}}.connect(t)
		twoWait(t, ini, res)
		_ = res.Close()
		return res
	},
	"A FIN inside an FPDU": func(t *testing.T) *end {
		res, p := respondToPeer(t, iwarp.QPConfig{})
		res.postRecv(1)
		p.send(p.write(1, 0, nil))
		p.send(p.write(1, 0, nil)[:9])
		_ = p.link.CloseWrite()
		p.wantTerminate(rdmap.CodeMPAConnectionLost)
		p.wantClosed()
		return res
	},
	"IdleTimeout": func(t *testing.T) *end {
		_, res := setup{accept: iwarp.AcceptConfig{Prepare: oneReceive}}.idles(t)
		return res
	},
	"GapTimeout": func(t *testing.T) *end {
		res := newEnd(t, iwarp.RNICConfig{})
		ln, err := iwarp.Listen(within(t), "sctp4", "127.0.0.1:0", iwarp.ListenConfig{PD: res.pd, RequestTimeout: -1})
		must(t, err)
		t.Cleanup(func() { _ = ln.Close() })
		accepted := res.takes(ln, iwarp.AcceptConfig{QP: iwarp.QPConfig{GapTimeout: 20 * time.Millisecond}, Prepare: oneReceive})
		p := newSCTPPeer(t, ln)
		p.says(17, "\x00\x00\x00\x01")
		p.hears()
		must(t, <-accepted)
		p.says(16, sendAhead(2, 2))
		p.wantTerminated()
		if !errors.Is(res.Err(), iwarp.ErrGap) {
			t.Errorf("ended with %v", res.Err())
		}
		p.says(17, "\x00\x03\x00\x04")
		p.says(16, sendAhead(1, 1))
		return res
	},
	"RTRTimeout": func(t *testing.T) *end {
		res := newEnd(t, iwarp.RNICConfig{})
		_, req := ask(t, listen(t, iwarp.ListenConfig{PD: res.pd, RTRTimeout: 20 * time.Millisecond}), frame(request(2)))
		var err error
		if res.QP, err = req.Accept(within(t), iwarp.AcceptConfig{Prepare: oneReceive}); err != nil {
			t.Fatal(err)
		}
		return res
	},
	"CQ overflow": func(t *testing.T) *end {
		rnic := newRNIC(t, iwarp.RNICConfig{})
		ini, res := setup{accept: iwarp.AcceptConfig{PD: newPD(t, rnic), QP: iwarp.QPConfig{RecvCQ: newCQ(t, rnic, 1), SendCQ: newCQ(t, rnic, 200)}}}.connect(t)
		res.postRecv(1)
		res.postRecv(2)
		for range 2 {
			ini.post(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true})
		}
		return res
	},
	"Close of the RNIC": func(t *testing.T) *end { return endIni(t, func(ini, _ *end) { should(t, ini.rnic.Close()) }) },
	"Shutdown whose context has ended": func(t *testing.T) *end {
		res, p := respondToPeer(t, iwarp.QPConfig{CloseTimeout: time.Hour, CloseLimit: -1})
		p.send(p.write(1, 0, nil))
		res.postRecv(1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := res.rnic.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		} else {
			wantSaid(t, "Shutdown", err, context.DeadlineExceeded, "aborted: 1 of 1")
		}
		wantSaid(t, "Err", res.Err(), context.DeadlineExceeded, "Shutdown ran out of time")
		return res
	},
	"Close of a Responder that was not heard": func(t *testing.T) *end {
		ini, res := setup{Dialer: iwarp.Dialer{MPA: mpa.Offer{ClientServer: true}}}.connect(t)
		res.postRecv(1)
		res.post(&iwarp.SendWR{ID: 2, Op: iwarp.OpSend, Inline: []byte("x")})
		if err := res.Close(); !errors.Is(err, iwarp.ErrAwaitingInitiator) {
			t.Errorf("Close: %v", err)
		}
		if err := ini.wantEnd(); err != nil {
			t.Errorf("the Initiator: %v", err)
		}
		return res
	},
	"Closed by a Listener to make room": func(t *testing.T) *end {
		res := newEnd(t, iwarp.RNICConfig{})
		ln := listen(t, iwarp.ListenConfig{PD: res.pd, MaxHalfOpen: 1})
		_, req := ask(t, ln, frame(request(2)))
		var err error
		if res.QP, err = req.Accept(within(t), iwarp.AcceptConfig{Prepare: oneReceive}); err != nil {
			t.Fatal(err)
		}
		dialPeer(t, ln.Addr()) // before the first has sent its RTR indication
		return res
	},
}

// TestLastWQEAtEveryEnd: however a connection ends, a QP with a Shared Receive Queue tells once that it takes no more from it.
func TestLastWQEAtEveryEnd(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(here, there *end){
		"close here":                 func(here, _ *end) { _ = here.Close() },
		"close by the peer":          func(_, there *end) { _ = there.Close() },
		"abort here":                 func(here, _ *end) { _ = here.Abort() },
		"abort by the peer":          func(_, there *end) { _ = there.Abort() },
		"an error found here":        func(_, there *end) { writeNowhere(there) },
		"an error found by the peer": func(here, _ *end) { writeNowhere(here) },
		"Modify(StateClosing)":       modified(t, iwarp.StateClosing),
		"Modify(StateError)":         modified(t, iwarp.StateError),
	} {
		s := newShared(t, iwarp.SRQConfig{})
		there, here := s.connect(t)
		do(here, there)
		wait(t, here.Done(), name)
		_ = here.Close()
		if got, want := here.events(t), iwarp.EventLastWQE.String(); strings.Count(got, want) != 1 {
			t.Errorf("%s: events %q, want one %q", name, got, want)
		}
	}
}

func endIni(t *testing.T, do func(ini, res *end)) *end {
	t.Helper()
	ini, res := connect(t)
	works(t, ini, res)
	ini.postRecv(1)
	do(ini, res)
	return ini
}

// oneReceive is a Prepare.
func oneReceive(qp *iwarp.QP) error { return qp.PostRecv(&iwarp.RecvWR{ID: 1}) }

func modified(t *testing.T, s iwarp.State) func(ini, res *end) {
	return func(ini, _ *end) {
		should(t, ini.Modify(s))
	}
}

func writeNowhere(e *end) {
	e.post(&iwarp.SendWR{Op: iwarp.OpWrite, Inline: []byte("x"), Remote: iwarp.Remote{STag: 7}, Unsignaled: true})
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
			wait(t, e.Done(), "the end of the connection")
			if got := e.State().String(); got != row.state {
				t.Errorf("state %s, want %s", got, row.state)
			}
			for what, err := range e.afterwards(t) {
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
			if err := e.SendCQ().Wait(within(t)); name != "CQ overflow" && !errors.Is(err, iwarp.ErrNoQP) {
				t.Errorf("Wait after Close: %v", err)
			}
			if got := e.events(t); got != row.events {
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
	text, err := os.ReadFile("docs/endings.md")
	must(t, err)
	rows := map[string]endingRow{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 5 || strings.Contains(line, "How it ends") {
			continue
		}
		rows[strings.TrimPrefix(cells[0], "| ")] = endingRow{cells[1], cells[2], cells[3], strings.TrimSuffix(cells[4], " |")}
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
func (e *end) afterwards(t *testing.T) map[string]error {
	t.Helper()
	ctx := within(t)
	wrs := []iwarp.SendWR{{Inline: []byte("x")}}
	n, posted := e.PostSends(wrs)
	_, written := e.Write(ctx, iwarp.SGE{}, iwarp.Remote{})
	_, read := e.Read(ctx, iwarp.SGE{}, iwarp.Remote{})
	_, received := e.Recv(ctx, iwarp.SGE{})
	errs := map[string]error{
		"Err": e.Err(), "PostSend": e.PostSend(&wrs[0]), "PostSends": posted, "PostAll": e.PostAll(wrs), "PostRecv": e.PostRecv(&iwarp.RecvWR{}),
		"Send": e.Send(ctx, iwarp.SGE{}), "Write": written, "Read": read, "Recv": received,
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
		e.connects(t, errs)
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
func (e *end) connects(t *testing.T, errs map[string]error) {
	t.Helper()
	a, b := testrig.Pipe("a", "b")
	s, _ := newShuffled(1, nil)
	_, req := ask(t, listen(t, iwarp.ListenConfig{}), frame(request(2)))
	n := negotiated(mpa.RoleInitiator)
	errs["ModifyStream"] = e.ModifyStream(iwarp.StreamAttr{})
	errs["ModifyRTS"] = e.ModifyRTS(a, n, nil)
	errs["ModifyRTSOver"] = e.ModifyRTSOver(s, n, nil)
	errs["DialQP"] = new(iwarp.Dialer).DialQP(within(t), e.QP, "tcp", "127.0.0.1:1")
	errs["InitiateQP"] = new(iwarp.Dialer).InitiateQP(within(t), e.QP, b, nil)
	errs["AcceptQP"] = req.AcceptQP(within(t), e.QP, iwarp.AcceptConfig{})
	should(t, req.Close())
}

// overflow takes the error of a CQ that is lost itself for one of a QP.
func overflow(err error) error {
	if errors.Is(err, iwarp.ErrCQOverflow) {
		return iwarp.ErrClosed
	}
	return err
}

// events returns the kinds of all events of the QP, which ends its RNIC.
func (e *end) events(t *testing.T) string {
	t.Helper()
	_ = e.rnic.Close()
	var kinds []string
	for {
		ev, err := e.rnic.NextEvent(within(t))
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
