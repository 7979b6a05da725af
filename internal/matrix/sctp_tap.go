package matrix

import (
	"context"
	"slices"
	"sync"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/sctp"
)

// An sctpTap stands between two ends and keeps the messages that they send each other by SCTP.
type sctpTap struct {
	relay *script.SCTPRelay

	mu      sync.Mutex
	all     []*association
	changed chan struct{} // closed when an association has ended, and made anew
}

// An association is one of SCTP as its packets show it.
type association struct {
	flow      *script.SCTPFlow
	indicated [2]bool // DDP's Adaptation Layer Indication, by direction
	messages  []message
	known     map[tsn]bool
	ended     string // "shutdown", or "abort-by-" an end
}

// A tsn is the number of a chunk in one direction, which one that is sent again keeps.
type tsn struct {
	dir direction
	n   uint32
}

// A message is one of SCTP, in the order in which they were sent first.
type message struct {
	dir              direction
	stream           uint16
	ppid             uint32
	unordered, whole bool
	data             []byte
}

func newSCTPTap(to string) (t *sctpTap, err error) {
	t = &sctpTap{changed: make(chan struct{})}
	t.relay, err = script.RelaySCTP(to, t.pass)
	return t, err
}

func (t *sctpTap) addr() string { return t.relay.Addr() }

func (t *sctpTap) close() { _ = t.relay.Close() }

// peer is the address by which the responder knows the last initiator.
func (t *sctpTap) peer() string {
	all := t.associations()
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].flow.Client().String()
}

// associations returns those so far.
func (t *sctpTap) associations() []*association {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]*association(nil), t.all...)
}

// drain waits for the associations to end. There will be no further ones.
func (t *sctpTap) drain(ctx context.Context) error {
	for {
		t.mu.Lock()
		open := false
		for _, a := range t.all {
			open = open || a.ended == ""
		}
		changed := t.changed
		t.mu.Unlock()
		if !open {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pass keeps what a packet says before it is passed on.
func (t *sctpTap) pass(f *script.SCTPFlow, toServer bool, packet []byte, deliver func([]byte)) {
	dir := toInitiator
	if toServer {
		dir = toResponder
	}
	all, _ := chunk.In(packet)
	t.mu.Lock()
	if a := t.of(f, all); a != nil {
		t.keep(a, dir, all)
	}
	t.mu.Unlock()
	deliver(packet)
}

func (t *sctpTap) keep(a *association, dir direction, all []chunk.Chunk) {
	before := a.ended
	for _, c := range all {
		a.keep(dir, &c)
	}
	if a.ended != before {
		close(t.changed)
		t.changed = make(chan struct{})
	}
}

// of returns the association that chunks are of, which an INIT begins. Others are of none, and it returns nil: whoever
// has a port after others gets what was still on its way to them.
func (t *sctpTap) of(f *script.SCTPFlow, all []chunk.Chunk) *association {
	for _, a := range t.all {
		if a.flow == f {
			return a
		}
	}
	if !slices.ContainsFunc(all, func(c chunk.Chunk) bool { return c.Type == chunk.TypeInit }) {
		return nil
	}
	a := &association{flow: f, known: make(map[tsn]bool)}
	t.all = append(t.all, a)
	return a
}

func (a *association) keep(dir direction, c *chunk.Chunk) {
	switch c.Type {
	case chunk.TypeInit, chunk.TypeInitAck:
		s, _ := chunk.ParseSetup(c.Value)
		a.indicated[dir] = s.Indicates(sctp.AdaptationDDP)
	case chunk.TypeData:
		a.keepData(dir, c)
	case chunk.TypeShutdownComplete:
		a.setEnd("shutdown")
	case chunk.TypeAbort:
		a.setEnd("abort-by-" + [2]string{byInitiator, byResponder}[dir])
	}
}

func (a *association) setEnd(how string) {
	if a.ended == "" {
		a.ended = how
	}
}

// keepData keeps a DATA chunk that was not there before.
func (a *association) keepData(dir direction, c *chunk.Chunk) {
	d, ok := c.Data()
	if id := (tsn{dir, d.TSN}); ok && !a.known[id] {
		a.known[id] = true
		a.messages = append(a.messages, message{
			dir: dir, stream: d.Stream, ppid: d.PPID, data: d.Bytes,
			unordered: c.Flags&chunk.FlagUnordered != 0, whole: c.Flags&chunk.FlagsWhole == chunk.FlagsWhole,
		})
	}
}

// describe returns a line for each control message that begins a half of a session.
func (t *sctpTap) describe(*cell) (lines []string) {
	for _, a := range t.associations() {
		lines = append(lines, a.describe()...)
	}
	return lines
}

// addFacts says what the last association shows, and whether there were others.
func (t *sctpTap) addFacts(c *cell) {
	all := t.associations()
	if len(all) == 0 {
		return
	}
	if !c.row.Initiator.byHand() && c.facts.up() {
		c.facts.say(onWire, "fellback", bits(len(all) > 1))
	}
	all[len(all)-1].addFacts(&c.facts)
}
