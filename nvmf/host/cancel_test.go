package host_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/nvmf/host"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// A gated disk does nothing while its gate is shut.
type gated struct {
	*target.Memory
	gate   atomic.Pointer[chan struct{}]
	writes atomic.Int64 // that were begun
}

// shut shuts the gate until the function is called that it returns.
func (g *gated) shut() (open func()) {
	gate := make(chan struct{})
	g.gate.Store(&gate)
	return func() { g.gate.Store(nil); close(gate) }
}

// WriteAt waits for the gate.
func (g *gated) WriteAt(p []byte, off int64) (int, error) {
	g.writes.Add(1)
	if gate := g.gate.Load(); gate != nil {
		<-*gate
	}
	return g.Memory.WriteAt(p, off)
}

// has wants a block of the disk to be.
func (g *gated) has(t *testing.T, block int64, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := g.Memory.ReadAt(got, block*512)
	testrig.Must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("block %d is not as it should be", block)
	}
}

// TestCancel cancels Writes to our own target in each state that one can be in. It returns at once, and its memory is
// the caller's again; what the target has of it is what it was, and no place in the queue is lost. The host sends no
// Abort, which targets answer by leaving the command to itself.
func TestCancel(t *testing.T) {
	for _, cut := range []bool{false, true} {
		t.Run(map[bool]string{true: "cut", false: "connected"}[cut], func(t *testing.T) {
			inBubble(t, func(t *testing.T) { testCancel(t, cut) })
		})
	}
}

func testCancel(t *testing.T, cut bool) {
	memory, err := target.NewMemory(1<<20, 512)
	testrig.Must(t, err)
	disk := &gated{Memory: memory}
	j, end := join(t, target.Config{NQN: nqn, Namespaces: []target.Namespace{{Backend: disk}}, InCapsule: 1024})
	defer end()
	// so that two commands can be under way
	d := host.Dialer{RDMA: iwarp.Dialer{Stack: j}, Queues: 1, Depth: 3, KeepAlive: -1}
	c, err := d.Dial(t.Context(), "tcp", "target:4420", nqn)
	testrig.Must(t, err)
	n, err := c.Namespace(t.Context(), 1)
	testrig.Must(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	open := disk.shut()
	write := func(blocks int, at int64, seed uint64) (data []byte, result chan error) {
		data, result = random(blocks*512, seed), make(chan error, 1)
		go func() {
			_, err := n.Write(ctx, data, at*512)
			result <- err
		}()
		synctest.Wait()
		return data, result
	}
	inCapsule, first := write(1, 0, 1)
	read, second := write(16, 16, 2) // by an RDMA Read
	_, third := write(1, 64, 3)      // which has no place in the queue
	if disk.writes.Load() != 2 || len(first)+len(second)+len(third) != 0 {
		t.Fatalf("the disk has %d writes, and %d have returned", disk.writes.Load(), len(first)+len(second)+len(third))
	}
	wantFirst, wantSecond := bytes.Clone(inCapsule), bytes.Clone(read)
	began := time.Now()
	cancel()
	for i, result := range []chan error{first, second, third} {
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("write %d: %v", i+1, err)
		}
	}
	if passed := time.Since(began); passed != 0 {
		t.Errorf("they returned after %v", passed)
	}
	clear(inCapsule)
	clear(read)
	if cut {
		j.cut()
	}
	time.Sleep(time.Second)
	open()
	for i := range 9 { // every place is used again
		_, err := n.WriteAt(random(512, uint64(i+10)), int64(128+i)*512)
		testrig.Must(t, err)
		disk.has(t, int64(128+i), random(512, uint64(i+10)))
	}
	disk.has(t, 0, wantFirst)
	disk.has(t, 16, wantSecond)
	disk.has(t, 64, make([]byte, 512))
	testrig.Must(t, c.Close())
}
