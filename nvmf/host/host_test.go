package host_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/nvmf/host"
)

func random(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b)
	return b
}

// TestReadWrite moves data of all sizes: within the capsule, with one command, and with many.
func TestReadWrite(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		p := newPeer(t).startServing()
		d := p.dialer()
		d.KeepKeys = keep
		c, n := p.open(d)
		if n.Size() != diskBlocks<<diskShift || n.BlockSize() != 1<<diskShift || c.Queues() != 2 {
			t.Fatalf("%v, %d queues", n, c.Queues())
		}
		for i, size := range []int{0, 512, 4096, 4608, 32768, 33280, 1 << 20} {
			data := random(size, uint64(i))
			if got, err := n.WriteAt(data, 8192); got != size || err != nil {
				t.Fatalf("WriteAt: %d, %v", got, err)
			}
			back := make([]byte, size)
			if got, err := n.ReadAt(back, 8192); got != size || err != nil || !bytes.Equal(back, data) {
				t.Fatalf("ReadAt %d: %d, %v", size, got, err)
			}
		}
		testrig.Must(t, n.Flush(t.Context()))
		wantKeys(t, p, keep)
	}
}

// wantKeys holds that small writes are in their capsules, and everything else is memory whose key the controller
// invalidates, if it is asked to.
func wantKeys(t *testing.T, p *peer, keep bool) {
	t.Helper()
	kind := capsule.SGLKeyedInvalidate
	if keep {
		kind = capsule.SGLKeyed
	}
	for _, op := range []capsule.Opcode{capsule.OpRead, capsule.OpWrite} {
		for _, c := range p.commands(op) {
			want := kind
			if op == capsule.OpWrite && c.SGL.Length <= 4096 {
				want = capsule.SGLOffset
			}
			if c.SGL.Type != want {
				t.Errorf("%s: %v, want %v", op.Name(false), c.SGL, want)
			}
		}
	}
	if (p.invalidated == 0) != keep {
		t.Errorf("the controller has invalidated %d keys", p.invalidated)
	}
}

// TestKeysLeft has a controller that is asked to invalidate keys and does not: the host does.
func TestKeysLeft(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	p.keepKeys = true
	_, n := p.startServing().open(p.dialer())
	var used []uint32
	for range 3 {
		_, err := n.ReadAt(make([]byte, 8192), 0)
		testrig.Must(t, err)
	}
	for _, c := range p.commands(capsule.OpRead) {
		used = append(used, c.SGL.Key)
	}
	// What was registered for a command is nobody's after it: a controller that goes on with the key loses the
	// connection.
	p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
		if c.Opcode != capsule.OpFlush {
			return true
		}
		c.SGL.Key, a.page, a.invalidate = used[0], []byte("late"), 0
		return true
	}
	d := p.dialer()
	d.Patience = -1
	if err := n.Flush(t.Context()); err != nil { // the first connection is lost, and the same happens again
		t.Logf("as it should be: %v", err)
		return
	}
	t.Error("a key was used after its command")
}

// TestUnaligned reads what does not begin or end with blocks, and refuses to change it.
func TestUnaligned(t *testing.T) {
	t.Parallel()
	p := newPeer(t).startServing()
	copy(p.disk, random(len(p.disk), 1))
	_, n := p.open(p.dialer())
	for _, x := range []struct{ off, length int }{{1, 1}, {511, 2}, {512, 100}, {1000, 70000}, {len(p.disk) - 5, 5}} {
		b := make([]byte, x.length)
		if got, err := n.ReadAt(b, int64(x.off)); got != x.length || err != nil ||
			!bytes.Equal(b, p.disk[x.off:][:x.length]) {
			t.Errorf("%+v: %d, %v", x, got, err)
		}
	}
	b := make([]byte, 1024)
	if got, err := n.ReadAt(b, n.Size()-512); got != 512 || err != io.EOF ||
		!bytes.Equal(b[:512], p.disk[len(p.disk)-512:]) {
		t.Errorf("across the end: %d, %v", got, err)
	}
	if got, err := n.ReadAt(b, n.Size()); got != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", got, err)
	}
	if _, err := n.ReadAt(b, -1); !errors.Is(err, host.ErrRange) {
		t.Errorf("before the beginning: %v", err)
	}
	for _, x := range []struct {
		off, length int64
		want        error
	}{{1, 512, host.ErrUnaligned}, {0, 100, host.ErrUnaligned}, {-512, 512, host.ErrUnaligned},
		{n.Size(), 512, host.ErrRange}, {n.Size() - 512, 1024, host.ErrRange}} {
		ctx := t.Context()
		_, write := n.WriteAt(make([]byte, x.length), x.off)
		for _, err := range []error{write, n.Discard(ctx, x.off, x.length), n.WriteZeroes(ctx, x.off, x.length)} {
			if !errors.Is(err, x.want) {
				t.Errorf("%d bytes at %d: %v", x.length, x.off, err)
			}
		}
	}
	if all, err := io.ReadAll(io.NewSectionReader(n, 0, n.Size())); err != nil || !bytes.Equal(all, p.disk) {
		t.Errorf("all of it: %d bytes, %v", len(all), err)
	}
}

