package iwarp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/machine"
)

// A many is a number of connections between two RNICs over the loopback interface.
type many struct {
	t        testing.TB
	ini, res *end
	ln       *iwarp.Listener
	qps      []*iwarp.QP // Initiator and Responder of each connection in turn
}

func newMany(t testing.TB) *many {
	c := &many{t: t, ini: newEnd(t, iwarp.RNICConfig{}), res: newEnd(t, iwarp.RNICConfig{})}
	c.ln = listen(t, iwarp.ListenConfig{PD: c.res.pd})
	return c
}

// grow adds n connections.
func (c *many) grow(n int) {
	c.t.Helper()
	ctx := context.Background()
	d := iwarp.Dialer{PD: c.ini.pd}
	for range n {
		accepted := make(chan *iwarp.QP, 1)
		go func() {
			defer close(accepted)
			req, err := c.ln.Accept(ctx)
			if err == nil {
				var qp *iwarp.QP
				qp, err = req.Accept(ctx, iwarp.AcceptConfig{})
				accepted <- qp
			}
			should(c.t, err)
		}()
		qp, err := d.Dial(ctx, "tcp", c.ln.Addr().String())
		must(c.t, err)
		c.qps = append(c.qps, qp, <-accepted)
	}
}

// use has each connection carry a Write, a Read and a Send.
func (c *many) use() {
	c.t.Helper()
	ctx := context.Background()
	from, to := c.ini.mr(64, iwarp.LocalWrite), c.res.mr(64, iwarp.LocalWrite|iwarp.RemoteWrite|iwarp.RemoteRead)
	for i := 0; i < len(c.qps); i += 2 {
		ini, res := c.qps[i], c.qps[i+1]
		must(c.t, res.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{to.Slice(0, 64)}}))
		_, err := ini.Write(ctx, from.Slice(0, 64), to.Remote(0))
		must(c.t, err)
		_, err = ini.Read(ctx, from.Slice(0, 64), to.Remote(0))
		must(c.t, err)
		must(c.t, ini.Send(ctx, from.Slice(0, 64)))
		_, err = res.RecvCQ().Next(ctx)
		must(c.t, err)
	}
}

// What one end of an idle connection takes, just after it was used: of heap, and one stack. Half a KiB of that is given back a second or two later
// (TestBurstMemory).
const idleHeap, idleStack = 6700, 4 << 10

// TestIdleMemory holds what an idle connection takes, with room of a half: Go's runtime has its own
// ideas of when a stack shrinks.
func TestIdleMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory too")
	}
	c := newMany(t)
	c.grow(20)
	c.use()
	const n = 250
	var heap, stack int64
	for range 5 { // what other tests have left may go meanwhile, and goroutines are not all waiting at once
		h, s := machine.Held()
		c.grow(n)
		c.use()
		withHeap, withStacks := machine.Held()
		heap, stack = int64(withHeap-h)/(2*n), int64(withStacks-s)/(2*n)
		if heap > 0 && heap < idleHeap*3/2 && stack < idleStack*3/2 {
			return
		}
	}
	t.Errorf("an end of an idle connection takes %d octets of heap, and %d of stacks, want about %d and %d", heap, stack, idleHeap, idleStack)
}

// TestBurstMemory: what work took is given back when it is over, be it a message or a burst.
func TestBurstMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory too")
	}
	synctest.Test(t, func(t *testing.T) {
		const depth = 128
		c := newBurstRig(t)
		c.mark()
		c.burst(1)
		c.idle()
		if got := c.taken(); got > 1<<10 {
			t.Errorf("%d octets are left of the first message each way at an end", got)
		}
		c.widen()
		c.idle()
		c.mark()
		c.burst(depth)
		if got := c.taken(); got < 20<<10 {
			t.Errorf("a burst has left only %d octets at an end: what is there to give back?", got)
		}
		c.idle()
		if got := c.taken(); got > 1<<10 {
			t.Errorf("%d octets are left of a burst at an end", got)
		}
		c.burst(depth) // it is all there again
	})
}

