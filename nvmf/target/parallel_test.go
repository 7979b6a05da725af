package target_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/capsule"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

// An actor has a part of the disk, and of a queue's memory, to itself, and knows what is on it.
type actor struct {
	w     *wire
	lba   uint64
	at    int // in the memory
	want  []byte
	steps int
	seed  uint64
}

const actorLen = 64 << 10

// act does anything, and compares.
func (a *actor) act() error {
	r := rand.New(rand.NewPCG(a.seed, 0))
	for step := range a.steps {
		first := r.IntN(actorLen / 512)
		n := 1 + r.IntN(actorLen/512-first)
		off, size := first*512, n*512
		i := blocks(a.lba+uint64(first), uint32(n), a.w.keyed(a.at, size))
		switch op := r.IntN(6); op {
		case 0, 1:
			data := pattern(size, byte(r.Uint32()))
			copy(a.want[off:], data)
			a.w.put(data, a.at)
			if err := a.done(i.Command(capsule.OpWrite), nil); err != nil {
				return err
			}
		case 2:
			n = min(n, 8)
			data := pattern(n*512, byte(r.Uint32()))
			copy(a.want[off:], data)
			i.Blocks, i.SGL = uint32(n), capsule.SGL{Type: capsule.SGLOffset, Length: uint32(n * 512)}
			if err := a.done(i.Command(capsule.OpWrite), data); err != nil {
				return err
			}
		case 3:
			clear(a.want[off:][:size])
			i.SGL = capsule.SGL{Type: capsule.SGLKeyed}
			if err := a.done(i.Command(capsule.OpWriteZeroes), nil); err != nil {
				return err
			}
		default:
			if err := a.done(i.Command(capsule.OpRead), nil); err != nil {
				return err
			}
			if got := a.w.get(a.at, size); !bytes.Equal(got, a.want[off:][:size]) {
				return fmt.Errorf("step %d: %d bytes at %d are not what was written", step, size, off)
			}
		}
	}
	return nil
}

func (a *actor) done(c capsule.Command, data []byte) error {
	got, ok := a.w.try(c, data)
	if !ok || got.Status != capsule.Success {
		return fmt.Errorf("%v: %v", c, got.Status)
	}
	return nil
}

// TestParallel has several hosts with several queues do anything at the same time, and holds the disk against memory.
// The queues have less memory than all commands together want.
func TestParallel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		queues := rapid.IntRange(1, 3).Draw(rt, "queues of each host")
		actors := rapid.IntRange(1, 6).Draw(rt, "commands at a time on each")
		seed := rapid.Uint64().Draw(rt, "seed")
		memory := rapid.SampledFrom([]int{128 << 10, 4 << 20}).Draw(rt, "memory of a queue")
		disks := newRig(t, func(c *Config) { c.MaxData, c.QueueMemory = 64<<10, memory })
		var all []*actor
		for host := range 2 {
			a := disks.dial(0, 32)
			a.host = byte(host + 1)
			a.connect(0).enable()
			for q := range queues {
				w := disks.io(a, uint16(q+1), 8)
				for i := range actors {
					all = append(all, &actor{w: w, lba: uint64(len(all) * actorLen / 512), at: i * actorLen,
						want: make([]byte, actorLen), steps: 12, seed: seed + uint64(len(all))})
				}
			}
		}
		errs := make([]error, len(all))
		var done sync.WaitGroup
		for i, a := range all {
			done.Go(func() { errs[i] = a.act() })
		}
		done.Wait()
		for i, a := range all {
			if errs[i] != nil {
				rt.Errorf("actor %d: %v", i, errs[i])
			}
			same(t, "what an actor has written", disks.on(int64(i*actorLen), actorLen), a.want)
		}
	})
}
