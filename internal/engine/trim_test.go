package engine

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/rdmap"
)

// Whatever part of a QP has had something to hold gives its memory back at the second Trim: at the
// first one it may still be wanted.
func TestTrimEachPart(t *testing.T) {
	for name, fill := range map[string]func(q *QP, n int){
		"sends": func(q *QP, n int) {
			for range n {
				q.sq.push(&SendWork{})
			}
			for range n {
				q.sq.Drop()
			}
		},
		"receives": func(q *QP, n int) {
			for range n {
				q.rq.Add()
			}
			for range n {
				q.rq.Pop()
			}
		},
		"our Reads": func(q *QP, n int) {
			for range n {
				q.orq.Push(rdmap.Read{})
			}
			for range n {
				q.orq.Pop()
			}
		},
		"the peer's Reads": func(q *QP, n int) {
			for i := range uint32(n) {
				s := request(i+1, rdmap.ReadRequest{}).segment()
				if err := q.irrq.Push(&s); err != nil {
					t.Fatal(err)
				}
			}
			for range n {
				q.irrq.Pop()
			}
		},
		"completions": func(q *QP, n int) {
			for range n {
				q.done.add(Completion{})
			}
			q.done.drain()
		},
		"notices": func(q *QP, n int) {
			for range n {
				q.notices.add(Notice{})
			}
			q.notices.drain()
		},
		"the receive under way": func(q *QP, n int) {
			for range n {
				q.takeReceive()
			}
		},
	} {
		for _, n := range []int{1, 64} {
			t.Run(fmt.Sprintf("%s, %d", name, n), func(t *testing.T) {
				p := initiator(t, func(s *setup) { s.SendDepth, s.RecvDepth, s.ORD, s.IRD = n, n, n, n })
				p.QP.Trim()
				if p.QP.Trim(); p.QP.Slack() {
					t.Error("slack at first")
				}
				fill(p.QP, n)
				if few := name == "notices" && n <= len(p.QP.few); p.QP.Slack() == few {
					t.Errorf("slack afterwards: %t", !few)
				}
				p.QP.Trim()
				if p.QP.Trim(); p.QP.Slack() {
					t.Error("trimmed, and there is slack")
				}
			})
		}
	}
}

// A batch keeps its memory if a quarter of it was used since the last trim, or if it is small,
// and never loses an entry.
func TestTrimBatch(t *testing.T) {
	for _, c := range []struct {
		most, used int
		drained    bool
		want       int // the capacity
	}{
		{16, 4, true, 0}, {16, 5, true, 16}, {16, 1, false, 16}, {4, 0, true, 0}, {4, 1, true, 0}, {4, 2, true, 4}, {1, 0, true, 0}, {1, 1, true, 1}, {8, 0, true, 0}, {8, 8, true, 8},
	} {
		var b batch[[4]uint64] // large enough for append to add as many as are wanted, on all machines
		for range c.most {
			b.add([4]uint64{})
		}
		b.drain()
		b.trim(0)
		for range c.used {
			b.add([4]uint64{})
		}
		if c.drained {
			b.drain()
		}
		if b.trim(0); cap(b.items) != c.want || !c.drained && len(b.items) != c.used {
			t.Errorf("%+v: %d of %d", c, len(b.items), cap(b.items))
		}
	}
}
