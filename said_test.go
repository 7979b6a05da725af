package iwarp_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestModifySays asks for transitions that do not exist: the error says what to do instead.
func TestModifySays(t *testing.T) {
	ini, _ := connect(t)
	idle := create(t, ini.pd, iwarp.QPConfig{})
	for _, c := range []struct {
		qp    *iwarp.QP
		to    iwarp.State
		is    error
		words string
	}{
		{ini.QP, iwarp.StateIdle, iwarp.ErrBadState, "end the connection first"},
		{ini.QP, iwarp.StateRTS, iwarp.ErrBadState, "ModifyRTS"},
		{ini.QP, iwarp.StateClosed, iwarp.ErrInvalid, "Modify to Closing"},
		{ini.QP, iwarp.StateClosed + 1, iwarp.ErrInvalid, "there is no state 6"},
		{idle, 99, iwarp.ErrInvalid, "there is no state 99"},
		{idle, iwarp.StateClosing, iwarp.ErrBadState, "no connection to end"},
		{idle, iwarp.StateTerminate, iwarp.ErrBadState, "no connection to end"},
	} {
		wantSaid(t, c.to.String(), c.qp.Modify(c.to), c.is, c.words)
	}
	wantSaid(t, "CloseWrite", idle.CloseWrite(), iwarp.ErrBadState, "in Idle", "no connection")
}

// TestDeregisteredReceiveSays: who takes the memory of a receive away too early is told to keep it.
func TestDeregisteredReceiveSays(t *testing.T) {
	ini, res := connect(t)
	mr := res.mr(8, iwarp.LocalWrite)
	res.postRecv(1, mr.Slice(0, 8))
	must(t, mr.Deregister())
	sends(ini, 1)
	wait(t, res.Done(), "the end")
	wantSaid(t, "the Send", res.Err(), iwarp.ErrClosed, "memory of the receive", "keep it registered until the receive is complete")
}

// TestMistakesSay makes mistakes: the error says which, what to do about it, and that it is this package's.
func TestMistakesSay(t *testing.T) {
	a, b := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	srq, err := a.pd.CreateSRQ(iwarp.SRQConfig{})
	must(t, err)
	small, err := a.pd.CreateSRQ(iwarp.SRQConfig{Depth: 16, PerQP: 8, Limit: 12})
	must(t, err)
	shared := create(t, a.pd, iwarp.QPConfig{SRQ: srq})
	gone := a.mr(8, iwarp.LocalWrite)
	must(t, gone.Deregister())
	cq := newCQ(t, b.rnic, 1)
	must(t, cq.Close())
	ended := create(t, a.pd, iwarp.QPConfig{})
	must(t, ended.Close())
	last := iwarp.NewRNIC(iwarp.RNICConfig{})
	must(t, last.Close())
	for what, c := range map[string]struct {
		do    func() error
		is    error
		words []string
	}{
		"SRQ":        {func() error { _, err := b.pd.CreateQP(iwarp.QPConfig{SRQ: srq}); return err }, iwarp.ErrInvalid, []string{"SRQ of another RNIC", "with one PD"}},
		"SRQ, PD":    {func() error { _, err := newPD(t, a.rnic).CreateQP(iwarp.QPConfig{SRQ: srq}); return err }, iwarp.ErrInvalid, []string{"SRQ of another Protection Domain", "with one PD"}},
		"CQ":         {func() error { _, err := a.pd.CreateQP(iwarp.QPConfig{SendCQ: newCQ(t, b.rnic, 1)}); return err }, iwarp.ErrInvalid, []string{"CQ of another RNIC", "PD.RNIC"}},
		"Read":       {func() error { return shared.PostSend(&iwarp.SendWR{Op: iwarp.OpRead, Inline: []byte("x")}) }, iwarp.ErrInvalid, []string{"a Read has inline data", "registered memory"}},
		"both":       {func() error { return shared.PostSend(&iwarp.SendWR{Inline: []byte("x"), SGL: make([]iwarp.SGE, 1)}) }, iwarp.ErrInvalid, []string{"one or the other"}},
		"SRQ, share": {func() error { return small.Resize(4) }, iwarp.ErrInvalid, []string{"depth 4", "PerQP, which is 8"}},
		"SRQ, limit": {func() error { return small.Resize(9) }, iwarp.ErrInvalid, []string{"depth 9", "armed, 12", "Arm a lower one"}},
		"base": {func() error {
			_, err := a.pd.RegisterOptions(make([]byte, 4), iwarp.MROptions{Base: math.MaxUint64 - 1})
			return err
		}, iwarp.ErrInvalid, []string{"MROptions.Base 0xfffffffffffffffe with 4 octets", "64 bits"}},
		"deregistered":      {func() error { return srq.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{gone.Slice(0, 8)}}) }, iwarp.ErrInvalid, []string{"register the memory again"}},
		"unix":              {func() error { _, err := iwarp.Dial(within(t), "unix", "x"); return err }, iwarp.ErrInvalid, []string{"Dialer.Initiate", "NewListener"}},
		"PostRecv":          {func() error { return shared.PostRecv(&iwarp.RecvWR{}) }, iwarp.ErrInvalid, []string{"Shared Receive Queue", "post to that"}},
		"Recv":              {func() error { _, err := shared.Recv(within(t), iwarp.SGE{}); return err }, iwarp.ErrInvalid, []string{"post to that"}},
		"Next of a CQ":      {func() error { _, err := cq.Next(within(t)); return err }, iwarp.ErrClosed, []string{"the CQ was closed"}},
		"Next of a dead QP": {func() error { _, err := ended.SendCQ().Next(within(t)); return err }, iwarp.ErrNoQP, []string{"every QP"}},
		"NextEvent":         {func() error { _, err := last.NextEvent(within(t)); return err }, iwarp.ErrClosed, []string{"the RNIC was closed"}},
	} {
		err := c.do()
		wantSaid(t, what, err, c.is, c.words...)
		if !strings.HasPrefix(fmt.Sprint(err), "iwarp: ") || contains(err, iwarp.ErrBadState.Error()) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSaidOnce has errors whose parts could tell the same again, or of another call.
func TestSaidOnce(t *testing.T) {
	idle := create(t, newPD(t, newRNIC(t, iwarp.RNICConfig{})), iwarp.QPConfig{})
	connected, _ := setup{}.connect(t)
	for _, qp := range []*iwarp.QP{idle, connected.QP} {
		must(t, qp.Close())
		_, read := qp.Read(within(t), iwarp.SGE{}, iwarp.Remote{})
		_, write := qp.Write(within(t), iwarp.SGE{}, iwarp.Remote{})
		send, posted := qp.Send(within(t), iwarp.SGE{}), qp.PostSend(&iwarp.SendWR{})
		_, received := qp.Recv(within(t), iwarp.SGE{})
		for call, err := range map[string]error{"read": read, "write": write, "send": send, "post send": posted, "receive": received} {
			if err == nil || !strings.HasPrefix(err.Error(), "iwarp: "+call+": ") || strings.Count(err.Error(), "the QP was closed") != 1 {
				t.Errorf("%s: %v", call, err)
			}
		}
	}
	if s := (iwarp.WC{}).String(); s != "no completion" {
		t.Errorf("a zero WC is %q", s)
	}
}
