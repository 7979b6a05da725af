package capture

import (
	"slices"

	"github.com/goiwarp/iwarp/internal/chunk"
)

// A part is one of a fragmented message's.
type part struct {
	Message
	flags byte
}

// pieces are the parts of fragmented messages: they are put together in the order of
// their TSNs, which follow each other. chunk.Fragments waits for what is missing, as an
// end does; a capture gives it up, and has parts that are cut short.
type pieces struct {
	waiting map[uint32]*part
	open    *part // the beginning of a message, with the parts after it
	cost    int   // of all of them in bytes
}

// any reports whether there are parts.
func (p *pieces) any() bool { return p.open != nil || len(p.waiting) > 0 }

// add keeps a part.
func (p *pieces) add(m *Message, flags byte) {
	if p.waiting == nil {
		p.waiting = map[uint32]*part{}
	}
	own := &part{*m, flags}
	own.Data = slices.Clone(m.Data)
	p.waiting[m.TSN] = own
	p.cost += pieceCost + len(own.Data)
}

// join takes the next TSN, and returns the message that its part completes, if it does.
func (p *pieces) join(tsn uint32) *Message {
	next := p.waiting[tsn]
	delete(p.waiting, tsn)
	begins := next != nil && next.flags&chunk.FlagBeginning != 0
	if o := p.open; o != nil && (begins || next == nil || o.TSN+1 != tsn ||
		o.Stream != next.Stream || o.PPID != next.PPID) {
		p.cost -= pieceCost + len(o.Data)
		p.open = nil
	}
	switch {
	case next == nil:
		return nil
	case begins:
		p.open = next
		return nil
	case p.open == nil:
		p.cost -= pieceCost + len(next.Data)
		return nil
	}
	return p.extend(next)
}

// extend adds a part to the message that is open.
func (p *pieces) extend(next *part) *Message {
	o := p.open
	if len(o.Data) == o.Length { // else what follows has no place
		o.Data = append(o.Data, next.Data...)
	} else {
		p.cost -= len(next.Data)
	}
	p.cost -= pieceCost
	o.Length, o.TSN = o.Length+next.Length, next.TSN
	o.Chunks++
	if next.Last.Number > o.Last.Number {
		o.Last = next.Last
	}
	if next.flags&chunk.FlagEnding == 0 {
		return nil
	}
	p.cost -= pieceCost + len(o.Data)
	p.open = nil
	return &o.Message
}
