package conform

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/rdmap"
)

// ddpTagged sends Writes to STags that do not exist, and of no bytes.
func ddpTagged() []Case {
	cases := slices.Concat(
		either("ddp", "stag-unknown", "D39 Z12", ddpChecks,
			"A Write to an STag that the peer has not advertised is refused: Terminate 0x1100, or 0x1102.",
			func(d *dialogue) {
				d.sendTagged("Write", rdmap.OpWrite, d.strangeSTag(), 0, []byte("iwrp"))
				d.refuses("the STag is not valid for this stream", badSTag...)
			}),
		either("ddp", "stag-0", "D39 Z12", ddpChecks,
			"A Write to STag 0 is refused: Terminate 0x1100, or 0x1102.", func(d *dialogue) {
				d.sendTagged("Write to STag 0", rdmap.OpWrite, 0, 0, []byte("iwrp"))
				d.refuses("the STag is not valid for this stream", badSTag...)
			}),
		either("ddp", "stag-no-l", "D39 D42", ddpChecks,
			"A Write to an unknown STag is refused by its first segment.", func(d *dialogue) {
				h := d.nextHeader(rdmap.OpWrite)
				h.STag, h.Last = d.strangeSTag(), false
				d.sendSegment("first segment of a Write", h, []byte("iwrp"))
				d.refuses("the STag is not valid for this stream", badSTag...)
			}),
	)
	for _, c := range []struct {
		name string
		stag uint32
		to   uint64
	}{{"stag-0", 0, 0}, {"stag-all-ones", math.MaxUint32, 0}, {"to-all-ones", script.RTRSTag, math.MaxUint64}} {
		cases = append(cases, either("ddp", "empty-"+c.name, "D22 D23 P19", "RFC 5041 5.2",
			fmt.Sprintf("STag 0x%x and TO 0x%x of a zero-length Write are not checked.",
				c.stag, c.to), func(d *dialogue) {
				d.sendTagged("empty Write", rdmap.OpWrite, c.stag, c.to, nil)
				d.works()
			})...)
	}
	return cases
}

// bound is an access to a buffer, from its beginning or its end.
type bound struct {
	name, text string
	end        bool // counted from the end
	off        int64
	bytes      int
	good       bool
}

// bounds are accesses at both ends of a buffer.
var bounds = [...]bound{
	{"base-minus-1", "one byte before the buffer", false, -1, 1, false},
	{"base-across", "two bytes across the beginning of the buffer", false, -1, 2, false},
	{"base", "the first byte of the buffer", false, 0, 1, true},
	{"end-minus-1", "the last byte of the buffer", true, -1, 1, true},
	{"end-across", "two bytes across the end of the buffer", true, -1, 2, false},
	{"end", "one byte after the buffer", true, 0, 1, false},
	{"end-empty", "no bytes at the end of the buffer", true, 0, 0, true},
	{"far", "one byte 2^40 bytes after the buffer", false, 1 << 40, 1, false},
}

// at returns the TO of an access.
func (b *bound) at(a message.Advert) uint64 {
	to := a.TO + uint64(b.off)
	if b.end {
		to += uint64(a.Length)
	}
	return to
}

// ddpBounds write at the ends of a client's sink, whose size is known, and of the
// buffer into which a server reads.
func ddpBounds() []Case {
	var cases []Case
	for _, b := range bounds {
		if b.good {
			cases = append(cases, toClient("ddp/initiator-"+b.name, "D40 Z10 D23", ddpChecks,
				"A Write of "+b.text+" is taken.", func(d *dialogue) {
					sink := d.sink()
					d.sendTagged("Write", rdmap.OpWrite, sink.STag, b.at(sink), make([]byte, b.bytes))
					d.finish(sink)
				}))
			continue
		}
		cases = append(cases, toClient("ddp/initiator-"+b.name, "D40 Z10 Z12", ddpChecks,
			"A Write of "+b.text+" is refused: Terminate 0x1101, or 0x1103 where the TO wraps.", func(d *dialogue) {
				sink := d.sink()
				d.sendTagged("Write", rdmap.OpWrite, sink.STag, b.at(sink), make([]byte, b.bytes))
				d.sendAdvert("go ahead", message.Advert{})
				d.refuses("the TO is not in the range of the STag", badBounds...)
			}))
		if b.end {
			continue
		}
		// The server's buffer may not be for Writes.
		codes := slices.Concat(badSTag, badBounds)
		cases = append(cases, toServer("ddp/responder-"+b.name, "D40 Z10 Z12", ddpChecks,
			"A Write of "+b.text+" into which the server reads is refused: Terminate 0x1101, or 0x1103 where the TO wraps.", func(d *dialogue) {
				buffer := d.serverBuffer()
				d.sendTagged("Write", rdmap.OpWrite, buffer.STag, b.at(buffer), make([]byte, b.bytes))
				d.refuses("the TO is not in the range of the STag", codes...)
			}))
	}
	return append(cases,
		toClient("ddp/initiator-to-wrap", "D40 Z10", ddpChecks,
			"A Write whose TO and length add up to 2^64 and more is refused: Terminate 0x1103, or 0x1101.",
			func(d *dialogue) {
				d.sendTagged("Write that wraps", rdmap.OpWrite, d.sink().STag, math.MaxUint64-3, make([]byte, 8))
				d.refuses("the TO is not in the range of the STag", badBounds...)
			}),
		toServer("ddp/responder-to-wrap", "D40 Z10", ddpChecks,
			"A Write whose TO and length add up to 2^64 and more is refused: Terminate 0x1103, or 0x1101.",
			func(d *dialogue) {
				d.sendTagged("Write that wraps", rdmap.OpWrite, d.serverBuffer().STag,
					math.MaxUint64-3, make([]byte, 8))
				d.refuses("the TO is not in the range of the STag", slices.Concat(badSTag, badBounds)...)
			}),
		toServer("ddp/responder-stag-stale", "D44 Z05 Z08", "RFC 5041 7.1, 8.2",
			"A Write to the STag of a connection that is over is refused: Terminate 0x1100, or 0x1102.", staleSTag),
	)
}

