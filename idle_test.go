package iwarp_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/procstat"
)

// A many is a number of connections between two RNICs over the loopback interface.
type many struct {
	t        testing.TB
	ini, res *rig.End
	ln       *iwarp.Listener
	qps      []*iwarp.QP // Initiator and Responder of each connection in turn
}

func newMany(t testing.TB) *many {
	c := &many{t: t, ini: rig.NewEnd(t, iwarp.RNICConfig{}), res: rig.NewEnd(t, iwarp.RNICConfig{})}
	c.ln = rig.Listen(t, iwarp.ListenConfig{PD: c.res.PD})
	return c
}

// grow adds n connections.
func (c *many) grow(n int) {
	c.t.Helper()
	ctx := context.Background()
	d := iwarp.Dialer{PD: c.ini.PD}
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
			rig.Should(c.t, err)
		}()
		qp, err := d.Dial(ctx, "tcp", c.ln.Addr().String())
		rig.Must(c.t, err)
		c.qps = append(c.qps, qp, <-accepted)
	}
}

// use has each connection carry a Write, a Read and a Send.
func (c *many) use() {
	c.t.Helper()
	ctx := context.Background()
	from, to := c.ini.MR(64, iwarp.LocalWrite), c.res.MR(64, iwarp.LocalWrite|iwarp.RemoteWrite|iwarp.RemoteRead)
	for i := 0; i < len(c.qps); i += 2 {
		ini, res := c.qps[i], c.qps[i+1]
		rig.Must(c.t, res.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{to.Slice(0, 64)}}))
		_, err := ini.Write(ctx, from.Slice(0, 64), to.Remote(0))
		rig.Must(c.t, err)
		_, err = ini.Read(ctx, from.Slice(0, 64), to.Remote(0))
		rig.Must(c.t, err)
		rig.Must(c.t, ini.Send(ctx, from.Slice(0, 64)))
		_, err = res.RecvCQ().Next(ctx)
		rig.Must(c.t, err)
	}
}

// What one end of an idle connection takes, just after it was used: of heap, and one stack. Half a KiB of the heap is
// given back a second or two later (TestBurstMemory), and half of the stack.
const idleHeap, idleStack, restingStack = 6700, 4 << 10, 2 << 10

// TestIdleMemory holds what an idle connection takes, with room of a fifth for heap and of a half for stacks: Go's
// runtime has its own ideas of when a stack shrinks.
func TestIdleMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory too")
	}
	nothingLeft(t)
	c := newMany(t)
	c.grow(20)
	c.use()
	const n = 250
	var heap, stack int64
	for range 5 { // what other tests have left may go meanwhile, and goroutines are not all waiting at once
		h, s := procstat.Held()
		c.grow(n)
		c.use()
		withHeap, withStacks := procstat.Held()
		heap, stack = int64(withHeap-h)/(2*n), int64(withStacks-s)/(2*n)
		if heap > 0 && heap < idleHeap*6/5 && stack < idleStack*3/2 {
			wantResting(t, s, 2*n)
			c.use() // it is all there again
			return
		}
	}
	t.Errorf("an end of an idle connection takes %d bytes of heap, and %d of stacks, want about %d and %d",
		heap, stack, idleHeap, idleStack)
}

// wantResting waits until each of so many ends has given half of its stack back, where its connection is a socket that
// is waited for without a buffer.
func wantResting(t *testing.T, before uint64, ends int) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	for ctx := rig.Within(t); ; time.Sleep(100 * time.Millisecond) {
		_, now := procstat.Held()
		stack := (int(now) - int(before)) / ends
		if stack < restingStack*5/4 {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("an end of an idle connection keeps %d bytes of stack, want about %d", stack, restingStack)
		}
	}
}

// TestBurstMemory: what work took is given back when it is over, be it a message or a burst.
func TestBurstMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory too")
	}
	nothingLeft(t)
	synctest.Test(t, func(t *testing.T) {
		const depth = 128
		c := newBurstRig(t)
		c.mark()
		c.burst(1)
		c.idle()
		if got := c.taken(); got > 1<<10 {
			t.Errorf("%d bytes are left of the first message each way at an end", got)
		}
		c.widen()
		c.idle()
		var took, left int
		for range 5 { // what other tests have left may go meanwhile
			c.mark()
			c.burst(depth)
			took = c.taken()
			c.idle()
			left = c.taken()
			if took >= 20<<10 && left <= 1<<10 {
				break
			}
		}
		if took < 20<<10 {
			t.Errorf("a burst has left only %d bytes at an end: what is there to give back?", took)
		}
		if left > 1<<10 {
			t.Errorf("%d bytes are left of a burst at an end", left)
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
		a, b := rig.Setup{Pipe: true}.Connect(t)
		to := b.MR(64, iwarp.LocalWrite)
		var wc [1]iwarp.WC
		turn := func() {
			rig.Must(t, b.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{to.Slice(0, 64)}}))
			rig.Must(t, a.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true, Inline: []byte("now and then")}))
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
	pairs  [40][2]*rig.End
	before uint64 // bytes of the heap at the mark
}

