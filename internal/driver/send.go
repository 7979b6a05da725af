package driver

import (
	"sync"

	"github.com/goiwarp/iwarp/internal/engine"
)

// sender has the state of sending. Conn.mu guards it.
type sender struct {
	state   senderState
	writing bool // someone is in a write, and goes on with what is queued
	gather  *engine.Gather
	out     write  // the write under way, which its goroutine reads and sets without the lock
	run     func() // the sending goroutine's function: made once, as a new closure for each `go` would allocate
}

type senderState uint8

const (
	noSender senderState = iota
	running              // there is a sending goroutine, which takes whatever is queued when it comes to run
	owning               // and it alone may write: what the socket did not take is waiting
)

var gathers = sync.Pool{New: func() any { return engine.NewGather() }}

// A write is one write to the lower layer, and what came of it.
type write struct {
	batch    [][]byte
	asks     bool // TCP is to be asked for the EMSS, too
	blocking bool

	n            int
	wait         bool // the socket would not take it all
	err          error
	emss, record int // as TCP says; 0: it was not asked
}

func (w *write) write(c *Conn) {
	if w.blocking {
		w.n, w.err = c.link.Send(w.batch)
	} else {
		w.n, w.wait, w.err = c.link.TrySend(w.batch)
	}
	if w.err == nil && w.asks {
		w.emss, w.record = c.tcp.Limits()
	}
}

// gather builds the next write of a turn. It reports false if the turn has nothing to send.
func (c *Conn) gather(t *turn) bool {
	s := &c.sender
	if t.mode == sendWaiting && s.state == owning {
		s.state, t.blocking = running, true
	}
	switch {
	case t.blocking:
		t.now = c.now()
	case t.mode == sendNothing || s.writing || c.state > Leaving || !c.machine.Pending():
		return false
	case t.mode == sendOwn && c.machine.Begun(t.own):
		if t.shared++; t.shared > maxShare {
			s.handOver()
			return false
		}
	}
	if s.gather == nil {
		s.gather = gathers.Get().(*engine.Gather)
	}
	v := c.machine.Output(t.now, s.gather)
	t.applied = false
	if len(v) == 0 {
		s.putGather()
		if t.blocking {
			t.blocking, s.writing = false, false
		}
		return false
	}
	s.writing = true
	c.applyBefore(t)
	s.out = write{batch: v, blocking: t.blocking, asks: c.tcp != nil && c.segments.due(t.now, c.machine.StreamSent())}
	return true
}

// wrote tells the Machine how a write went.
func (c *Conn) wrote(t *turn) {
	s, w := &c.sender, &c.sender.out
	t.now = c.now()
	c.burst.wrote = t.now
	c.counts.SendCalls++
	if w.err != nil {
		c.machine.Abandon(t.now, s.gather)
		c.machine.Failed(t.now, w.err)
	} else {
		if !s.gather.OnlyNudges() { // which go to peers that do nothing
			c.watch.moved = t.now
		}
		c.followMULPDU(w) // before the next FPDU is built
		c.machine.Sent(t.now, s.gather, w.n)
	}
	w.batch = nil
	switch {
	case t.blocking:
	case w.err != nil || !w.wait:
		s.writing = false
		s.putGather()
	case t.mode == sendWaiting:
		t.blocking = true
	default:
		s.handOver()
	}
}

// handOver has the sending goroutine go on, as the only one that may write.
func (s *sender) handOver() {
	s.writing = true
	s.start()
	s.state = owning
}

// start sees to it that there is a sending goroutine. It ends when nothing is left to send.
func (s *sender) start() {
	if s.state == noSender {
		s.state = running
		go s.run()
	}
}

func (s *sender) putGather() {
	if s.gather != nil {
		gathers.Put(s.gather)
		s.gather = nil
	}
}
