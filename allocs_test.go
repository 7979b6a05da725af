package iwarp_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// An operation is what is done for one message, from the request to the last completion at either end.
type operation struct {
	name  string
	bytes int
	run   func()
}

// operations are all that there are, posted and waited for in all ways.
func operations(t testing.TB) []operation {
	r := newOpRig(t)
	return slices.Concat(r.messages(), r.remoteMemory(), r.local(), r.waits())
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

// TestSetupAllocations: what a connection takes is bounded that is set up, carries one message each way, and is closed
// by both ends. Of 145 allocations at both ends, 27 are those of the TCP connection. dev/compare measures its time.
func TestSetupAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c := newMany(t)
	from, to := c.ini.MR(64, iwarp.LocalWrite).Slice(0, 64), c.res.MR(64, iwarp.LocalWrite).Slice(0, 64)
	const most = 195
	if n := testing.AllocsPerRun(200, func() { c.once(from, to) }); n > most {
		t.Errorf("%v allocations, and %d are the most", n, most)
	}
}

// once has a connection that is used once.
func (c *many) once(from, to iwarp.SGE) {
	c.grow(1)
	ini, res := c.qps[0], c.qps[1]
	rig.Must(c.t, ini.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{from}}))
	rig.Must(c.t, res.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{to}}))
	rig.Must(c.t, ini.Send(context.Background(), from))
	_, err := res.RecvCQ().Next(context.Background())
	rig.Must(c.t, err)
	rig.Must(c.t, res.Send(context.Background(), to))
	_, err = ini.RecvCQ().Next(context.Background())
	rig.Must(c.t, err)
	rig.CloseBoth(c.t, ini, res)
	c.qps = c.qps[:0]
}

