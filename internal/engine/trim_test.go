package engine

import (
	"testing"

	"github.com/goiwarp/iwarp/rdmap"
)

// Whatever part of a QP has had much to hold gives its memory back at the second Trim: at the
// first one it may still be wanted.
func TestTrimEachPart(t *testing.T) {
	const many = 64
	for name, fill := range map[string]func(q *QP){
		"sends": func(q *QP) {
			for range many {
				q.sq.push(&SendWork{})
			}
			for range many {
				q.sq.Drop()
			}
		},
		"receives": func(q *QP) {
			for range many {
				q.rq.Add()
			}
			for range many {
				q.rq.Pop()
			}
		},
		"our Reads": func(q *QP) {
			for range many {
				q.orq.Push(rdmap.Read{})
			}
			for range many {
				q.orq.Pop()
			}
		},
		"the peer's Reads": func(q *QP) {
			for i := range uint32(many) {
				s := request(i+1, rdmap.ReadRequest{}).segment()
				if err := q.irrq.Push(&s); err != nil {
					t.Fatal(err)
				}
			}
			for range many {
				q.irrq.Pop()
			}
		},
		"completions": func(q *QP) {
			for range many {
				q.done.add(Completion{})
			}
			q.done.drain()
		},
		"notices": func(q *QP) {
			for range many {
				q.notices.add(Notice{})
			}
			q.notices.drain()
		},
	} {
		p := initiator(t, func(s *setup) { s.SendDepth, s.RecvDepth, s.ORD, s.IRD = many, many, many, many })
		p.QP.Trim()
		if p.QP.Trim(); p.QP.Slack() {
			t.Errorf("%s: slack at first", name)
		}
		fill(p.QP)
		if !p.QP.Slack() {
			t.Errorf("%s: no slack afterwards", name)
		}
		p.QP.Trim()
		if p.QP.Trim(); p.QP.Slack() {
			t.Errorf("%s: trimmed, and there is slack", name)
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
		{16, 4, true, 0}, {16, 5, true, 16}, {16, 1, false, 16}, {4, 0, true, 4}, {8, 0, true, 0}, {8, 8, true, 8},
	} {
		var b batch[int]
		for i := range c.most {
			b.add(i)
		}
		b.drain()
		b.trim()
		for i := range c.used {
			b.add(i)
		}
		if c.drained {
			b.drain()
		}
		if b.trim(); cap(b.items) != c.want || !c.drained && len(b.items) != c.used {
			t.Errorf("%+v: %d of %d", c, len(b.items), cap(b.items))
		}
	}
}
