package engine

// A Gather is the scratch memory of one gathered write: headers, pads, CRCs
// and copied payload stand in its arena, other payload stays where it is.
type Gather struct {
	arena []byte
	vec   [][]byte
	first int // slices before first have been sent
	mark  int // arena octets before mark are in vec already
	total int // octets in all
}

// Sizes of a Gather.
const (
	// GatherArena is the arena of a Gather in octets: enough for any FPDU to be
	// copied, with its payload loaded beside it.
	GatherArena  = 256 << 10
	gatherOctets = 128 << 10 // a Gather is full at this many octets
	gatherVecs   = 256       // or at this many slices
	copyBelow    = 1 << 10   // shorter payload is copied rather than referenced
)

// NewGather returns an empty Gather.
func NewGather() *Gather {
	return &Gather{arena: make([]byte, 0, GatherArena)}
}

func (g *Gather) reset() {
	clear(g.vec)
	g.arena, g.vec, g.first, g.mark, g.total = g.arena[:0], g.vec[:0], 0, 0, 0
}

func (g *Gather) room() int { return cap(g.arena) - len(g.arena) }

func (g *Gather) full() bool { return g.total >= gatherOctets || len(g.vec) >= gatherVecs }

// refer adds p where it stands, behind what the arena holds so far.
func (g *Gather) refer(p []byte) {
	g.seal()
	g.vec = append(g.vec, p)
}

// seal makes the arena's new octets a part of the vector.
func (g *Gather) seal() {
	if g.mark < len(g.arena) {
		g.vec = append(g.vec, g.arena[g.mark:])
		g.mark = len(g.arena)
	}
}

// left returns what is still to be sent.
func (g *Gather) left() [][]byte { return g.vec[g.first:] }

// advance drops n octets from the front of what is left.
func (g *Gather) advance(n int) {
	for g.first < len(g.vec) && n >= len(g.vec[g.first]) {
		n -= len(g.vec[g.first])
		g.first++
	}
	if n > 0 {
		g.vec[g.first] = g.vec[g.first][n:]
	}
}
