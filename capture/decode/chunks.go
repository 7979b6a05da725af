package decode

import (
	"sort"

	"github.com/goiwarp/iwarp/capture"
)

// A chunk is a run of bytes of a stream that came in one packet.
type chunk struct {
	offset, end uint64
	packet      capture.Stamp
	segment     capture.Span
	begins      bool // an FPDU begins where the segment does
	counted     bool // by another chunk of the segment
	cut         cut
	cutting     cutting
	within      int     // bytes of the first FPDU, if the segment begins with it, and its message goes on
	own         cutting // at so many
}

// segmentEnd returns the offset after the TCP segment.
func (c *chunk) segmentEnd() uint64 { return c.segment.Offset + uint64(c.segment.Length) }

// chunks are those of a direction which are not worked off, in order.
type chunks struct {
	list []chunk
	head int
}

// push adds bytes after those that are there, of a packet that is cut somehow.
func (q *chunks) push(d *capture.Data, how cut) {
	if q.head > 64 && q.head > len(q.list)/2 {
		q.list, q.head = q.list[:copy(q.list, q.list[q.head:])], 0
	}
	end := d.Offset + uint64(len(d.Bytes))
	next := chunk{offset: d.Offset, end: end, packet: d.Packet, segment: d.Segment, cut: how}
	if n := len(q.list); n > q.head {
		last := &q.list[n-1]
		next.counted = last.segment == d.Segment && last.packet.Number == d.Packet.Number
		if n-q.head >= maxChunks {
			last.end, last.packet, last.segment, last.cut = end, d.Packet, d.Segment, how
			last.cutting, last.within, last.own = cutting{}, 0, cutting{}
			return
		}
	}
	q.list = append(q.list, next)
}

// at returns the chunk with a byte, or the nearest one after it, and nil if there is
// none.
func (q *chunks) at(offset uint64) *chunk {
	list := q.list[q.head:]
	if len(list) > 0 && offset < list[0].end {
		return &list[0] // mostly
	}
	i := sort.Search(len(list), func(i int) bool { return list[i].end > offset })
	if i == len(list) {
		return nil
	}
	return &list[i]
}

// stamps returns the packet of the first byte of a range, and the one that completed
// it.
func (q *chunks) stamps(from, to uint64) (first, last capture.Stamp) {
	list := q.list[q.head:]
	i := 0
	if len(list) > 0 && from >= list[0].end {
		i = sort.Search(len(list), func(i int) bool { return list[i].end > from })
	}
	for begun := false; i < len(list) && list[i].offset < to; i++ {
		if !begun {
			first, begun = list[i].packet, true
		}
		if list[i].packet.Number >= last.Number {
			last = list[i].packet
		}
	}
	return first, last
}

// front returns the first chunk, nil if there is none.
func (q *chunks) front() *chunk {
	if q.head == len(q.list) {
		return nil
	}
	return &q.list[q.head]
}

// pop removes the first chunk.
func (q *chunks) pop() {
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
}

// drop removes what lies before an offset.
func (q *chunks) drop(offset uint64) {
	for c := q.front(); c != nil && c.end <= offset; c = q.front() {
		q.pop()
	}
}
