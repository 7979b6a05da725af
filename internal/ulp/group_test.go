package ulp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp/internal/ulp"
)

// flood fills a Conn with what a peer without manners sends: calls that are never answered, each with memory of its own.
func flood(c *ulp.Conn[int], call []byte, n int) {
	for i := range n {
		number(call, uint32(i))
		c.Send(i, 0, ulp.Message{Data: call, Length: len(call)})
	}
}

// number gives an RPC an xid, in both headers.
func number(b []byte, xid uint32) {
	at := 4 + bytes.Index(b[4:], b[:4])
	xid += 0xa5a5_0000 // which stands nowhere else
	binary.BigEndian.PutUint32(b[at:], xid)
	binary.BigEndian.PutUint32(b, xid)
}

// TestGroup: those that were quiet longest forget everything, and the latest is explained all the same.
func TestGroup(t *testing.T) {
	call, reply := vector(t, "rpc-call-read"), vector(t, "rpc-reply-read")
	g := ulp.Group[int]{Most: 1 << 20}
	var all []*ulp.Conn[int]
	for range 20 {
		c := g.New(20049, [2][]byte{})
		all = append(all, c)
		flood(c, call, 800)
		flood(all[0], call, 2) // is never quiet
		if g.Used() > g.Most {
			t.Fatalf("%d bytes are used", g.Used())
		}
	}
	forgotten := 0
	for _, c := range all {
		if c.Forgotten != c.Off() {
			t.Errorf("forgotten %v, off %v", c.Forgotten, c.Off())
		}
		if c.Forgotten {
			forgotten++
		}
	}
	if forgotten == 0 || forgotten > 18 || all[0].Forgotten || all[19].Forgotten || !all[1].Forgotten {
		t.Errorf("%d are forgotten", forgotten)
	}
	if said := all[1].Send(0, 1, ulp.Message{Data: reply, Length: len(reply)}); len(said) > 0 {
		t.Errorf("one that is forgotten says %v", said)
	}
	last := all[19]
	number(call, 7)
	number(reply, 7)
	last.Send(1, 0, ulp.Message{Data: call, Length: len(call)})
	if said := last.Send(2, 1, ulp.Message{Data: reply, Length: len(reply)}); len(said) != 1 || said[0].Asked != 1 {
		t.Errorf("the latest says %+v", said)
	}
	for _, c := range all {
		c.Leave()
	}
	if g.Used() != 0 {
		t.Errorf("%d bytes are used by nobody", g.Used())
	}
}

// TestGroupOfBeginnings: the beginnings of Sends count as well, before anything is whole.
func TestGroupOfBeginnings(t *testing.T) {
	g := ulp.Group[int]{Most: 1 << 20}
	first := g.New(7174, [2][]byte{})
	for range 200 {
		c := g.New(7174, [2][]byte{})
		c.Heads[0] = make([]byte, 8<<10)
		c.Count()
	}
	if !first.Forgotten || g.Used() > g.Most {
		t.Errorf("forgotten %v, %d bytes are used", first.Forgotten, g.Used())
	}
}

// TestGroupMemory: what is counted is about what is used.
func TestGroupMemory(t *testing.T) {
	for _, n := range []int{1, 3, 60, 2000} {
		if err := weigh(vector(t, "rpc-call-read"), n); err != nil {
			t.Error(err)
		}
	}
}

// weigh compares what many Conns are said to use with what they do.
func weigh(message []byte, n int) error {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	g := ulp.Group[int]{Most: math.MaxInt}
	conns := max(4000/n, 4)
	all := make([]*ulp.Conn[int], conns)
	for i := range all {
		all[i] = g.New(20049, [2][]byte{})
		flood(all[i], message, n)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	took := int(after.HeapAlloc) - int(before.HeapAlloc)
	if counted := g.Used(); took > counted+counted/2 || took < counted/4 {
		return fmt.Errorf("%d messages each: %d bytes are used, and %d counted", n, took, counted)
	}
	runtime.KeepAlive(all)
	return nil
}
