package driver

import (
	"time"

	"github.com/goiwarp/iwarp/internal/engine"
)

// A turn is what a goroutine that holds Conn.mu still has to do before it gives the lock up: see release.
type turn struct {
	mode      mode
	receiving bool      // it holds the receive buffer
	paced     bool      // its end counts for the next burst
	blocking  bool      // it waits for the socket: the sending goroutine, alone
	applied   bool      // what came of the Machine's last output is applied
	left      bool      // another goroutine hands up what is left
	now       time.Time // as of which it sends
	own       uint64    // in mode sendOwn: the position in the Send Queue after what the goroutine has posted
	shared    int       // writes that were for others
	handed    int       // how often it has handed up
	wrote     bool      // it has written: there may be room in the Send Queue
	parcel    *parcel   // to be handed up
	asked     *path     // what the lower layer is to be asked for
}

// A mode says how much of what there is to send a turn sends.
type mode uint8

const (
	sendAll     mode = iota // all that the socket takes at once
	sendOwn                 // what the goroutine has posted, and a bounded share of what others have
	sendNothing             // somebody else does
	sendWaiting             // all, waiting for the socket: the sending goroutine
)

// Bounds of what a goroutine does for others.
const (
	maxShare   = 4 // writes, once its own work is on its way
	maxHandUps = 8 // rounds of handing up
)

// An errand is something that is done with the lock released.
type errand uint8

const (
	nothing errand = iota
	toWrite
	toHandUp
	toAskPath
)

// release ends what a goroutine does under c.mu: it carries out what is due, and unlocks. It reports whether the
// connection still listened then.
func (c *Conn) release(t turn) (listening bool) {
	for e := c.next(&t); e != nothing; e = c.next(&t) {
		c.mu.Unlock()
		switch e {
		case toWrite:
			if t.wrote && c.isAwaited() { // this write may wait for the peer, and the one before has made room
				c.cfg.Owner.Settled(t.receiving)
			}
			c.sender.out.write(c)
		case toHandUp:
			t.parcel.give(c.cfg.Owner)
		case toAskPath:
			t.asked.ask(c.link)
		}
		c.mu.Lock()
		c.carriedOut(e, &t)
	}
	listening = c.listening()
	c.mu.Unlock()
	if t.handed > 0 || t.wrote && c.isAwaited() {
		c.cfg.Owner.Settled(t.receiving)
	}
	return listening
}

// isAwaited reports whether anybody waits for room in the Send Queue.
func (c *Conn) isAwaited() bool { return c.cfg.Waiters != nil && c.cfg.Waiters.Load() > 0 }

// turn is release for a goroutine that has nothing else to do under the lock.
func (c *Conn) turn(t turn) {
	c.mu.Lock()
	c.release(t)
}

// next says what is to be done with the lock released. Local operations send nothing: gather carries them out and finds
// nothing to write. What came of them is looked for once more at the end.
func (c *Conn) next(t *turn) errand {
	if (t.applied || !t.blocking) && c.gather(t) {
		return toWrite
	}
	if e := c.unsent(t); e != nothing {
		return e
	}
	if c.gather(t) {
		return toWrite
	}
	if e := c.unsent(t); e != nothing {
		return e
	}
	c.paced(t)
	return nothing
}

// unsent applies the outputs, and says what is to be done that is no write.
func (c *Conn) unsent(t *turn) errand {
	if !t.applied {
		c.applyOutputs()
		t.applied = true
	}
	switch {
	case c.path.asks:
		c.path.asks = false
		t.asked = &path{sent: c.machine.StreamSent()}
		return toAskPath
	case !c.mayHandUp() || t.left:
	case t.handed < maxHandUps || t.mode == sendWaiting:
		t.parcel = c.pack()
		t.handed++
		return toHandUp
	default:
		t.left = true
		go c.turn(turn{mode: sendNothing}) // others bring so much that this goroutine would not come to its end
	}
	return nothing
}

func (c *Conn) carriedOut(e errand, t *turn) {
	switch e {
	case toWrite:
		c.wrote(t)
		t.applied, t.wrote = false, true
	case toHandUp:
		c.unpack(t.parcel)
	case toAskPath:
		c.path.learn(t.asked)
	}
}

// applyOutputs does what the Machine wants done to the lower layer and the timer.
func (c *Conn) applyOutputs() {
	c.collect()
	for how := c.machine.LLP(); how != engine.Keep; how = c.machine.LLP() {
		c.endLLP(how)
		c.collect()
	}
	c.path.noteUnsent(c.machine.FINHeldUntil(), c.machine.StreamSent())
	c.signalRoom()
	c.timer.Set(c.timerAt(), c, (*Conn).onTimer)
	if c.machine.Slack() && c.state != Over {
		c.reclaim.Add(c.cfg.Reclaimer, c)
	}
}

// applyBefore applies the outputs before a write that may wait for the peer for long: what Output has done besides,
// such as local operations, or an error of one, does not wait with it.
func (c *Conn) applyBefore(t *turn) {
	if !t.blocking {
		return
	}
	c.applyOutputs()
	if c.mayHandUp() {
		go c.turn(turn{mode: sendNothing})
	}
}

// Reclaim gives back memory that was not used since the call before, and in the end the stack of the receiving
// goroutine.
func (c *Conn) Reclaim() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Trim()
	if c.tcp != nil {
		c.tcp.Rest()
	}
	more := c.reclaim.Keep(c.state != Over && c.machine.Slack())
	if !more && c.tcp != nil && c.listening() {
		c.tcp.Renew()
	}
	return more
}
