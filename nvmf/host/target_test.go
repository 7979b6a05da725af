package host_test

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/nvmf/host"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// A joined is our own target, and the way to it.
type joined struct {
	under *testrig.Listener
	ln    *iwarp.Listener
	t     *target.Target

	mu    sync.Mutex
	conns []*testrig.Conn
}

// join serves a disk. end ends that.
func join(t testrig.Test, cfg target.Config) (j *joined, end func()) {
	j = &joined{under: testrig.NewListener("target")}
	var err error
	j.t, err = target.New(cfg)
	testrig.Must(t, err)
	j.ln = new(iwarp.ListenConfig).NewListener(j.under)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = j.t.Serve(ctx, j.ln) }()
	return j, func() {
		cancel()
		<-served
		_ = j.t.Shutdown(ctx)
		_ = j.ln.Close()
	}
}

// DialContext makes it a Stack.
func (j *joined) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	a, b := testrig.Pipe("host", "target")
	j.mu.Lock()
	j.conns = append(j.conns, a)
	j.mu.Unlock()
	return a, j.under.Offer(ctx, b)
}

// Listen is there for the Stack.
func (j *joined) Listen(context.Context, string, string) (net.Listener, error) { return j.under, nil }

// cut resets all connections.
func (j *joined) cut() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.conns {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	j.conns = nil
}

// A step is something that a worker does in its part of the disk.
type step struct {
	do            string
	first, blocks int
	seed          uint64
}

func drawSteps(t *rapid.T, part int) []step {
	one := rapid.Custom(func(t *rapid.T) step {
		first := rapid.IntRange(0, part-1).Draw(t, "first")
		return step{
			do: rapid.SampledFrom([]string{"write", "write", "read", "odd read", "zero", "discard",
				"flush", "cut"}).Draw(t, "do"),
			first: first, blocks: rapid.IntRange(1, part-first).Draw(t, "blocks"), seed: rapid.Uint64().Draw(t, "seed"),
		}
	})
	return rapid.SliceOfN(one, 1, 12).Draw(t, "steps")
}

// A worker has a part of the disk to itself, and knows what is to be in it.
type worker struct {
	n    *host.Namespace
	at   int64
	want []byte
	cut  func()
}

// doStep does a step.
func (w *worker) doStep(s step) error {
	ctx, block := context.Background(), w.n.BlockSize()
	off, part := w.at+int64(s.first*block), w.want[s.first*block:][:s.blocks*block]
	switch s.do {
	case "write":
		copy(part, random(len(part), s.seed))
		_, err := w.n.Write(ctx, bytes.Clone(part), off)
		return err
	case "read":
		return w.compare(off, part)
	case "odd read":
		return w.compare(off+1, part[1:len(part)-1])
	case "zero":
		clear(part)
		return w.n.WriteZeroes(ctx, off, int64(len(part)))
	case "discard":
		clear(part) // target.Memory reads as zero then
		return w.n.Discard(ctx, off, int64(len(part)))
	case "flush":
		return w.n.Flush(ctx)
	}
	w.cut()
	return nil
}

func (w *worker) compare(off int64, want []byte) error {
	got := make([]byte, len(want))
	if _, err := w.n.ReadAt(got, off); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return &differsError{off}
	}
	return nil
}

// A differsError is of a disk that is not what it should be.
type differsError struct{ off int64 }

func (*differsError) Error() string { return "what was read is not what was written" }

// TestAgainstTarget has workers read and write parts of a disk of our own target, with all kinds of settings at both
// ends and connections that are cut. What each reads is what it has written, and in the end the disk is what all of
// them have made it.
func TestAgainstTarget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.SampledFrom([]int{512, 4096}).Draw(t, "block")
		part, workers := rapid.IntRange(1, 40).Draw(t, "part"), rapid.IntRange(1, 8).Draw(t, "workers")
		disk, err := target.NewMemory(int64(part*workers*block), block)
		testrig.Must(t, err)
		cfg := target.Config{
			NQN: nqn, Namespaces: []target.Namespace{{Backend: disk, Name: "disk"}},
			Queues:     rapid.IntRange(1, 3).Draw(t, "target's queues"),
			QueueDepth: rapid.SampledFrom([]int{2, 5, 128}).Draw(t, "target's depth"),
			InCapsule:  rapid.SampledFrom([]int{1024, 4096, 16384}).Draw(t, "in capsule"),
			MaxData:    4096 << rapid.IntRange(1, 4).Draw(t, "data"),
		}
		j, end := join(t, cfg)
		defer end()
		d := host.Dialer{
			RDMA: iwarp.Dialer{Stack: j}, Queues: rapid.IntRange(1, 3).Draw(t, "queues"),
			Depth:    rapid.SampledFrom([]int{2, 7, 64}).Draw(t, "depth"),
			KeepKeys: rapid.Bool().Draw(t, "keep keys"), Delay: time.Millisecond,
		}
		c, err := d.Dial(context.Background(), "tcp", "target:4420", nqn)
		testrig.Must(t, err)
		defer c.Close()
		n, err := c.Namespace(context.Background(), 1)
		testrig.Must(t, err)
		var all sync.WaitGroup
		crew := make([]worker, workers)
		errs := make([]error, workers)
		var once sync.Once // a connection that is cut again and again makes a command fail
		for i := range crew {
			crew[i] = worker{n: n, at: int64(i * part * block), want: make([]byte, part*block),
				cut: func() { once.Do(j.cut) }}
			steps := drawSteps(t, part)
			all.Go(func() {
				for _, s := range steps {
					if errs[i] = crew[i].doStep(s); errs[i] != nil {
						return
					}
				}
			})
		}
		all.Wait()
		for i := range crew {
			if errs[i] != nil {
				t.Fatalf("worker %d: %v", i, errs[i])
			}
			testrig.Must(t, crew[i].compare(crew[i].at, crew[i].want))
		}
	})
}

// TestDiscoverTarget finds our own target by its discovery controller.
func TestDiscoverTarget(t *testing.T) {
	t.Parallel()
	disk, err := target.NewMemory(1<<20, 512)
	testrig.Must(t, err)
	j, end := join(t, target.Config{
		NQN: nqn, Namespaces: []target.Namespace{{Backend: disk}},
		Addresses: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:4420")},
	})
	defer end()
	d := host.Dialer{RDMA: iwarp.Dialer{Stack: j}}
	entries, err := d.Discover(testrig.Within(t), "tcp", "target:4420")
	testrig.Must(t, err)
	if len(entries) != 1 || entries[0].SubsystemNQN != nqn || entries[0].Type != capsule.SubsystemNVM {
		t.Errorf("%+v", entries)
	}
}

// TestTargetGone has the target lose a host that says nothing, and keep one that does.
func TestTargetGone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		disk, err := target.NewMemory(1<<20, 512)
		testrig.Must(t, err)
		j, end := join(t, target.Config{NQN: nqn, Namespaces: []target.Namespace{{Backend: disk}}})
		defer end()
		d := host.Dialer{RDMA: iwarp.Dialer{Stack: j}, KeepAlive: 2 * time.Second, Patience: -1}
		c, err := d.Dial(t.Context(), "tcp", "target:4420", nqn)
		testrig.Must(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		if c.Queues() == 0 {
			t.Error("the target has ended a controller whose host sends Keep Alives")
		}
		testrig.Must(t, c.Close())
	})
}