// TestSweeps discards and zeroes, also more blocks than one command has, and only if the controller can.
func TestSweeps(t *testing.T) {
	t.Parallel()
	p := newPeer(t).startServing()
	copy(p.disk, random(len(p.disk), 2))
	want := bytes.Clone(p.disk)
	_, n := p.open(p.dialer())
	testrig.Must(t, n.WriteZeroes(t.Context(), 512, 2048))
	testrig.Must(t, n.Discard(t.Context(), 65536, 4096))
	testrig.Must(t, n.Discard(t.Context(), 0, 0))
	clear(want[512:][:2048])
	clear(want[65536:][:4096])
	if !bytes.Equal(p.disk, want) {
		t.Error("other blocks were changed, or not all of them")
	}
	other := newPeer(t)
	other.controller.Optional = 0
	_, n = other.startServing().open(other.dialer())
	if err := n.WriteZeroes(t.Context(), 0, 512); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Write Zeroes: %v", err)
	}
	if err := n.Discard(t.Context(), 0, 512); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Discard: %v", err)
	}
}

// TestParallel reads and writes with more goroutines than there are places in the queues, each in a part of its own.
func TestParallel(t *testing.T) {
	t.Parallel()
	p := newPeer(t).startServing()
	_, n := p.open(p.dialer())
	var all sync.WaitGroup
	const part = diskBlocks << diskShift / 64
	for g := range 64 {
		all.Go(func() {
			for turn := range 5 {
				data, back := random(part, uint64(g*100+turn)), make([]byte, part)
				if _, err := n.WriteAt(data, int64(g*part)); err != nil {
					t.Error(err)
				}
				if _, err := n.ReadAt(back, int64(g*part)); err != nil || !bytes.Equal(back, data) {
					t.Errorf("part %d, turn %d: %v", g, turn, err)
				}
			}
		})
	}
	all.Wait()
}

// TestStatus has commands fail: those that may heal are sent again, five times at most, and the others are not.
func TestStatus(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		status capsule.Status
		fails  int // so often, then it succeeds
		sent   int
		want   capsule.Status
	}{
		{capsule.InternalError, 1, 2, capsule.Success},
		{capsule.InternalError, 5, 6, capsule.Success},
		{capsule.InternalError, 6, 6, capsule.InternalError},
		{capsule.LBAOutOfRange | capsule.DNR, 9, 1, capsule.LBAOutOfRange | capsule.DNR},
	} {
		p := newPeer(t)
		left := x.fails
		p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
			if q.id > 0 && c.Opcode == capsule.OpWrite && left > 0 {
				left--
				a.Status = x.status
			}
			return true
		}
		_, n := p.startServing().open(p.dialer())
		_, err := n.WriteAt(make([]byte, 8192), 0)
		failed, _ := errors.AsType[*host.StatusError](err)
		switch {
		case x.want == capsule.Success && err != nil, x.want != capsule.Success &&
			(failed == nil || failed.Status != x.want):
			t.Errorf("%v: %v", x.status, err)
		}
		if sent := len(p.commands(capsule.OpWrite)); sent != x.sent {
			t.Errorf("%v: sent %d times, want %d", x.status, sent, x.sent)
		}
	}
}

// TestClose ends a Controller, in whatever it is doing.
func TestClose(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	held := make(chan struct{})
	p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
		if q.id > 0 && c.Opcode == capsule.OpRead {
			close(held)
			return false
		}
		return true
	}
	c, n := p.startServing().open(p.dialer())
	result := make(chan error)
	go func() {
		_, err := n.ReadAt(make([]byte, 512), 0)
		result <- err
	}()
	<-held
	testrig.Must(t, c.Close())
	if err := <-result; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a Read that was under way: %v", err)
	}
	if _, err := n.ReadAt(make([]byte, 512), 0); !errors.Is(err, host.ErrClosed) {
		t.Errorf("a Read after Close: %v", err)
	}
	testrig.Must(t, c.Close())
}

// TestContext gives up a read and a write: the memory is the caller's at once, and the connection goes on.
func TestContext(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	begun, goOn := make(chan struct{}, 9), make(chan struct{})
	p.spoil = func(q *peerQueue, c *capsule.Command, a *answer) bool {
		if q.id > 0 && c.Opcode == capsule.OpRead && c.IO().LBA == 8 {
			begun <- struct{}{}
			<-goOn
		}
		return true
	}
	copy(p.disk, bytes.Repeat([]byte{0xAA}, len(p.disk)))
	c, n := p.startServing().open(p.dialer())
	ctx, cancel := context.WithCancel(t.Context())
	b := make([]byte, 4096)
	go func() { <-begun; cancel() }()
	if _, err := n.Read(ctx, b, 4096); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(goOn)
	for range 100 { // all slots are used again, that of the given up one among them
		_, err := n.ReadAt(make([]byte, 512), 0)
		testrig.Must(t, err)
	}
	if !bytes.Equal(b, make([]byte, 4096)) {
		t.Error("memory was written to after Read had returned")
	}
	if c.Queues() != 2 || p.connections() != 3 {
		t.Errorf("%d connections, and there were to be 3", p.connections())
	}
}
