package iwarp_test

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// A benchRig is a connection over TCP with both ends in this process, and one goroutine
// that is the consumer of both.
type benchRig struct {
	*testing.B
	ini, res      *rig.End
	local, remote *iwarp.MR
	op            iwarp.Op
	size, depth   int
	wc            [64]iwarp.WC
}

func newBenchRig(b *testing.B, op iwarp.Op, size, depth int) *benchRig {
	b.Helper()
	cfg := iwarp.QPConfig{SendDepth: 2*depth + 16, RecvDepth: 2*depth + 16}
	s := rig.Setup{Dialer: iwarp.Dialer{QP: cfg}, Accept: iwarp.AcceptConfig{QP: cfg}}
	r := &benchRig{B: b, op: op, size: size, depth: depth}
	r.ini, r.res = s.Connect(b)
	r.local = r.ini.MR(size, iwarp.LocalWrite)
	r.remote = r.res.MR(size, iwarp.RemoteWrite|iwarp.RemoteRead)
	return r
}

// post posts one request, and the receive that a Send needs.
func (r *benchRig) post() {
	to := r.remote.Remote(0)
	if r.op == iwarp.OpSend {
		to = iwarp.Remote{}
		r.check(r.res.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{r.remote.Slice(0, r.size)}}))
	}
	r.check(r.ini.PostSend(&iwarp.SendWR{
		Op: r.op, SGL: []iwarp.SGE{r.local.Slice(0, r.size)}, Remote: to, Unsignaled: r.op == iwarp.OpSend,
	}))
}

// check is must without a call of Helper, which takes longer than a short message.
func (r *benchRig) check(err error) {
	if err != nil {
		r.Fatal(err)
	}
}

// drain waits for the completions of n requests: of a Send, for that of its receive.
func (r *benchRig) drain(n int) {
	cq := r.ini.SendCQ()
	if r.op == iwarp.OpSend {
		cq = r.res.RecvCQ()
	}
	for n > 0 {
		got := cq.Poll(r.wc[:])
		if got == 0 {
			r.check(cq.Wait(r.Context()))
		}
		for i := range r.wc[:got] {
			r.check(r.wc[i].Err())
		}
		n -= got
	}
}

// calls counts the calls of both ends that have sent or brought bytes.
func (r *benchRig) calls() (n uint64) {
	for _, e := range []*rig.End{r.ini, r.res} {
		s := e.Stats()
		n += s.SendCalls + s.ReceiveCalls
	}
	return n
}

// BenchmarkPostSend posts requests one by one, a number of them before it waits for their
// completions. calls/op are the system calls of both ends that have moved bytes.
func BenchmarkPostSend(b *testing.B) {
	for _, op := range []iwarp.Op{iwarp.OpSend, iwarp.OpWrite, iwarp.OpRead} {
		for _, c := range []struct{ size, depth int }{{64, 1}, {64, 128}, {64, 512}, {64 << 10, 1}, {1 << 20, 4}} {
			b.Run(fmt.Sprintf("%v/size=%d/depth=%d", op, c.size, c.depth), func(b *testing.B) {
				r := newBenchRig(b, op, c.size, c.depth)
				before, posted := r.calls(), 0
				b.SetBytes(int64(c.size))
				b.ReportAllocs()
				for b.Loop() {
					if r.post(); posted == c.depth-1 {
						r.drain(c.depth)
						posted = -1
					}
					posted++
				}
				r.drain(posted)
				b.ReportMetric(float64(r.calls()-before)/float64(b.N), "calls/op")
			})
		}
	}
}
