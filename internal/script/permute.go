package script

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/goiwarp/iwarp/internal/chunk"
)

const (
	// mostBehind is after how many others a packet comes at most.
	mostBehind = 4
	// latest is when a packet comes that no other follows.
	latest = 2 * time.Millisecond
)

// Permute delivers a part of the packets with data, in percent, late: after some of the next ones in their direction.
// Which ones, and after how many, follows from the seed.
func Permute(percent int, seed uint64) Pass {
	p := &permuter{percent: percent, random: rand.New(rand.NewPCG(seed, 0)), late: make(map[way][]*latePacket)}
	return p.pass
}

type permuter struct {
	percent int

	mu     sync.Mutex
	random *rand.Rand
	late   map[way][]*latePacket
}

// A way is one direction of a flow.
type way struct {
	flow     *SCTPFlow
	toServer bool
}

// A latePacket waits for others to pass it.
type latePacket struct {
	bytes  []byte
	passed int // how many more have to
}

func (p *permuter) pass(f *SCTPFlow, toServer bool, packet []byte, deliver func([]byte)) {
	if !hasData(packet) {
		deliver(packet)
		return
	}
	w := way{f, toServer}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.random.IntN(100) < p.percent {
		l := &latePacket{packet, 1 + p.random.IntN(mostBehind)}
		p.late[w] = append(p.late[w], l)
		time.AfterFunc(latest, func() { p.come(w, l, deliver) })
		return
	}
	deliver(packet)
	var left []*latePacket
	for _, l := range p.late[w] {
		if l.passed--; l.passed > 0 {
			left = append(left, l)
			continue
		}
		deliver(l.bytes)
	}
	p.late[w] = left
}

// come delivers a packet that still waits.
func (p *permuter) come(w way, l *latePacket, deliver func([]byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.late[w] {
		if other == l {
			p.late[w] = append(p.late[w][:i:i], p.late[w][i+1:]...)
			deliver(l.bytes)
			return
		}
	}
}

func hasData(packet []byte) bool {
	all, _ := chunk.In(packet)
	return slices.ContainsFunc(all, func(c chunk.Chunk) bool { return c.Type == chunk.TypeData })
}