// TestSlowAllocations: a message now and then takes no memory that was given back after the one before.
func TestSlowAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	synctest.Test(t, func(t *testing.T) {
		a, b := setup{pipe: true}.connect(t)
		to := b.mr(64, iwarp.LocalWrite)
		var wc [1]iwarp.WC
		turn := func() {
			must(t, b.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{to.Slice(0, 64)}}))
			must(t, a.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true, Inline: []byte("now and then")}))
			time.Sleep(900 * time.Millisecond) // of virtual time: memory is given back once a second
			if b.RecvCQ().Poll(wc[:]) != 1 || wc[0].Err() != nil {
				t.Errorf("%v", wc[0].Err())
			}
		}
		for range 10 {
			turn()
		}
		const ofPipe = 2 // of package net, for what is no socket
		if n := testing.AllocsPerRun(200, turn); n > ofPipe {
			t.Errorf("%v allocations for a message, and %d are those of its connection", n, ofPipe)
		}
	})
}

// A burstRig is connections over pipes: so many that what else the process does is little for each.
type burstRig struct {
	t      *testing.T
	pairs  [40][2]*end
	before uint64 // octets of the heap at the mark
}

func newBurstRig(t *testing.T) *burstRig {
	c := &burstRig{t: t}
	for i := range c.pairs {
		c.pairs[i][0], c.pairs[i][1] = setup{pipe: true}.connect(t)
	}
	return c
}

// burst has n Sends go each way on each connection.
func (c *burstRig) burst(n int) {
	c.t.Helper()
	for _, p := range c.pairs {
		p[0].exchange(p[1], n)
		p[1].exchange(p[0], n)
	}
}

// widen has the pipes, whose memory is never given back, hold more than a burst at once.
func (c *burstRig) widen() {
	c.t.Helper()
	const octets = 16 << 10
	for _, p := range c.pairs {
		for i := range p {
			from, to := p[i].mr(octets, iwarp.LocalWrite), p[1-i].mr(octets, iwarp.RemoteWrite)
			must(c.t, p[i].PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, SGL: []iwarp.SGE{from.Slice(0, octets)}, Remote: to.Remote(0)}))
			_, err := p[i].SendCQ().Next(c.t.Context())
			must(c.t, err)
		}
	}
}

// idle has the connections do nothing until all is given back that is.
func (c *burstRig) idle() { time.Sleep(3 * time.Second) }

func (c *burstRig) mark() { c.before, _ = machine.Held() }

// taken returns how many octets more there are for each end than at the mark.
func (c *burstRig) taken() int {
	heap, _ := machine.Held()
	return (int(heap) - int(c.before)) / (2 * len(c.pairs))
}

// exchange has n Sends posted and delivered. What helps other tests takes memory for each call.
func (e *end) exchange(to *end, n int) {
	e.t.Helper()
	for range n {
		must(e.t, to.PostRecv(&iwarp.RecvWR{}))
	}
	for range n {
		must(e.t, e.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}))
	}
	for _, cq := range []*iwarp.CQ{e.SendCQ(), to.RecvCQ()} {
		for range n {
			wc, err := cq.Next(e.t.Context())
			must(e.t, err)
			must(e.t, wc.Err())
		}
	}
}

// BenchmarkIdleConnection tells what one end of an idle connection takes, just after it was used.
func BenchmarkIdleConnection(b *testing.B) {
	c := newMany(b)
	c.grow(50)
	c.use()
	heap, stacks := machine.Held()
	b.ResetTimer()
	c.grow(b.N)
	c.use()
	b.StopTimer()
	time.Sleep(100 * time.Millisecond) // for the last goroutines to wait again
	h, s := machine.Held()
	b.ReportMetric(float64(h-heap)/float64(2*b.N), "heap-octets/end")
	b.ReportMetric(float64(s-stacks)/float64(2*b.N), "stack-octets/end")
}