// BenchmarkOperation measures each operation with its completions, one after the other.
func BenchmarkOperation(b *testing.B) {
	for _, op := range operations(b) {
		b.Run(op.name, func(b *testing.B) {
			b.SetBytes(int64(op.bytes))
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
	ini, res *rig.End
	// from and to are opBytes of memory, words one word that Atomic Operations reach.
	from, to, words *iwarp.MR
}

const opBytes = 4096

func newOpRig(t testing.TB) *opRig {
	t.Helper()
	r := &opRig{TB: t, ctx: t.Context()}
	r.ini, r.res = rig.Connect(t)
	r.from, r.to = r.ini.MR(opBytes, iwarp.LocalWrite), r.res.MR(opBytes, iwarp.RemoteWrite|iwarp.RemoteRead)
	r.words = r.res.MR(8, iwarp.RemoteAtomic)
	return r
}

// next takes one completion, of success.
func (r *opRig) next(cq *iwarp.CQ) {
	wc, err := cq.Next(r.ctx)
	rig.Must(r, err)
	rig.Must(r, wc.Err())
}

// done posts a request of the Initiator's and waits for its completion.
func (r *opRig) done(wr *iwarp.SendWR) {
	r.ini.MustPost(wr)
	r.next(r.ini.SendCQ())
}

// received does what brings the Responder a message, and waits for that.
func (r *opRig) received(send func()) func() {
	return func() {
		r.res.MustPostRecv(1, r.to.Slice(0, opBytes))
		send()
		r.next(r.res.RecvCQ())
	}
}

func (r *opRig) write() *iwarp.SendWR {
	return &iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{r.from.Slice(0, opBytes)}, Remote: r.to.Remote(0)}
}

// messages are the operations that reach the peer.
func (r *opRig) messages() []operation {
	const n, burst, inline = opBytes, 50, 64
	all := []iwarp.SGE{r.from.Slice(0, n)}
	short := func() {
		r.ini.MustPost(&iwarp.SendWR{Op: iwarp.OpSend, Inline: r.from.Bytes()[:inline], Unsignaled: true})
	}
	several := []iwarp.SendWR{*r.write(), *r.write(), *r.write(), *r.write()}
	return []operation{
		{name: "posted Write", bytes: n, run: func() { r.done(r.write()) }},
		{name: "posted Read", bytes: n, run: func() {
			r.done(&iwarp.SendWR{Op: iwarp.OpRead, SGL: all,
				Remote: r.to.Remote(0)})
		}},
		{name: "posted Send", bytes: n, run: r.received(func() { r.done(&iwarp.SendWR{SGL: all}) })},
		{name: "posted Send with Solicited Event", bytes: n,
			run: r.received(func() { r.done(&iwarp.SendWR{SGL: all, Solicited: true}) })},
		{name: "posted Immediate", bytes: 8, run: r.received(
			func() { r.done(&iwarp.SendWR{Op: iwarp.OpImmediate, Immediate: 1}) })},
		{name: "inline Send", bytes: inline, run: r.received(short)},
		{name: "burst of inline Sends", bytes: burst * inline, run: func() {
			for range burst {
				r.res.MustPostRecv(1, r.to.Slice(0, n))
			}
			for range burst {
				short()
			}
			for range burst {
				r.next(r.res.RecvCQ())
			}
		}},
		{name: "PostSends of four Writes", bytes: 4 * n, run: func() {
			_, err := r.ini.PostSends(several)
			rig.Must(r, err)
			for range several {
				r.next(r.ini.SendCQ())
			}
		}},
		{name: "posted CompareSwap", bytes: 8, run: func() {
			r.done(&iwarp.SendWR{Op: iwarp.OpCompareSwap, Remote: r.words.Remote(0), Swap: 1,
				SGL: []iwarp.SGE{r.from.Slice(0, 8)}, Masks: &iwarp.Masks{Compare: 1, Swap: 2}})
		}},
		{name: "Write", bytes: n, run: func() {
			_, err := r.ini.Write(r.ctx, r.from.Slice(0, n), r.to.Remote(0))
			rig.Must(r, err)
		}},
		{name: "Read", bytes: n, run: func() {
			_, err := r.ini.Read(r.ctx, r.from.Slice(0, n), r.to.Remote(0))
			rig.Must(r, err)
		}},
		{name: "Send", bytes: n, run: r.received(func() { rig.Must(r, r.ini.Send(r.ctx, r.from.Slice(0, n))) })},
		{name: "FetchAdd", bytes: 8, run: func() {
			_, err := r.ini.FetchAdd(r.ctx, r.words.Remote(0), 1)
			rig.Must(r, err)
		}},
		{name: "WriteImm", bytes: n, run: r.received(func() {
			_, err := r.ini.WriteImm(r.ctx, r.from.Slice(0, n), r.to.Remote(0), 1)
			rig.Must(r, err)
		})},
	}
}

// remoteMemory are the calls of a RemoteMemory, and of a Uint64.
func (r *opRig) remoteMemory() []operation {
	const parts = 1 << 20
	there := r.res.MR(parts, iwarp.RemoteWrite|iwarp.RemoteRead)
	at, p := r.ini.At(r.ctx, there.Region()), make([]byte, parts)
	word, err := r.words.Uint64(0)
	rig.Must(r, err)
	call := func(name string, n int, call func([]byte, int64) (int, error)) operation {
		return operation{name: name, bytes: n, run: func() {
			_, err := call(p[:n], 0)
			rig.Must(r, err)
		}}
	}
	return []operation{
		call("ReadAt", opBytes, at.ReadAt), call("ReadAt in parts", parts, at.ReadAt),
		call("WriteAt", opBytes, at.WriteAt), call("WriteAt in parts", parts, at.WriteAt),
		{name: "Flush", run: func() { rig.Must(r, at.Flush(r.ctx)) }},
		{name: "Uint64.Add", bytes: 8, run: func() {
			_, err := word.Add(1)
			rig.Must(r, err)
		}},
	}
}

// local are the operations on memory of one's own, each with what ends it.
func (r *opRig) local() []operation {
	return []operation{r.bind(), r.fastRegister(), r.sendInvalidate()}
}

func (r *opRig) bind() operation {
	window, memory := allocMW(r.ini, iwarp.MWType2), r.ini.MR(opBytes, iwarp.LocalWrite|iwarp.RemoteWrite)
	to := iwarp.Binding{Memory: memory.Slice(0, opBytes), Access: iwarp.RemoteWrite}
	return operation{name: "Bind and LocalInvalidate", bytes: opBytes, run: func() {
		to.Key++
		r.done(&iwarp.SendWR{Op: iwarp.OpBindMW, Window: window, Bind: &to})
		r.done(&iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Window: window})
	}}
}

func (r *opRig) fastRegister() operation {
	mr := allocFast(r.ini, 1, opBytes)
	what := iwarp.Registration{Memory: [][]byte{make([]byte, opBytes)}, Access: iwarp.LocalWrite}
	return operation{name: "FastRegister and LocalInvalidate", bytes: opBytes, run: func() {
		what.Key++
		r.done(&iwarp.SendWR{Op: iwarp.OpFastRegister, Target: mr, Register: &what})
		r.done(&iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Target: mr})
	}}
}

