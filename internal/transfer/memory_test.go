package transfer

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// TestStalled has a client begin to put a file and say no more: it has the memory of one block, and no longer than a minute.
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
		if n := r.rnic.Stats().RegisteredOctets; n < message.MaxBlock || n > message.MaxBlock+recvDepth*message.MaxLen {
			t.Errorf("it has %d octets", n)
		}
		if err := r.served(); !errors.Is(err, ErrSilent) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("after %v", took)
		}
		if n := r.rnic.Stats().RegisteredOctets; n != 0 {
			t.Errorf("left: %d octets", n)
		}
		_ = l.close(errors.New("over"))
	})
}

// TestLittleMemory has a server with memory for few blocks, or for none: files come all the same, also after small ones, or are left out, and told.
func TestLittleMemory(t *testing.T) {
	small, large := octets(minBlock, 41), octets(10*message.MaxBlock+5, 42)
	for _, blocks := range []int{1, 3} {
		r := newRig(t)
		r.rnic = iwarp.NewRNIC(iwarp.RNICConfig{Limits: iwarp.Limits{Octets: int64(blocks*message.MaxBlock + recvDepth*message.MaxLen)}})
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
	r := newRig(t)
	r.rnic = iwarp.NewRNIC(iwarp.RNICConfig{Limits: iwarp.Limits{Octets: minBlock + recvDepth*message.MaxLen}})
	made(t, large, r.here, "f")
	made(t, small, r.here, "g")
	r.leaves(r.put("f"), message.Failed)
	lists(t, r.there)
	testrig.Must(t, r.put("g"))
	has(t, small, r.there, "g")
}
