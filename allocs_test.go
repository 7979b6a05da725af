package iwarp_test

import (
	"runtime"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestNoAllocations runs each operation in its steady state, over TCP, with both
// ends in this process: neither allocates.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ini, res := connect(t)
	const n, burst = 4096, 50
	local, remote := ini.mr(n, iwarp.LocalWrite), res.mr(n, iwarp.RemoteWrite|iwarp.RemoteRead)
	words := res.mr(8, iwarp.RemoteAtomic)
	ctx := t.Context()
	poll := func(cq *iwarp.CQ) {
		wc, err := cq.Next(ctx)
		if err != nil || wc.Status != iwarp.StatusSuccess {
			t.Fatal(err, wc.Err())
		}
	}
	posted := func(op iwarp.Op, to iwarp.Remote) func() {
		return func() {
			ini.post(&iwarp.SendWR{Op: op, SGL: []iwarp.SGE{local.Slice(0, n)}, Remote: to})
			poll(ini.SendCQ())
		}
	}
	send := posted(iwarp.OpSend, iwarp.Remote{})
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"posted Write", posted(iwarp.OpWrite, remote.Remote(0))},
		{"posted Read", posted(iwarp.OpRead, remote.Remote(0))},
		{"posted Send", func() {
			res.postRecv(1, remote.Slice(0, n))
			send()
			poll(res.RecvCQ())
		}},
		{"inline Send", func() {
			res.postRecv(1, remote.Slice(0, n))
			ini.post(&iwarp.SendWR{Op: iwarp.OpSend, Inline: local.Bytes()[:64], Unsignaled: true})
			poll(res.RecvCQ())
		}},
		{"burst of inline Sends", func() {
			for range burst {
				res.postRecv(1, remote.Slice(0, n))
			}
			for range burst {
				ini.post(&iwarp.SendWR{Op: iwarp.OpSend, Inline: local.Bytes()[:64], Unsignaled: true})
			}
			for range burst {
				poll(res.RecvCQ())
			}
		}},
		{"Write", func() {
			if _, err := ini.Write(ctx, local.Slice(0, n), remote.Remote(0)); err != nil {
				t.Fatal(err)
			}
		}},
		{"Read", func() {
			if _, err := ini.Read(ctx, local.Slice(0, n), remote.Remote(0)); err != nil {
				t.Fatal(err)
			}
		}},
		{"Send", func() {
			res.postRecv(1, remote.Slice(0, n))
			must(t, ini.Send(ctx, local.Slice(0, n)))
			poll(res.RecvCQ())
		}},
		{"FetchAdd", func() {
			if _, err := ini.FetchAdd(ctx, words.Remote(0), 1); err != nil {
				t.Fatal(err)
			}
		}},
		{"posted CompareSwap", func() {
			ini.post(&iwarp.SendWR{Op: iwarp.OpCompareSwap, Remote: words.Remote(0), Swap: 1, SGL: []iwarp.SGE{local.Slice(0, 8)}, Masks: &iwarp.Masks{Compare: 1, Swap: 2}})
			poll(ini.SendCQ())
		}},
		{"WriteImm", func() {
			res.postRecv(1)
			if _, err := ini.WriteImm(ctx, local.Slice(0, n), remote.Remote(0), 1); err != nil {
				t.Fatal(err)
			}
			poll(res.RecvCQ())
		}},
	} {
		for range 200 { // to the steady state
			c.run()
		}
		runtime.GC()
		if got := testing.AllocsPerRun(500, c.run); got != 0 {
			t.Errorf("%s: %v allocations", c.name, got)
		}
	}
}
