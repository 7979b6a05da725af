package target

import (
	"context"
	"math/bits"
	"sync"

	"github.com/goiwarp/iwarp"
)

// buffers are registered memory for the data of commands, of powers of two bytes, up to a limit.
type buffers struct {
	pd    *iwarp.PD
	limit int
	turn  chan struct{} // a token of whoever waits for memory: the others wait for their turn

	mu    sync.Mutex
	free  map[int][]*iwarp.MR // by length
	used  map[*iwarp.MR]bool
	total int           // bytes, in use or free
	freed chan struct{} // is closed when some was given back
}

const smallest = 4096

func newBuffers(pd *iwarp.PD, limit int) *buffers {
	return &buffers{pd: pd, limit: limit, turn: make(chan struct{}, 1), free: map[int][]*iwarp.MR{},
		used: map[*iwarp.MR]bool{}, freed: make(chan struct{})}
}

// get returns memory of n bytes or more, and waits for it where the limit is reached.
func (b *buffers) get(ctx context.Context, n int) (*iwarp.MR, error) {
	size := max(smallest, 1<<bits.Len(uint(n-1)))
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for {
		mr, freed, err := b.try(size)
		if mr != nil || err != nil {
			return mr, err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// try returns memory, or what to wait for.
func (b *buffers) try(size int) (*iwarp.MR, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if list := b.free[size]; len(list) > 0 {
		mr := list[len(list)-1]
		b.free[size], b.used[mr] = list[:len(list)-1], true
		return mr, nil, nil
	}
	b.trim(b.limit - size)
	if b.total > b.limit-size {
		return nil, b.freed, nil
	}
	mr, err := b.pd.Register(make([]byte, size), iwarp.LocalWrite)
	if err == nil {
		b.total += size
		b.used[mr] = true
	}
	return mr, nil, err
}

// trim gives up free memory until there are no more bytes than that, if possible.
func (b *buffers) trim(n int) {
	for size, list := range b.free {
		for b.total > n && len(list) > 0 {
			_ = list[len(list)-1].Deregister()
			list, b.total = list[:len(list)-1], b.total-size
		}
		b.free[size] = list
	}
}

// put gives memory back.
func (b *buffers) put(mr *iwarp.MR) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.used, mr)
	b.free[mr.Len()] = append(b.free[mr.Len()], mr)
	close(b.freed)
	b.freed = make(chan struct{})
}

// release gives up everything, after the end of the connection.
func (b *buffers) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trim(0)
	for mr := range b.used {
		_ = mr.Deregister()
	}
}
