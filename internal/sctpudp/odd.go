package sctpudp

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/internal/chunk"
	"github.com/goiwarp/iwarp/internal/lowerlayer"
	"github.com/goiwarp/iwarp/sctp"
)

// A DATA chunk of DDP has a whole message and the U flag. pion takes others too, but does not tell which they were, and
// sorts all fragments that it holds whenever one comes. So it gets them as whole and unordered messages with a PPID of
// ours: an envelope, which says before the user data what the chunk was. pion still sees to it that each TSN
// is handed out once, and the message is put together here.

// odd is the PPID of envelopes. What has a PPID from here on comes in one, too.
const odd = 1 << 31

// oddLen is the bytes before the user data: flags, TSN and PPID.
const oddLen = 9

const plain = chunk.FlagsWhole | chunk.FlagUnordered

// enveloped returns a DATA chunk as pion is to see it.
func enveloped(c chunk.Chunk, d *chunk.Data) chunk.Chunk {
	if c.Flags&plain == plain && d.PPID < odd {
		return c
	}
	b := append(make([]byte, 0, oddLen+len(d.Bytes)), c.Flags&^astray)
	b = binary.BigEndian.AppendUint32(b, d.TSN)
	b = binary.BigEndian.AppendUint32(b, d.PPID)
	e := chunk.Data{TSN: d.TSN, Stream: d.Stream, PPID: odd, Bytes: append(b, d.Bytes...)}
	return e.Chunk(c.Flags | plain)
}

// astray is the flag, in an envelope, of a message on a stream that does not exist. In the place of the TSN is that
// stream's number: the envelope itself is on stream 0, so that pion has no more streams than there are.
const astray = 0x80

// nowhere returns a DATA chunk on a stream that does not exist, as pion is to see it: without its data.
func nowhere(c chunk.Chunk, d *chunk.Data) chunk.Chunk {
	b := binary.BigEndian.AppendUint32([]byte{c.Flags | astray}, uint32(d.Stream))
	e := chunk.Data{TSN: d.TSN, PPID: odd, Bytes: binary.BigEndian.AppendUint32(b, d.PPID)}
	return e.Chunk(c.Flags | plain)
}

// A piece is what came in one chunk.
type piece struct {
	flags byte
	tsn   uint32
	ppid  uint32
	data  []byte // its own
}

// pieceOf opens an envelope, if it is one.
func pieceOf(ppid uint32, data []byte) piece {
	if ppid != odd || len(data) < oddLen {
		return piece{plain, 0, ppid, data}
	}
	return piece{data[0], binary.BigEndian.Uint32(data[1:]), binary.BigEndian.Uint32(data[5:]), data[oddLen:]}
}

// Bounds of what is held of messages that are not whole. An association cannot have more of a peer that keeps to its
// window and makes no fragments for which there is no need; one that exceeds a bound is ended.
const (
	fragmentCost = 512      // bytes that a fragment counts beside its own
	maxFragments = 16 << 20 // of all associations of an Endpoint
)

// Those of a stream are held by the goroutine that reads it, and counted for the whole association.
type fragments = chunk.Fragments[piece]

// join takes a piece, and returns the message that is whole with it.
//
// RFC 9260, section 6.9: an endpoint "MUST support reassembly when receiving DATA chunks"; RFC 5043, section 9: its
// peer makes fragments only if "the alternative is IP fragmentation", as on a path whose MTU has become smaller.
func (c *Conn) join(stream uint16, held *fragments, p piece) (m sctp.Message, ok bool) {
	if p.flags&astray != 0 {
		return sctp.Message{Stream: uint16(p.tsn), PPID: p.ppid}, true
	}
	if p.flags&chunk.FlagsWhole == chunk.FlagsWhole {
		return sctp.Message{Stream: stream, PPID: p.ppid, Ordered: p.flags&chunk.FlagUnordered == 0, Data: p.data}, true
	}
	if !c.path.holds(len(p.data) + fragmentCost) {
		c.path.violated(&sctp.Violation{Stream: stream, Rule: sctp.RuleFragmented,
			Reason: "too much is held that is not whole"})
		return m, false
	}
	parts := held.Add(p.tsn, p.flags, p)
	if parts == nil {
		return m, false
	}
	m = sctp.Message{Stream: stream, PPID: p.ppid, Ordered: p.flags&chunk.FlagUnordered == 0}
	for _, p := range parts {
		m.Data = append(m.Data, p.data...)
	}
	c.path.holds(-len(m.Data) - len(parts)*fragmentCost)
	if len(m.Data) > lowerlayer.MaxMessage {
		c.path.violated(&sctp.Violation{Stream: stream, Rule: sctp.RuleFragmented,
			Reason: fmt.Sprintf("%d bytes in all", len(m.Data))})
		return m, false
	}
	return m, true
}

// holds counts bytes that are held of messages that are not whole, or are no longer if n is negative. It reports false
// if there is no room for them.
func (p *path) holds(n int) bool {
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	if p.over || n > 0 && (p.held+n > 2*p.e.cfg.Window || p.e.held+n > maxFragments) {
		return false
	}
	p.held += n
	p.e.held += n
	return true
}
