package iwarp_test

import (
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestTargets posts invalidations of regions that the QP has no say over: each is refused when it is posted, and the
// connection goes on.
func TestTargets(t *testing.T) {
	ini, res := connect(t)
	apart, err := newPD(t, ini.rnic).Register(make([]byte, 8), iwarp.LocalWrite)
	must(t, err)
	bound, err := ini.pd.RegisterOptions(make([]byte, 8), iwarp.MROptions{QP: create(t, ini.pd, iwarp.QPConfig{})})
	must(t, err)
	gone := ini.mr(8, iwarp.LocalWrite)
	must(t, gone.Deregister())
	for words, mr := range map[string]*iwarp.MR{
		"another RNIC":              res.mr(8, iwarp.LocalWrite),
		"another Protection Domain": apart,
		"bound to another QP":       bound,
		"was deregistered":          gone,
	} {
		wantSaid(t, "Local Invalidate", ini.PostSend(&iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Target: mr}), iwarp.ErrInvalid, words)
		wantSaid(t, "Read", ini.PostSend(&iwarp.SendWR{Op: iwarp.OpRead, Target: mr}), iwarp.ErrInvalid, words)
	}
	own, err := ini.pd.RegisterOptions(make([]byte, 8), iwarp.MROptions{QP: ini.QP})
	must(t, err)
	for id := range uint64(2) { // the second time it is invalid already (RDMA verbs 7)
		ini.post(&iwarp.SendWR{ID: id, Op: iwarp.OpLocalInvalidate, Target: own})
		ini.wantSent(iwarp.OpLocalInvalidate, id, iwarp.StatusSuccess)
	}
	works(t, ini, res)
}

// TestReadTarget has a Read invalidate the region that it reads into, and another Read not.
func TestReadTarget(t *testing.T) {
	ini, res := connect(t)
	sink, src := ini.mr(8, iwarp.LocalWrite), res.mr(8, iwarp.RemoteRead)
	for id, target := range []*iwarp.MR{nil, sink} {
		ini.post(&iwarp.SendWR{ID: uint64(id), Op: iwarp.OpRead, SGL: []iwarp.SGE{sink.Slice(0, 8)}, Remote: src.Remote(0), Target: target})
		ini.wantSent(iwarp.OpRead, uint64(id), iwarp.StatusSuccess)
		if valid := target == nil; sink.Valid() != valid {
			t.Errorf("after Read %d the sink's STag is valid: %t", id, !valid)
		}
	}
	works(t, ini, res)
}
