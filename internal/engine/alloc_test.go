package engine

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
)

// carry moves all bytes that one host has to another, by way of a buffer.
func carry(from, to *host, buf []byte) (n int) {
	for from.Machine.Pending() {
		v := from.Machine.Output(epoch, from.g)
		if len(v) == 0 {
			break
		}
		b := buf[:0]
		for _, s := range v {
			b = append(b, s...)
		}
		from.Machine.Sent(epoch, from.g, len(b))
		to.Machine.Input(epoch, b)
		n += len(b)
	}
	for _, h := range []*host{from, to} {
		h.spare = h.Machine.Completions(h.spare)
		h.Machine.Notices(nil)
	}
	return n
}

// A QP that runs does not allocate, whatever it does, in either direction.
func TestAllocations(t *testing.T) {
	for _, marked := range []bool{false, true} {
		for i, n := range []int{0, 64, 4000, 100000} {
			for op := OpSend; op <= OpLocalInvalidate; op++ {
				p := newPair(t, markers(marked, marked), both(aligned([]int{0, 1448}[i%2], marked)))
				buf := make([]byte, 1<<20)
				r := p.a.region(make([]byte, n), remoteAll)
				rd := p.b.region(make([]byte, n), remoteAll)
				round := func(from, to *host, rf, rt *memory.Region) {
					if op == OpSend {
						to.Machine.PostReceive(&RecvWork{SGL: listOf(all(rt, n))})
					}
					w := SendWork{Op: op, SGL: listOf(all(rf, n)), RemoteSTag: rt.STag()}
					if op == OpLocalInvalidate {
						w = SendWork{Op: op, Target: r}
					}
					from.Machine.PostSend(&w)
					for carry(from, to, buf)+carry(to, from, buf) > 0 {
					}
				}
				t.Run(fmt.Sprintf("op %d, %d bytes, markers %t", op, n, marked), func(t *testing.T) {
					got := testing.AllocsPerRun(20, func() {
						round(p.a, p.b, r, rd)
						round(p.b, p.a, rd, r)
					})
					if got != 0 || p.a.Machine.State() != RTS || p.b.Machine.State() != RTS {
						t.Errorf("%v allocations; %v", got, p.a.Machine.Cause())
					}
				})
			}
		}
	}
}
