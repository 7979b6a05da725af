package target

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
)

// bufferRig are buffers of up to 16 KiB.
func bufferRig(t *testing.T) (b *buffers, registered func() int) {
	t.Helper()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	t.Cleanup(func() { _ = rnic.Close() })
	pd, err := rnic.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	return newBuffers(pd, 16<<10), func() int { return rnic.Stats().RegisteredBytes }
}

// wantBuffer gets memory, of a length.
func wantBuffer(t *testing.T, b *buffers, n, length int) *iwarp.MR {
	t.Helper()
	mr, err := b.get(t.Context(), n)
	if err != nil || mr.Len() != length {
		t.Fatalf("%d bytes: %v, %v, want %d", n, mr, err, length)
	}
	return mr
}

// TestBuffersSizes: memory is of powers of two bytes, one page at least, and what was given back is given out again.
func TestBuffersSizes(t *testing.T) {
	b, registered := bufferRig(t)
	for n, length := range map[int]int{1: 4096, 4096: 4096, 4097: 8192, 8192: 8192, 16384: 16384} {
		mr := wantBuffer(t, b, n, length)
		b.put(mr)
		if again := wantBuffer(t, b, n, length); again != mr {
			t.Errorf("%d bytes: other memory, where there was some", n)
		}
		b.put(mr)
		if b.total > b.limit || registered() != b.total || len(b.used) > 0 {
			t.Errorf("%d bytes: %d are counted, and %d registered", n, b.total, registered())
		}
	}
	kept, back := wantBuffer(t, b, 1, 4096), wantBuffer(t, b, 8192, 8192)
	b.put(back)
	b.release()
	if registered() != 0 || kept.Deregister() == nil {
		t.Errorf("%d bytes are left", registered())
	}
	b.put(kept) // by a command that ends after its connection
}

// TestBuffersLimit: the limit is reached and not exceeded. Who comes then waits until something is given back, which
// goes if it is of another length, and only as much of it as is needed; or until there is no use in it.
func TestBuffersLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, registered := bufferRig(t)
		half, other := wantBuffer(t, b, 8192, 8192), wantBuffer(t, b, 8192, 8192)
		gone, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the connection has ended")
		ended := make(chan error)
		wait := func(ctx context.Context) {
			_, err := b.get(ctx, 4096)
			ended <- err
		}
		go wait(gone)
		synctest.Wait()
		go wait(gone) // which waits for its turn
		synctest.Wait()
		cancel(why)
		for range 2 {
			if err := <-ended; !errors.Is(err, why) {
				t.Errorf("who gives up has %v", err)
			}
		}
		go wait(t.Context())
		synctest.Wait()
		select {
		case err := <-ended:
			t.Errorf("beyond the limit: %v", err)
		default:
		}
		b.put(half)
		if err := <-ended; err != nil || registered() != 8192+4096 || b.total != 8192+4096 {
			t.Errorf("%v, %d bytes", err, registered())
		}
		wantBuffer(t, b, 4096, 4096)
		if b.put(other); registered() != 16<<10 {
			t.Errorf("%d bytes: what is given back is kept", registered())
		}
		if wantBuffer(t, b, 4096, 4096); registered() != 3*4096 {
			t.Errorf("%d bytes: it makes way", registered())
		}
	})
}
