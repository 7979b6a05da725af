package matrix

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/goiwarp/iwarp/internal/script"
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
	t.mu.Lock()
	a := t.of(f)
	before := a.ended
	for _, c := range script.Chunks(packet) {
		a.keep(dir, c)
	}
	if a.ended != before {
		close(t.changed)
		t.changed = make(chan struct{})
	}
	t.mu.Unlock()
	deliver(packet)
}

func (t *sctpTap) of(f *script.SCTPFlow) *association {
	for _, a := range t.all {
		if a.flow == f {
			return a
		}
	}
	a := &association{flow: f, known: make(map[tsn]bool)}
	t.all = append(t.all, a)
	return a
}

// Chunk types of RFC 9260, section 3.2.
const (
	chunkData             = 0
	chunkInit             = 1
	chunkInitAck          = 2
	chunkAbort            = 6
	chunkShutdownComplete = 14
)

func (a *association) keep(dir direction, c script.Chunk) {
	switch c.Type {
	case chunkInit, chunkInitAck:
		a.indicated[dir] = indicatesDDP(c.Value)
	case chunkData:
		a.keepData(dir, c)
	case chunkShutdownComplete:
		a.end("shutdown")
	case chunkAbort:
		a.end("abort-by-" + [2]string{byInitiator, byResponder}[dir])
	}
}

func (a *association) end(how string) {
	if a.ended == "" {
		a.ended = how
	}
}

// keepData keeps a DATA chunk that was not there before: RFC 9260, section 3.3.1.
func (a *association) keepData(dir direction, c script.Chunk) {
	const header = 12
	if len(c.Value) < header {
		return
	}
	id := tsn{dir, binary.BigEndian.Uint32(c.Value)}
	if a.known[id] {
		return
	}
	a.known[id] = true
	a.messages = append(a.messages, message{
		dir: dir, stream: binary.BigEndian.Uint16(c.Value[4:]), ppid: binary.BigEndian.Uint32(c.Value[8:]),
		unordered: c.Flags&4 != 0, whole: c.Flags&3 == 3, data: c.Value[header:],
	})
}

// indicatesDDP looks for Adaptation Layer Indication 1 among the parameters of an INIT or INIT ACK: RFC 5061, section
// 4.2.6, and RFC 5043, section 5.1.
func indicatesDDP(value []byte) bool {
	const fixed, kind, ddp = 16, 0xC006, 1
	for rest := value[min(fixed, len(value)):]; len(rest) >= 4; {
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if n < 4 || n > len(rest) {
			return false
		}
		if binary.BigEndian.Uint16(rest) == kind && n == 8 {
			return binary.BigEndian.Uint32(rest[4:]) == ddp
		}
		rest = rest[min((n+3)&^3, len(rest)):]
	}
	return false
}

// describe returns a line for each control message that begins a half of a session.
func (t *sctpTap) describe(*cell) (lines []string) {
	for _, a := range t.associations() {
		lines = append(lines, a.describe()...)
	}
	return lines
}

// tell says what the last association shows, and whether there were others.
func (t *sctpTap) tell(c *cell) {
	all := t.associations()
	if len(all) == 0 {
		return
	}
	if !c.row.Initiator.byHand() && c.facts.up() {
		c.facts.say(onWire, "fellback", bits(len(all) > 1))
	}
	all[len(all)-1].tell(&c.facts)
}
