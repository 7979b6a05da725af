package iwarp_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp"
)

// An operation is what is done for one message, from the request to the last completion at either end.
type operation struct {
	name   string
	octets int
	run    func()
}

// operations are all that there are, posted and waited for in all ways.
func operations(t testing.TB) []operation {
	r := newOpRig(t)
	return append(append(r.messages(), r.local()...), r.waits()...)
}

// TestNoAllocations: in the steady state no operation allocates, and no wait for its completion.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, op := range operations(t) {
		for range 200 { // to the steady state
			op.run()
		}
		runtime.GC()
		if got := testing.AllocsPerRun(500, op.run); got != 0 {
			t.Errorf("%s: %v allocations", op.name, got)
		}
	}
}

// TestSetupAllocations: what a connection takes is bounded that is set up, carries one message each way, and is closed by both ends. Of 145 allocations at both
// ends, 27 are those of the TCP connection. perf/compare measures its time.
func TestSetupAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := newMany(t)
	from, to := c.ini.mr(64, iwarp.LocalWrite).Slice(0, 64), c.res.mr(64, iwarp.LocalWrite).Slice(0, 64)
	const most = 195
	if n := testing.AllocsPerRun(200, func() { c.once(from, to) }); n > most {
		t.Errorf("%v allocations, and %d are the most", n, most)
	}
}

// once has a connection that is used once.
func (c *many) once(from, to iwarp.SGE) {
	c.grow(1)
	ini, res := c.qps[0], c.qps[1]
	must(c.t, ini.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{from}}))
	must(c.t, res.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{to}}))
	must(c.t, ini.Send(context.Background(), from))
	_, err := res.RecvCQ().Next(context.Background())
	must(c.t, err)
	must(c.t, res.Send(context.Background(), to))
	_, err = ini.RecvCQ().Next(context.Background())
	must(c.t, err)
	closeBoth(c.t, ini, res)
	c.qps = c.qps[:0]
}

// BenchmarkOperation measures each operation with its completions, one after the other.
func BenchmarkOperation(b *testing.B) {
	for _, op := range operations(b) {
		b.Run(op.name, func(b *testing.B) {
			b.SetBytes(int64(op.octets))
			b.ReportAllocs()
			for b.Loop() {
				op.run()
			}
		})
	}
}

// An opRig is a connection whose two consumers are one goroutine, with memory at both ends.
type opRig struct {
	testing.TB
	ctx      context.Context
	ini, res *end
	// from and to are opOctets of memory, words one word that Atomic Operations reach.
	from, to, words *iwarp.MR
}

const opOctets = 4096

func newOpRig(t testing.TB) *opRig {
	t.Helper()
	r := &opRig{TB: t, ctx: t.Context()}
	r.ini, r.res = connect(t)
	r.from, r.to = r.ini.mr(opOctets, iwarp.LocalWrite), r.res.mr(opOctets, iwarp.RemoteWrite|iwarp.RemoteRead)
	r.words = r.res.mr(8, iwarp.RemoteAtomic)
	return r
}

// next takes one completion, of success.
func (r *opRig) next(cq *iwarp.CQ) {
	wc, err := cq.Next(r.ctx)
	must(r, err)
	must(r, wc.Err())
}

// done posts a request of the Initiator's and waits for its completion.
func (r *opRig) done(wr *iwarp.SendWR) {
	r.ini.post(wr)
	r.next(r.ini.SendCQ())
}

// received does what brings the Responder a message, and waits for that.
func (r *opRig) received(send func()) func() {
	return func() {
		r.res.postRecv(1, r.to.Slice(0, opOctets))
		send()
		r.next(r.res.RecvCQ())
	}
}

func (r *opRig) write() *iwarp.SendWR {
	return &iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{r.from.Slice(0, opOctets)}, Remote: r.to.Remote(0)}
}

// messages are the operations that reach the peer.
func (r *opRig) messages() []operation {
	const n, burst, inline = opOctets, 50, 64
	all := []iwarp.SGE{r.from.Slice(0, n)}
	short := func() {
		r.ini.post(&iwarp.SendWR{Op: iwarp.OpSend, Inline: r.from.Bytes()[:inline], Unsignaled: true})
	}
	several := []iwarp.SendWR{*r.write(), *r.write(), *r.write(), *r.write()}
	return []operation{
		{name: "posted Write", octets: n, run: func() { r.done(r.write()) }},
		{name: "posted Read", octets: n, run: func() { r.done(&iwarp.SendWR{Op: iwarp.OpRead, SGL: all, Remote: r.to.Remote(0)}) }},
		{name: "posted Send", octets: n, run: r.received(func() { r.done(&iwarp.SendWR{SGL: all}) })},
		{name: "posted Send with Solicited Event", octets: n, run: r.received(func() { r.done(&iwarp.SendWR{SGL: all, Solicited: true}) })},
		{name: "posted Immediate", octets: 8, run: r.received(func() { r.done(&iwarp.SendWR{Op: iwarp.OpImmediate, Immediate: 1}) })},
		{name: "inline Send", octets: inline, run: r.received(short)},
		{name: "burst of inline Sends", octets: burst * inline, run: func() {
			for range burst {
				r.res.postRecv(1, r.to.Slice(0, n))
			}
			for range burst {
				short()
			}
			for range burst {
				r.next(r.res.RecvCQ())
			}
		}},
		{name: "PostSends of four Writes", octets: 4 * n, run: func() {
			_, err := r.ini.PostSends(several)
			must(r, err)
			for range several {
				r.next(r.ini.SendCQ())
			}
		}},
		{name: "posted CompareSwap", octets: 8, run: func() {
			r.done(&iwarp.SendWR{Op: iwarp.OpCompareSwap, Remote: r.words.Remote(0), Swap: 1, SGL: []iwarp.SGE{r.from.Slice(0, 8)}, Masks: &iwarp.Masks{Compare: 1, Swap: 2}})
		}},
		{name: "Write", octets: n, run: func() {
			_, err := r.ini.Write(r.ctx, r.from.Slice(0, n), r.to.Remote(0))
			must(r, err)
		}},
		{name: "Read", octets: n, run: func() {
			_, err := r.ini.Read(r.ctx, r.from.Slice(0, n), r.to.Remote(0))
			must(r, err)
		}},
		{name: "Send", octets: n, run: r.received(func() { must(r, r.ini.Send(r.ctx, r.from.Slice(0, n))) })},
		{name: "FetchAdd", octets: 8, run: func() {
			_, err := r.ini.FetchAdd(r.ctx, r.words.Remote(0), 1)
			must(r, err)
		}},
		{name: "WriteImm", octets: n, run: r.received(func() {
			_, err := r.ini.WriteImm(r.ctx, r.from.Slice(0, n), r.to.Remote(0), 1)
			must(r, err)
		})},
	}
}
