package driver

import (
	"sync"
	"sync/atomic"

	"github.com/goiwarp/iwarp/internal/engine"
)

// handUp is what the Owner is still to be told. Conn.mu guards it.
type handUp struct {
	busy    bool // a goroutine hands up: it goes on with what comes meanwhile
	heard   bool // the peer's first FPDU has come
	notices []engine.Notice
	// How many completions for CQs are on their way there, by their queues.
	sends, recvs int
}

// A parcel is what is handed up at once.
type parcel struct {
	heard       bool
	waited      bool // somebody has waited for a completion
	completions []engine.Completion
	notices     []engine.Notice
	cause       error
	end         *End
}

var parcels = sync.Pool{New: func() any { return new(parcel) }}

// Unpolled counts completions that were handed up and not polled yet: their requests still occupy entries of their
// queues. Completions of a Shared Receive Queue's receives do not count.
type Unpolled struct{ Sends, Recvs atomic.Int64 }

// Add counts completions, but for those with a cookie: a call takes them, and nobody polls them. It returns how many it
// has counted.
func (u *Unpolled) Add(done []engine.Completion, shared bool) (sends, recvs int) {
	for i := range done {
		switch {
		case done[i].Cookie != nil:
		case done[i].Op != engine.OpReceive:
			sends++
		case !shared:
			recvs++
		}
	}
	if sends > 0 {
		u.Sends.Add(int64(sends))
	}
	if recvs > 0 {
		u.Recvs.Add(int64(recvs))
	}
	return sends, recvs
}

// collect takes the Machine's notices, and holds back those of an orderly end that is still to be waited for.
func (c *Conn) collect() {
	from := len(c.up.notices)
	c.up.notices = c.machine.Notices(c.up.notices)
	kept := c.up.notices[:from]
	for _, n := range c.up.notices[from:] {
		if c.fin.keeps(&n, c.link) {
			continue
		}
		if c.state == Leaving && n.Kind == engine.NoticeState && n.From == engine.Idle {
			n.From = engine.Closing // of which nobody was told
		}
		kept = append(kept, n)
	}
	c.up.notices = kept
}

// mayHandUp reports whether there is something to hand up, and nobody does.
func (c *Conn) mayHandUp() bool {
	return !c.up.busy && (c.machine.Completed() || len(c.up.notices) > 0 || c.up.heard || c.isOver())
}

// isOver reports whether nothing is left but to tell the Owner of the end.
func (c *Conn) isOver() bool { return c.state == Closed && !c.machine.InFlight() }

// pack takes what there is to hand up, and the End if nothing can follow it.
func (c *Conn) pack() *parcel {
	p := parcels.Get().(*parcel)
	c.up.busy = true
	p.heard, c.up.heard = c.up.heard, false
	p.completions = c.machine.Completions(p.completions)
	c.up.sends, c.up.recvs = c.cfg.Unpolled.Add(p.completions, c.cfg.RecvDepth == 0)
	p.notices, c.up.notices = c.up.notices, p.notices[:0]
	p.cause = c.machine.Cause()
	if c.isOver() {
		p.end = c.end(p.cause)
	}
	return p
}

// end ends the connection. What it builds is not on the stack that each message takes: that would be twice as large.
//
//go:noinline
func (c *Conn) end(cause error) *End {
	c.enter(Over)
	c.cfg.Reclaimer.Drop(c)
	return &End{
		State: c.machine.State(), Cause: cause, Lingered: c.machine.Lingered(), Params: c.params(),
		EMSS:  c.segments.emss,
		Stats: c.machine.Stats(), Counts: c.counted(),
	}
}

// give hands the parcel to the Owner.
func (p *parcel) give(o Owner) {
	if p.heard {
		o.Heard()
	}
	if len(p.completions) > 0 {
		p.waited = o.Completed(p.completions, p.cause)
	}
	for i := range p.notices {
		o.Noticed(&p.notices[i], p.cause)
	}
	if p.end != nil {
		o.Ended(p.end)
	}
}

// unpack notes that a parcel was handed up, and keeps its memory for another.
func (c *Conn) unpack(p *parcel) {
	c.up.busy, c.up.sends, c.up.recvs = false, 0, 0
	c.role.offer = c.role.offer || p.waited
	clear(p.completions)
	clear(p.notices)
	*p = parcel{completions: p.completions[:0], notices: p.notices[:0]}
	parcels.Put(p)
}
