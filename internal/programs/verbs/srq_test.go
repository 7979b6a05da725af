//go:build linux && (amd64 || arm64)

package verbs

import "testing"

// TestSRQLimit: the limit gives one event, and is 0 then. "If the value returned for srq_limit in srq_attr is 0, then
// the SRQ limit reached ('low watermark') event is not (or no longer) armed" (ibv_query_srq(3)).
func TestSRQLimit(t *testing.T) {
	p, b := newProgramWith(t, Config{RoCE: true}), roce(t)
	srq, errno := p.d.CreateSRQ(p.context, p.pd, 8, 1, 5)
	must(t, errno)
	a := p.queueOf(srq)
	r := p.region("....", accessLocalWrite)
	for range 3 {
		_, errno := p.d.PostSRQ(srq, &RecvWR{SGL: r.sge(), SGEs: 1})
		must(t, errno)
	}
	limits := func(want uint32) {
		t.Helper()
		if _, limit, errno := p.d.QuerySRQ(srq); errno != fine || uint32(limit) != want {
			t.Errorf("limit %d (%v), want %d", limit, errno, want)
		}
	}
	limits(0)
	must(t, p.d.ModifySRQ(srq, 4, 3)) // the limit of a depth that comes with it
	limits(3)
	must(t, p.d.ModifySRQ(srq, 3, 2))
	must(t, p.d.ModifySRQ(srq, 8, 3))
	a.meet(b.number)
	b.meet(a.number)
	b.send(1, wrSend, b.region("text", 0), nil)
	want(t, "event", p.asyncEvent(), AsyncEvent{asyncSRQLimit, 5})
	limits(0)
}
