package iwarp_test

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/rdmap"
)

// TestReplaceMR has an MR take the place of another: a peer that knows the STag writes into the new memory as far as that allows, and need not be told.
func TestReplaceMR(t *testing.T) {
	overAll(t, func(t *testing.T, s setup) {
		ini, res := s.endsSoon().connect(t)
		old := res.mr(8, iwarp.RemoteWrite)
		at := old.Remote(0)
		writesTo(t, ini, res, "old", at, 0)
		now := res.replaces(old, 8, iwarp.RemoteWrite)
		if now.STag() != old.STag() || old.Valid() || !errors.Is(old.Deregister(), iwarp.ErrClosed) {
			t.Errorf("%#x after %#x, which is valid: %t", now.STag(), old.STag(), old.Valid())
		}
		writesTo(t, ini, res, "new", at, 0)
		if string(old.Bytes()[:3]) != "old" || string(now.Bytes()[:3]) != "new" {
			t.Errorf("%q, and %q after it", old.Bytes(), now.Bytes())
		}
		last := res.replaces(now, 8, iwarp.RemoteRead)
		refusedWrite(t, ini, res, at, rdmap.CodeDDPSTagNotAssociated)
		should(t, last.Deregister())
	})
}

// replaces registers octets in the place of an MR.
func (e *end) replaces(old *iwarp.MR, octets int, a iwarp.Access) *iwarp.MR {
	e.t.Helper()
	mr, err := e.pd.RegisterOptions(make([]byte, octets), iwarp.MROptions{Access: a, Replace: old})
	must(e.t, err)
	return mr
}

// TestReplaceMRCounts: what takes the place of an MR counts as it does, in its Protection Domain and in the RNIC's limits.
func TestReplaceMRCounts(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{MRs: 2, Octets: 24}})
	one, two := newPD(t, rnic), newPD(t, rnic)
	mr, err := one.Register(make([]byte, 8), 0)
	must(t, err)
	for range 3 { // nothing is left of those before
		mr, err = two.RegisterOptions(make([]byte, 16), iwarp.MROptions{Replace: mr})
		must(t, err)
		mr, err = one.RegisterOptions(make([]byte, 8), iwarp.MROptions{Replace: mr})
		must(t, err)
	}
	should(t, two.Close())
	if err := one.Close(); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("a domain with the region closed: %v", err)
	}
	should(t, mr.Deregister())
	should(t, one.Close())
}

// TestReplaceMRMistakes leaves an MR as it is that cannot be replaced, and takes nothing of the limits.
func TestReplaceMRMistakes(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{Limits: iwarp.Limits{MRs: 3}})
	pd, other := newPD(t, rnic), newPD(t, newRNIC(t, iwarp.RNICConfig{}))
	register := func(pd *iwarp.PD) *iwarp.MR {
		mr, err := pd.Register(make([]byte, 8), iwarp.RemoteWrite)
		must(t, err)
		return mr
	}
	mr, gone, foreign := register(pd), register(pd), register(other)
	must(t, gone.Deregister())
	fast, err := pd.AllocMR(1, 8)
	must(t, err)
	w, err := pd.AllocMW(iwarp.MWType1)
	must(t, err)
	must(t, w.Bind(iwarp.Binding{Memory: mr.Slice(0, 8), Access: iwarp.RemoteRead}))
	for what, tt := range map[string]struct {
		o    iwarp.MROptions
		want error
	}{
		"of another RNIC":       {iwarp.MROptions{Replace: foreign}, iwarp.ErrInvalid},
		"an MR of AllocMR":      {iwarp.MROptions{Replace: fast}, iwarp.ErrInvalid},
		"was deregistered":      {iwarp.MROptions{Replace: gone}, iwarp.ErrClosed},
		"Windows are bound":     {iwarp.MROptions{Replace: mr}, iwarp.ErrBadState},
		"MROptions.Base":        {iwarp.MROptions{Replace: mr, Base: 1<<64 - 1}, iwarp.ErrInvalid},
		"access rights 0x80 do": {iwarp.MROptions{Replace: mr, Access: 0x80}, iwarp.ErrInvalid},
	} {
		if _, err := pd.RegisterOptions(make([]byte, 8), tt.o); !errors.Is(err, tt.want) || !contains(err, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !mr.Valid() || !foreign.Valid() {
		t.Error("the MR is not as it was")
	}
	should(t, w.Dealloc())
	should(t, mr.Deregister())
	should(t, fast.Deregister())
	should(t, pd.Close())
}

// TestReplaceInvalidated: a peer that invalidates the STag while another region takes it over invalidates the one or the other, and never neither.
func TestReplaceInvalidated(t *testing.T) {
	ini, res := connect(t)
	o := iwarp.MROptions{Access: iwarp.RemoteWrite | iwarp.RemoteInvalidate}
	o.Replace = res.mr(64, o.Access)
	replace := func() {
		next, err := res.pd.RegisterOptions(make([]byte, 64), o)
		must(t, err)
		o.Replace = next
	}
	for range 3000 {
		must(t, res.PostRecv(&iwarp.RecvWR{}))
		done, stag := make(chan struct{}), o.Replace.STag()
		go func() {
			defer close(done)
			replace()
		}()
		ini.post(&iwarp.SendWR{Op: iwarp.OpSend, Invalidate: stag})
		wc := next(t, res.RecvCQ())
		<-done
		if wc.Status != iwarp.StatusSuccess {
			t.Fatal(wc.Err())
		}
		next(t, ini.SendCQ())
		replace() // which is valid, whatever the one before was
	}
}