func newBurstRig(t *testing.T) *burstRig {
	c := &burstRig{t: t}
	for i := range c.pairs {
		c.pairs[i][0], c.pairs[i][1] = rig.Setup{Pipe: true}.Connect(t)
	}
	return c
}

// burst has n Sends go each way on each connection.
func (c *burstRig) burst(n int) {
	c.t.Helper()
	for _, p := range c.pairs {
		exchangeWith(p[0], p[1], n)
		exchangeWith(p[1], p[0], n)
	}
}

// widen has the pipes, whose memory is never given back, hold more than a burst at once.
func (c *burstRig) widen() {
	c.t.Helper()
	const bytes = 16 << 10
	for _, p := range c.pairs {
		for i := range p {
			from, to := p[i].MR(bytes, iwarp.LocalWrite), p[1-i].MR(bytes, iwarp.RemoteWrite)
			rig.Must(c.t, p[i].PostSend(&iwarp.SendWR{Op: iwarp.OpWrite,
				SGL: []iwarp.SGE{from.Slice(0, bytes)}, Remote: to.Remote(0)}))
			_, err := p[i].SendCQ().Next(c.t.Context())
			rig.Must(c.t, err)
		}
	}
}

// idle has the connections do nothing until all is given back that is.
func (c *burstRig) idle() { time.Sleep(3 * time.Second) }

func (c *burstRig) mark() { c.before, _ = procstat.Held() }

// taken returns how many bytes more there are for each end than at the mark.
func (c *burstRig) taken() int {
	heap, _ := procstat.Held()
	return (int(heap) - int(c.before)) / (2 * len(c.pairs))
}

// exchange has n Sends posted and delivered. What helps other tests takes memory for each call.
func exchangeWith(e *rig.End, to *rig.End, n int) {
	e.T.Helper()
	for range n {
		rig.Must(e.T, to.PostRecv(&iwarp.RecvWR{}))
	}
	for range n {
		rig.Must(e.T, e.PostSend(&iwarp.SendWR{Op: iwarp.OpSend}))
	}
	for _, cq := range []*iwarp.CQ{e.SendCQ(), to.RecvCQ()} {
		for range n {
			wc, err := cq.Next(e.T.Context())
			rig.Must(e.T, err)
			rig.Must(e.T, wc.Err())
		}
	}
}

// BenchmarkIdleConnection tells what one end of an idle connection takes, just after it was used.
func BenchmarkIdleConnection(b *testing.B) {
	c := newMany(b)
	c.grow(50)
	c.use()
	heap, stacks := procstat.Held()
	b.ResetTimer()
	c.grow(b.N)
	c.use()
	b.StopTimer()
	time.Sleep(100 * time.Millisecond) // for the last goroutines to wait again
	h, s := procstat.Held()
	b.ReportMetric(float64(h-heap)/float64(2*b.N), "heap-bytes/end")
	b.ReportMetric(float64(s-stacks)/float64(2*b.N), "stack-bytes/end")
}

// TestAcceptStack: a goroutine with 4 KiB of stack comes to RTS with it. With one frame more the runtime would walk
// through all of them, for each connection, to copy them to a stack of 8 KiB. What happens once, and what the runtime
// does now and then where memory is allocated, take stack, too: of many goroutines one has to keep its stack, which
// none does where our frames are too large. The test looks at a process of its own, where the runtime neither begins
// with larger stacks, as it does where others are large, nor makes any smaller.
func TestAcceptStack(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes more stack")
	}
	if os.Getenv(stackChild) == "" {
		self, err := os.Executable()
		rig.Must(t, err)
		c := exec.CommandContext(rig.Within(t), self, "-test.run=^TestAcceptStack$")
		c.Env = append(os.Environ(), stackChild+"=1", "GOGC=off", "GODEBUG=adaptivestackstart=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	ini, res := rig.NewEnd(t, iwarp.RNICConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	ln := rig.Listen(t, iwarp.ListenConfig{PD: res.PD})
	for range 50 {
		if !acceptGrows(t, ini, ln) {
			return
		}
	}
	t.Error("the stack has grown each time")
}

// stackChild tells a process that it is the one to be looked at.
const stackChild = "IWARP_TEST_STACK"

// acceptGrows reports whether a goroutine that accepts a connection has got a larger stack.
func acceptGrows(t *testing.T, ini *rig.End, ln *iwarp.Listener) bool {
	t.Helper()
	moved := make(chan bool, 1)
	go func() {
		takeStack(0)
		before := where()
		req, err := ln.Accept(t.Context())
		if err == nil {
			_, err = req.Accept(t.Context(), iwarp.AcceptConfig{})
		}
		moved <- where() != before
		rig.Should(t, err)
	}()
	d := iwarp.Dialer{PD: ini.PD}
	_, err := d.Dial(t.Context(), "tcp", ln.Addr().String())
	rig.Must(t, err)
	return <-moved
}

// takeStack makes a stack of 2 KiB one of 4 KiB.
//
//go:noinline
func takeStack(i int) byte {
	var room [5 << 8]byte
	return room[i]
}

// where is an address on the stack, which differs when that has been copied.
//
//go:noinline
func where() uintptr {
	var here byte
	return uintptr(unsafe.Pointer(&here))
}
