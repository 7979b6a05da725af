package iwarp_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestMistakesSay makes mistakes: the error says which, what to do about it, and that it is this package's.
func TestMistakesSay(t *testing.T) {
	a, b := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	srq, err := a.pd.CreateSRQ(iwarp.SRQConfig{})
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
		"SRQ": {func() error { _, err := b.pd.CreateQP(iwarp.QPConfig{SRQ: srq}); return err }, iwarp.ErrInvalid, []string{"SRQ of another RNIC"}},
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
