package engine

import (
	"fmt"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
)

// Whatever part of a QP has had something to hold gives its memory back at the second Trim: at the
// first one it may still be wanted.
func TestTrimEachPart(t *testing.T) {
	for name, fill := range map[string]func(q *Machine, n int){
		"sends": func(q *Machine, n int) {
			for range n {
				q.sq.push(&SendWork{})
			}
			for range n {
				q.sq.Drop()
			}
		},
		"receives": func(q *Machine, n int) {
			for range n {
				q.rq.Add()
			}
			for range n {
				q.rq.Pop()
			}
		},
		"our Reads": func(q *Machine, n int) {
			for range n {
				q.orq.Push(rdmap.Read{})
			}
			for range n {
				q.orq.Pop()
			}
		},
		"the peer's Reads": func(q *Machine, n int) {
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
		"completions": func(q *Machine, n int) {
			for range n {
				q.done.add(Completion{})
			}
			q.done.drain()
		},
		"notices": func(q *Machine, n int) {
			for range n {
				q.notices.add(Notice{})
			}
			q.notices.drain()
		},
		"Sends ahead of their turn": func(q *Machine, n int) {
			queue, sends := &q.queues[rdmap.QNSend], make([]ddp.Segment, n)
			for i := range sends {
				sends[i] = send(uint32(i+1), []byte("x")).segment()
				if !queue.TakeAhead(&sends[i], n, 1) {
					t.Fatal("not taken ahead")
				}
			}
			for i := range sends {
				queue.Place(&sends[i])
			}
		},
		"the receive under way": func(q *Machine, n int) {
			for range n {
				q.takeReceive()
			}
		},
	} {
		for _, n := range []int{1, 64} {
			t.Run(fmt.Sprintf("%s, %d", name, n), func(t *testing.T) {
				p := initiator(t, func(s *setup) { s.SendDepth, s.RecvDepth, s.ORD, s.IRD = n, n, n, n })
				p.Machine.Trim()
				if p.Machine.Trim(); p.Machine.Slack() {
					t.Error("slack at first")
				}
				fill(p.Machine, n)
				if few := name == "notices" && n <= len(p.Machine.few); p.Machine.Slack() == few {
					t.Errorf("slack afterwards: %t", !few)
				}
				p.Machine.Trim()
				if p.Machine.Trim(); p.Machine.Slack() {
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
		{16, 4, true, 0}, {16, 5, true, 16}, {16, 1, false, 16}, {4, 0, true, 0}, {4, 1, true, 0}, {4, 2, true, 4},
		{1, 0, true, 0}, {1, 1, true, 1}, {8, 0, true, 0}, {8, 8, true, 8},
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

// A Trim between two segments of a Send leaves the receive that it fills, and there is no slack in that. Memory for the
// next one stays while there are some.
func TestTrimWithinSend(t *testing.T) {
	p := responder(t)
	buf := make([]byte, 10)
	r := p.region(buf, remoteAll)
	for id := range uint64(2) {
		p.receive(id, SGE{Region: r, Offset: 0, Length: 10})
		p.send(send(uint32(id+1), []byte("ab")).more())
		p.Machine.Trim()
		if p.Machine.Trim(); p.Machine.Slack() {
			t.Error("slack within a Send")
		}
		p.send(send(uint32(id+1), []byte("cd")).at(2))
		p.completion(success(id, OpReceive, 4))
		if string(buf[:4]) != "abcd" {
			t.Errorf("%q", buf)
		}
		clear(buf)
	}
	p.receive(2)
	p.send(send(3, nil))
	p.completion(success(2, OpReceive, 0))
	for i, want := range []bool{true, false} {
		if p.Machine.Trim(); (p.Machine.current != nil) != want {
			t.Errorf("after %d Trims there is memory for a receive: %t", i+1, !want)
		}
	}
}

// When nothing waits for a receive any more, there is no table of what waits.
func TestTrimRNR(t *testing.T) {
	p := responder(t, patient(1<<20, 100))
	for msn := range uint32(9) {
		p.send(send(msn+1, nil))
	}
	for id := range uint64(9) {
		if p.Machine.rnr.segments == nil {
			t.Fatal("nothing waits")
		}
		p.receiveLate(id)
		p.completion(success(id, OpReceive, 0))
	}
	if p.Machine.rnr.segments != nil {
		t.Errorf("room for %d segments is left", cap(p.Machine.rnr.segments))
	}
}