// sendInvalidate has the Responder register memory, which the Initiator's Send invalidates.
func (r *opRig) sendInvalidate() operation {
	mr := allocFast(r.res, 1, opBytes)
	what := iwarp.Registration{Memory: [][]byte{make([]byte, opBytes)},
		Access: iwarp.RemoteRead | iwarp.RemoteInvalidate}
	send := r.received(func() {
		r.done(&iwarp.SendWR{SGL: []iwarp.SGE{r.from.Slice(0, opBytes)}, Invalidate: mr.STag()})
	})
	return operation{name: "FastRegister and Send with Invalidate", bytes: opBytes, run: func() {
		what.Key++
		r.res.MustPost(&iwarp.SendWR{Op: iwarp.OpFastRegister, Target: mr, Register: &what})
		r.next(r.res.SendCQ())
		send()
	}}
}

// waits are the ways to wait for a completion, those of messages apart.
func (r *opRig) waits() []operation {
	cq, wc := r.ini.SendCQ(), make([]iwarp.WC, 4)
	poll := func() {
		for cq.Poll(wc) == 0 {
		}
		rig.Must(r, wc[0].Err())
	}
	later, cancel := context.WithTimeout(r.ctx, time.Hour)
	r.Cleanup(cancel)
	return []operation{
		{name: "Write, Wait and Poll", bytes: opBytes, run: func() {
			r.ini.MustPost(r.write())
			rig.Must(r, cq.Wait(r.ctx))
			poll()
		}},
		{name: "Write, Wait with a deadline and Poll", bytes: opBytes, run: func() {
			r.ini.MustPost(r.write())
			rig.Must(r, cq.Wait(later))
			poll()
		}},
		{name: "Write, Arm, Events and Poll", bytes: opBytes, run: func() {
			cq.Arm(false)
			r.ini.MustPost(r.write())
			<-cq.Events()
			poll()
		}},
		{name: "Write with a deadline", bytes: opBytes, run: func() {
			_, err := r.ini.Write(later, r.from.Slice(0, opBytes), r.to.Remote(0))
			rig.Must(r, err)
		}},
		r.shared(),
	}
}

// shared is a Send to a receive of an SRQ, by a connection of its own; who receives waits for a notice.
func (r *opRig) shared() operation {
	res := rig.NewEnd(r, iwarp.RNICConfig{})
	cq := rig.NewCQ(r, res.RNIC, 64)
	srq, err := res.PD.CreateSRQ(iwarp.SRQConfig{Depth: 64})
	rig.Must(r, err)
	ini, _ := rig.Setup{Accept: iwarp.AcceptConfig{PD: res.PD, QP: iwarp.QPConfig{RecvCQ: cq, SRQ: srq}}}.Connect(r)

	from, to, wc := ini.MR(opBytes, 0), res.MR(opBytes, iwarp.LocalWrite), make([]iwarp.WC, 4)
	return operation{name: "Send to an SRQ, Arm, Events and Poll", bytes: opBytes, run: func() {
		rig.Must(r, srq.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{to.Slice(0, opBytes)}}))
		cq.Arm(false)
		ini.MustPost(&iwarp.SendWR{SGL: []iwarp.SGE{from.Slice(0, opBytes)}, Unsignaled: true})
		<-cq.Events()
		for cq.Poll(wc) == 0 {
		}
		rig.Must(r, wc[0].Err())
	}}
}

// TestLeadAllocations: waiting allocates nothing, whoever receives.
func TestLeadAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ini, res := rig.Connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res.MustPostRecv(1)
	res.MustPostRecv(1)
	go pong(ctx, res)
	ini.MustPostRecv(1)
	turn := func() {
		ini.MustPost(&iwarp.SendWR{Unsignaled: true})
		if _, err := ini.RecvCQ().Next(ctx); err != nil {
			t.Error(err)
		}
		ini.MustPostRecv(1)
	}
	for range 500 {
		turn()
	}
	runtime.GC()
	if n := testing.AllocsPerRun(1000, turn); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// pong answers every message with an empty one.
func pong(ctx context.Context, e *rig.End) {
	for {
		if _, err := e.RecvCQ().Next(ctx); err != nil {
			return
		}
		_ = e.PostRecv(&iwarp.RecvWR{})
		_ = e.PostSend(&iwarp.SendWR{Unsignaled: true})
	}
}

// BenchmarkPingPong: a message there and back, by consumers that wait for it.
func BenchmarkPingPong(b *testing.B) {
	ini, res := rig.Connect(b)
	ctx := b.Context()
	res.MustPostRecv(1)
	res.MustPostRecv(1)
	go pong(ctx, res)
	ini.MustPostRecv(1)
	b.ReportAllocs()
	for b.Loop() {
		ini.MustPost(&iwarp.SendWR{Unsignaled: true})
		if _, err := ini.RecvCQ().Next(ctx); err != nil {
			b.Fatal(err)
		}
		ini.MustPostRecv(1)
	}
}