// sink goes through the first half of a ping, to learn the client's sink.
func (d *dialogue) sink() message.Advert {
	d.readSourceAll()
	return d.goAhead()
}

// serverBuffer is where the server wants its Read's data, which is not answered.
func (d *dialogue) serverBuffer() message.Advert {
	d.sendAdvert("source advert", sourceAdvert())
	r := d.peerReads()
	return message.Advert{TO: r.SinkTO, STag: r.SinkSTag, Length: r.Size}
}

func staleSTag(d *dialogue) {
	d.sendAdvert("source advert", sourceAdvert())
	r := d.peerReads()
	d.sendResponse(r, pingText())
	d.peerAdvert("the server's first go ahead")
	d.reconnect()
	d = d.startDialogue()
	d.sendAdvert("source advert", sourceAdvert())
	now := d.peerReads()
	if now.SinkSTag == r.SinkSTag {
		d.notApplicable("the peer has the same STag on both connections")
	}
	d.sendTagged("Write to the STag of the first connection", rdmap.OpWrite, r.SinkSTag, r.SinkTO, []byte("iwrp"))
	d.refuses("the STag is not valid for this stream", badSTag...)
}

// ddpPlacement writes into a client's sink in several ways, and reads it back.
func ddpPlacement() []Case {
	var cases []Case
	for _, c := range []struct {
		name, text string
		cuts       [][2]int // of 13 bytes
	}{
		{"write-whole", "A Write of one segment is placed", [][2]int{{0, 13}}},
		{"write-bytes", "A Write of segments of one byte is placed", cutAt(1)},
		{"write-segments", "A Write of segments of several sizes is placed", [][2]int{{0, 1}, {1, 4}, {4, 6}, {6, 13}}},
		{"write-overlap", "A Write whose segments overlap is placed", [][2]int{{0, 8}, {4, 13}}},
		{"write-reversed", "A Write whose segments come in the reverse order is placed",
			[][2]int{{7, 13}, {3, 7}, {0, 3}}},
	} {
		cases = append(cases, toClient("ddp/initiator-"+c.name, "D24 P32 P40 D19", "RFC 5041 5.2, 5.3; RFC 5040 5.5",
			c.text+", and a Read after it finds it there.", func(d *dialogue) {
				sink := d.sink()
				text := []byte("Written here.")
				for i, cut := range c.cuts {
					h := d.nextHeader(rdmap.OpWrite)
					h.STag, h.TO, h.Last = sink.STag, sink.TO+uint64(cut[0]), i == len(c.cuts)-1
					d.sendSegment(fmt.Sprintf("bytes %d to %d of a Write", cut[0], cut[1]), h, text[cut[0]:cut[1]])
				}
				if d.findsInSink(sink, text) {
					d.finish(sink)
				}
			}))
	}
	return cases
}

// cutAt cuts 13 bytes into pieces of n.
func cutAt(n int) (cuts [][2]int) {
	for at := 0; at < 13; at += n {
		cuts = append(cuts, [2]int{at, min(at+n, 13)})
	}
	return cuts
}

// findsInSink reads a client's sink. It reports false if that may not be read.
func (d *dialogue) findsInSink(sink message.Advert, text []byte) bool {
	r := rdmap.ReadRequest{SinkSTag: sinkSTag, SinkTO: sinkTO, Size: uint32(len(text)),
		SrcSTag: sink.STag, SrcTO: sink.TO}
	d.sendFPDU("Read Request of the sink", d.readULPDU(r))
	if d.terminates() {
		t := d.refuses("the sink may not be there to be read", rdmap.CodeAccessRights, rdmap.CodeInvalidSTag)
		if t.Code.Layer() == rdmap.LayerRDMAP {
			d.notApplicable("the peer's sink may not be read")
		}
		return false
	}
	m := d.message(rdmap.OpReadResponse, "a Read Response with what was written")
	d.want(bytes.Equal(m.Payload, text), "a Read Response of "+strconv.Quote(string(text)), strconv.Quote(string(m.Payload)))
	return true
}
