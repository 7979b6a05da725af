package usertcp

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	// unclaimedFlows is how many flows wait for somebody to claim them, those of connections that are being established
	// or wait for Accept, before those are dropped that TCP has no connection for.
	unclaimedFlows = 2 * backlog
	// cookieFlows is how many of these are kept then. In a flood of SYNs, TCP answers most of them by a cookie and
	// keeps nothing: a connection may come of it, or not. One whose flow was dropped shows nothing ahead.
	cookieFlows = backlog / 4
	// sweepPause is how often they are looked for otherwise.
	sweepPause = 10 * time.Second
)

// wait keeps a flow until it is claimed, or there is no connection that it could be of.
func (t *taps) wait(f *flow) {
	if old := t.flows[f.ends]; old != nil {
		t.drop(old)
	}
	t.flows[f.ends], f.waits = f, t.unclaimed.PushBack(f)
	t.most = max(t.most, len(t.flows))
	if t.unclaimed.Len() > t.room {
		t.dropUnowned(t.unclaimed.Len()-cookieFlows, true)
		t.room = max(unclaimedFlows, 2*t.unclaimed.Len())
	}
	if !t.sweeping {
		t.sweeping = true
		time.AfterFunc(sweepPause, t.sweep)
	}
}

// drop takes a flow out of those that there are.
func (t *taps) drop(f *flow) {
	t.waitNoMore(f)
	delete(t.flows, f.ends)
}

// dropUnowned drops those of the first so many that wait that TCP has no connection for, all of them or those that it
// had none for the last time either.
func (t *taps) dropUnowned(first int, all bool) {
	for e := t.unclaimed.Front(); e != nil && first > 0; first-- {
		f := e.Value.(*flow)
		e = e.Next()
		switch {
		case ownedByTCP(t.state(f.ends)):
			f.aged = false
		case all || f.aged:
			t.drop(f)
		default:
			f.aged = true
		}
	}
}

// ownedByTCP reports whether TCP has a connection of its own, which a Listener is not.
func ownedByTCP(s tcp.EndpointState) bool {
	return s != tcp.StateListen && s != tcp.StateClose && s != tcp.StateError
}

// sweep drops the flows that TCP has had no connection for, for a whole pause at least.
func (t *taps) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropUnowned(t.unclaimed.Len(), false)
	t.shrink()
	if t.sweeping = t.unclaimed.Len() > 0; t.sweeping {
		time.AfterFunc(sweepPause, t.sweep)
	}
}

// shrink makes the map anew where it was much larger: it keeps its memory otherwise.
func (t *taps) shrink() {
	if t.most < 4*len(t.flows)+cookieFlows {
		return
	}
	flows := make(map[ends]*flow, len(t.flows))
	for e, f := range t.flows {
		flows[e] = f
	}
	t.flows, t.most, t.room = flows, len(flows), unclaimedFlows
}
