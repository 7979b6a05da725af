package iwarp_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/mpa/layout"
)

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
		t.Run(c.fpdus.String(), func(t *testing.T) {
			ini, res := setup{Dialer: iwarp.Dialer{QP: iwarp.QPConfig{FPDUs: c.fpdus}}}.connect(t)
			src, dst := ini.mr(1<<20, 0), res.mr(1<<20, iwarp.RemoteWrite)
			for range 3 {
				if _, err := ini.Write(within(t), src.Slice(0, 1<<20), dst.Remote(0)); err != nil {
					t.Fatal(err)
				}
			}
			var s iwarp.Stats
			until(t, func() bool { // who sends counts a write when it is over, which is after its completion
				s = ini.Stats()
				total := ini.rnic.Stats()
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
			if s.SocketWrites < 3 || c.aligned && s.AlignedWrites < s.SocketWrites/2 || !c.aligned && s.AlignedWrites > 0 {
				t.Errorf("%d of %d writes are aligned", s.AlignedWrites, s.SocketWrites)
			}
		})
	}
}

// There is no other way.
func TestFPDUsUnknown(t *testing.T) {
	e := newEnd(t, iwarp.RNICConfig{})
	if _, err := e.pd.CreateQP(iwarp.QPConfig{FPDUs: iwarp.FPDUsLarge + 1}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("err = %v", err)
	}
	if got := (iwarp.FPDUsLarge + 1).String(); got != "unknown" {
		t.Errorf("it is called %q", got)
	}
}
