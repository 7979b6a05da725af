package transfer

import (
	"errors"
	"fmt"
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
		if took := time.Since(began); took < time.Minute || took > 90*time.Second {
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
	r.serving.Wait() // until then it has memory
	testrig.Must(t, r.put("g"))
	has(t, small, r.there, "g")
}

// TestMemoryShort has a server with memory for small files alone, and large ones in turns with more of the small than there are blocks: each large one is left
// out, and told, in both directions, and the small ones come.
func TestMemoryShort(t *testing.T) {
	for _, way := range []string{"put", "get"} {
		r := newRig(t)
		r.rnic = iwarp.NewRNIC(iwarp.RNICConfig{Limits: iwarp.Limits{Octets: 4 * (minBlock + recvDepth*message.MaxLen)}}) // each source of a get has a connection
		var all, small []string
		for i := range window + 3 {
			a, b := fmt.Sprintf("%02da", i), fmt.Sprintf("%02db", i)
			made(t, octets(1000, 43), r.from(way), a)
			made(t, octets(message.MaxBlock+1, 44), r.from(way), b)
			all, small = append(all, a, b), append(small, a)
		}
		code, err := message.Failed, error(nil)
		if way == "put" {
			t.Chdir(r.here)
			_, err = r.client().Put(testrig.Within(t), all, "")
		} else {
			code = message.NotRegular // as of all that does not get to be offered
			_, err = r.client().Get(testrig.Within(t), all, r.here)
		}
		r.leaves(err, code)
		r.says(`"00b": not copied: ` + noMemory)
		lists(t, r.to(way), small...)
		testrig.Must(t, r.served())
	}
}
