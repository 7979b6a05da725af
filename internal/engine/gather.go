package engine

import (
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A Gather holds the bytes of one write to the LLP: whole FPDUs, one after the
// other. Payload is copied into it from the memory that a request names, and what is summed
// is the copy: whatever becomes of that memory meanwhile, what is sent is what was read,
// and its CRC is right.
//
// A QP uses one at a time, as long as the LLP has not taken all of it: that is what
// a peer that does not read can make us hold, GatherArena bytes.
type Gather struct {
	arena []byte
	tx    *mpa.Writer // of the FPDU that is being built; nil: a segment is not framed
	sent  int         // bytes of the arena that the LLP has taken
	vec   [][]byte
	drain bool // some of it is what a close waits for
	nudge int  // bytes of the arena that are nudges
	cut   cutter

	header  [ddp.UntaggedHeaderLen]byte // of the segment that is being built
	scratch [rdmap.TerminateMaxLen]byte // and a header of RDMAP

	segments // which TCP is to cut it into
}

// Sizes of a Gather, in bytes.
const (
	// GatherArena is the arena of a Gather: enough for the largest FPDU after
	// gatherBytes.
	GatherArena = 138 << 10
	// A Gather is full at this many bytes: they are in the processor's cache when they are
	// sent, and a message of 64 KiB has room with a short one after it.
	gatherBytes = 72 << 10

	_ = uint(GatherArena - gatherBytes - layout.MaxFPDU) // one that is not full has room for any FPDU
)

// NewGather returns an empty Gather.
func NewGather() *Gather {
	return &Gather{arena: make([]byte, 0, GatherArena)}
}

func (g *Gather) reset(emss, record int) {
	g.arena, g.sent, g.drain, g.nudge = g.arena[:0], 0, false, 0
	g.segments = segments{emss: emss, record: record, ends: g.ends[:0]}
}

func (g *Gather) full() bool {
	return len(g.arena) >= gatherBytes || g.segments.full(len(g.arena))
}

// Take appends bytes of a ULPDU to the FPDU that is being built: they are copied and
// summed, in one pass where there are no markers.
func (g *Gather) Take(p []byte) {
	if g.tx == nil { // a segment that is not framed
		g.arena = append(g.arena, p...)
		return
	}
	g.arena = g.tx.Payload(g.arena, p)
}

// left returns what is still to be sent: a slice for each record, none if it is all sent.
func (g *Gather) left() [][]byte {
	g.vec = g.vec[:0]
	from := g.sent
	for _, end := range g.ends {
		if end > from {
			g.vec = append(g.vec, g.arena[from:end])
			from = end
		}
	}
	if from < len(g.arena) {
		g.vec = append(g.vec, g.arena[from:])
	}
	return g.vec
}

// OnlyNudges reports whether none of it is work of the consumer's or an answer to the peer.
func (g *Gather) OnlyNudges() bool { return g.nudge == len(g.arena) }

// empty reports whether nothing is left to be sent.
func (g *Gather) empty() bool { return g.sent == len(g.arena) }

// advance drops n bytes from the front of what is left.
func (g *Gather) advance(n int) { g.sent += n }
