package transfer

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// TestStalled has a client begin to put a file and say no more: it has the memory of one block, and no longer than a
// minute.
func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *ServerConfig) { c.Silence = time.Hour })
		r.rnic = iwarp.NewRNIC(iwarp.RNICConfig{})
		l := r.playClient(t.Context())
		for _, m := range []message.Message{beginPut, message.Offer{Kind: message.File, Path: "x", Size: 1 << 40}} {
			testrig.Must(t, l.send(t.Context(), m))
		}
		began := time.Now()
		synctest.Wait()
		if n := r.rnic.Stats().RegisteredBytes; n < message.MaxBlock || n > message.MaxBlock+recvDepth*message.MaxLen {
			t.Errorf("it has %d bytes", n)
		}
		if err := r.served(); !errors.Is(err, ErrSilent) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < time.Minute || took > 90*time.Second {
			t.Errorf("after %v", took)
		}
		if n := r.rnic.Stats().RegisteredBytes; n != 0 {
			t.Errorf("left: %d bytes", n)
		}
		_ = l.close(errors.New("over"))
	})
}

// TestLittleMemory has a server with memory for few blocks: files come all the same, also after small ones.
func TestLittleMemory(t *testing.T) {
	small, large := randomBytes(minBlock, 41), randomBytes(10*message.MaxBlock+5, 42)
	for _, blocks := range []int{1, 3} {
		r := newRig(t)
		r.rnic = iwarp.NewRNIC(iwarp.RNICConfig{Limits: iwarp.Limits{Bytes: int64(
			blocks*message.MaxBlock + recvDepth*message.MaxLen)}})
		made(t, small, r.here, "d", "a")
		made(t, large, r.here, "d", "b")
		for range 2 { // the second time from there
			testrig.Must(t, r.put("d", func(c *Client) { c.Recursive, c.Resume = true, true }))
			r.serving.Wait()
		}
		has(t, large, r.there, "d", "b")
		testrig.Must(t, r.get("d/b"))
		has(t, large, r.here, "b")
	}
}

// TestMemoryTaken has a client that is up copy files of all lengths, in both directions, while others have taken all
// that is left; who comes then is told at startup, and comes in when there is memory again.
func TestMemoryTaken(t *testing.T) {
	for _, way := range []string{"put", "get"} {
		r := newRig(t)
		r.rnic = iwarp.NewRNIC(iwarp.RNICConfig{Limits: iwarp.Limits{Bytes: 9 << 20}})
		for i, n := range []int{1, 3 * message.MaxBlock, minBlock + 1, 9*message.MaxBlock + 5, 1000, message.MaxBlock} {
			made(t, randomBytes(n, uint64(i)), r.from(way), "f", fmt.Sprint(i))
		}
		pd, err := r.rnic.AllocPD()
		testrig.Must(t, err)
		var taken []*iwarp.MR
		testrig.Must(t, ways[way](r, recursive, r.during(func() {
			for n := 8 << 20; n > 0; n /= 2 {
				if mr, err := pd.Register(make([]byte, n), 0); err == nil {
					taken = append(taken, mr)
				}
			}
			wantRefused(t, r, way)
		})))
		r.serving.Wait()
		for _, mr := range taken {
			testrig.Must(t, mr.Deregister())
		}
		release, err := pd.Reserve(9 << 20) // of those who have gone, and who did not come up, nothing is left
		testrig.Must(t, err)
		wantRefused(t, r, way)
		release()
		made(t, randomBytes(5, 1), r.from(way), "f", "later")
		testrig.Must(t, ways[way](r, recursive, resume))
	}
}

// wantRefused has a client be told at startup that there is no memory.
func wantRefused(t *testing.T, r *rig, way string) {
	t.Helper()
	err := ways[way](r, recursive)
	rejected := (*iwarp.RejectError)(nil)
	if !errors.As(err, &rejected) || !strings.Contains(string(rejected.PrivateData),
		"no memory left for another copy: try again later") {
		t.Errorf("it has %v", err)
	}
}

// TestShareTaken has a client of an address whose others have their half of the memory be told at startup, and no
// client lose what it began with.
func TestShareTaken(t *testing.T) {
	r := newRig(t, func(c *ServerConfig) { c.Memory = 4 * message.MaxBlock })
	of := func() *share { return &share{of: r.server.shares, source: netip.MustParsePrefix("192.0.2.1/32")} }
	one, other := of(), of()
	testrig.Must(t, errors.Join(one.keep(message.MaxBlock), other.keep(message.MaxBlock), one.reserve(minBlock)))
	if err := one.reserve(message.MaxBlock); !errors.Is(err, iwarp.ErrLimit) {
		t.Errorf("more than half: %v", err)
	}
	if err := of().keep(message.MaxBlock); !errors.Is(err, iwarp.ErrLimit) {
		t.Errorf("a third client: %v", err)
	}
	one.give(minBlock)
	testrig.Must(t, errors.Join(one.reserve(message.MaxBlock), other.reserve(message.MaxBlock)))
	for _, s := range []*share{one, other} {
		s.give(message.MaxBlock)
		testrig.Must(t, s.keep(0))
	}
	if len(r.server.shares.used) != 0 {
		t.Errorf("left: %v", r.server.shares.used)
	}
}
