package iwarp_test

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestResizeBounds goes to each bound of a Resize, and one step beyond. A refused Resize leaves the depth as it was.
func TestResizeBounds(t *testing.T) {
	rnic := newRNIC(t, iwarp.RNICConfig{})
	cq := newCQ(t, rnic, 4)
	wantBounds(t, "CQ", cq, 1, iwarp.MaxCQDepth)

	must(t, cq.Resize(4))
	ini, _ := setup{Dialer: iwarp.Dialer{PD: newPD(t, rnic), QP: iwarp.QPConfig{RecvCQ: cq, RecvDepth: 3}}}.connect(t)
	for id := range uint64(3) {
		ini.postRecv(id)
	}
	must(t, ini.Abort())
	wait(t, ini.Done(), "the receives' completions")
	wantBounds(t, "CQ with 3 completions", cq, 3, iwarp.MaxCQDepth)

	pd := newPD(t, newRNIC(t, iwarp.RNICConfig{}))
	srq, err := pd.CreateSRQ(iwarp.SRQConfig{Depth: 20, PerQP: 8})
	must(t, err)
	wantBounds(t, "SRQ with a share of 8", srq, 8, iwarp.MaxQueueDepth)
	must(t, srq.Resize(20))
	must(t, srq.Arm(12))
	wantBounds(t, "SRQ with a limit of 12", srq, 12, iwarp.MaxQueueDepth)
	must(t, srq.Resize(20))
	_, err = srq.PostRecvs(make([]iwarp.RecvWR, 15))
	must(t, err)
	wantBounds(t, "SRQ with 15 receives", srq, 15, iwarp.MaxQueueDepth)

	srq, err = pd.CreateSRQ(iwarp.SRQConfig{Depth: 20, PerQP: 1})
	must(t, err)
	wantBounds(t, "SRQ", srq, 1, iwarp.MaxQueueDepth)
}

// wantBounds makes a queue as short and as deep as it may be.
func wantBounds(t *testing.T, what string, q interface {
	Resize(depth int) error
	Depth() int
}, least, most int) {
	t.Helper()
	for _, depth := range []int{least, most, least} {
		if err := q.Resize(depth); err != nil || q.Depth() != depth {
			t.Errorf("%s: depth %d: %v, it is %d", what, depth, err, q.Depth())
		}
	}
	for _, depth := range []int{least - 1, most + 1} {
		if err := q.Resize(depth); !errors.Is(err, iwarp.ErrInvalid) || q.Depth() != least {
			t.Errorf("%s: depth %d: %v, it is %d", what, depth, err, q.Depth())
		}
	}
}

// TestResizeUnpolled has receives in a Shared Receive Queue, and others that messages have taken and whose completions
// nobody has polled: all of them need their places.
func TestResizeUnpolled(t *testing.T) {
	s := newShared(t, iwarp.SRQConfig{Depth: 4})
	ini, _ := s.connect(t)
	s.post(t, 2)
	sends(ini, 2)
	until(t, func() bool { return s.srq.Len() == 0 }, "both messages")
	s.post(t, 1)
	wantBounds(t, "SRQ", s.srq, 3, iwarp.MaxQueueDepth)
}
