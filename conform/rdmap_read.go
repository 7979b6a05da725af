package conform

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

const readSection = "RFC 5040 5.2.1"

// rdmapReads sends Read Requests that must be answered.
func rdmapReads() []Case {
	return slices.Concat(
		either("rdmap", "read-sink", "P11 P26", "RFC 5040 4.4",
			"A Read Response has the sink STag and TO of its Request, whatever they are.", func(d *dialogue) {
				for _, sink := range []struct {
					stag uint32
					to   uint64
				}{{0, 0}, {1, 1}, {math.MaxUint32, math.MaxUint64}, {0x01020304, 0x0102030405060708}} {
					d.sendFPDU("zero-length Read Request",
						d.readULPDU(rdmap.ReadRequest{SinkSTag: sink.stag, SinkTO: sink.to, SrcSTag: script.RTRSTag}))
					m := d.message(rdmap.OpReadResponse, "a zero-length Read Response")
					d.want(m.STag == sink.stag && m.TO == sink.to && len(m.Payload) == 0,
						fmt.Sprintf("STag 0x%x and TO 0x%x, and no bytes", sink.stag, sink.to), m.Header)
				}
				d.works()
			}),
		either("rdmap", "read-source", "P26", readSection,
			"The source STag and TO of a zero-length Read Request are not checked.", func(d *dialogue) {
				for _, r := range []rdmap.ReadRequest{{}, {SrcSTag: math.MaxUint32},
					{SrcSTag: script.RTRSTag, SrcTO: math.MaxUint64}} {
					r.SinkSTag = probeSTag
					d.sendFPDU("zero-length Read Request", d.readULPDU(r))
					d.answersRead()
				}
				d.works()
			}),
		either("rdmap", "read-order", "P21 P22 P23 P27", readSection,
			"As many Read Requests as the peer's IRD are answered, in the order of the Requests.", func(d *dialogue) {
				for range 3 {
					d.readAtOnce(d.grantedIRD())
				}
				d.works()
			}),
		either("rdmap", "read-flood", "P47 P23 Z27", "RFC 5040 6.1",
			"More Read Requests than the peer's IRD are answered in order, or refused: Terminate 0x1202 or 0x1203.",
			func(d *dialogue) {
				d.sendReads(256)
				codes := append(slices.Clone(badMSN), rdmap.CodeCatastrophicStream)
				for i := range uint64(256) {
					if d.terminates() {
						d.refused(tells, "there are too many Reads", codes...)
						return
					}
					d.answersNth(i)
				}
			}),
		[]Case{toClient("rdmap/initiator-read-parts", "P18 P22 P25", readSection,
			"Reads of parts of a buffer get those parts.", func(d *dialogue) {
				whole := d.readSource(d.source)
				for _, cut := range [][2]int{{0, 1}, {1, 4}, {4, 11}, {len(whole) - 1, len(whole)}} {
					part := d.readSource(message.Advert{TO: d.source.TO + uint64(cut[0]), STag: d.source.STag,
						Length: uint32(cut[1] - cut[0])})
					d.want(slices.Equal(part, whole[cut[0]:cut[1]]),
						strconv.Quote(string(whole[cut[0]:cut[1]])), strconv.Quote(string(part)))
				}
				d.works()
			})},
	)
}

// grantedIRD returns how many Reads the peer takes at a time, as far as its Reply
// tells.
func (d *dialogue) grantedIRD() int {
	if d.link.answered == nil {
		return 1
	}
	e, enhanced := d.link.answered.Enhanced()
	if !enhanced || e.IRD == mpa.NoNegotiation {
		return 1
	}
	return max(1, min(int(e.IRD), depth))
}

func (d *dialogue) readAtOnce(n int) {
	d.sendReads(n)
	for i := range uint64(n) {
		d.answersNth(i)
	}
}

// sendReads sends zero-length Read Requests in one go, whose sink TOs count them.
func (d *dialogue) sendReads(n int) {
	var all []byte
	for i := range uint64(n) {
		all = append(all, d.framed(d.readULPDU(rdmap.ReadRequest{SinkSTag: probeSTag, SinkTO: i,
			SrcSTag: script.RTRSTag}))...)
	}
	d.send(fmt.Sprintf("%d zero-length Read Requests", n), all)
}

func (d *dialogue) answersNth(i uint64) {
	m := d.message(rdmap.OpReadResponse, "the zero-length Response to the next Read Request")
	d.want(m.STag == probeSTag && m.TO == i, fmt.Sprintf("STag 0x%x and TO %d", probeSTag, i), m.Header)
}

// rdmapReadErrors sends Read Requests that must be refused.
func rdmapReadErrors() []Case {
	var cases []Case
	for _, c := range []struct {
		name, text string
		stag       func(*dialogue) uint32
	}{
		{"read-stag-unknown", "an STag that the peer has not advertised", (*dialogue).strangeSTag},
		{"read-stag-0", "STag 0", func(*dialogue) uint32 { return 0 }},
	} {
		cases = append(cases, either("rdmap", c.name, "P24 Z11", rdmapChecks,
			"A Read of "+c.text+" is refused: Terminate 0x0100, or 0x0103.", func(d *dialogue) {
				d.sendFPDU("Read Request", d.readULPDU(rdmap.ReadRequest{SinkSTag: probeSTag,
					Size: 4, SrcSTag: c.stag(d)}))
				d.refuses("The Data Source STag MUST be valid", badSource...)
			})...)
	}
	for _, n := range []int{0, 27, 29, 56} {
		cases = append(cases, either("rdmap", fmt.Sprintf("read-length-%d", n), "P09 P10", "RFC 5040 4.2, 4.4",
			fmt.Sprintf("A Read Request of %s in place of 28 is refused.", wording.Bytes(n)), func(d *dialogue) {
				r := rdmap.ReadRequest{SinkSTag: probeSTag, SrcSTag: script.RTRSTag}
				d.sendMessage("Read Request of another length", rdmap.OpReadRequest,
					append(r.Append(nil), make([]byte, 28)...)[:n])
				d.refused(orCloses, "a Read Request has 28 bytes, and no payload")
			})...)
	}
	return slices.Concat(cases, readBounds())
}

// readBounds reads at the ends of a client's source, and of the buffer that a server
// reads into.
func readBounds() []Case {
	codes := []rdmap.Code{rdmap.CodeBaseOrBounds, rdmap.CodeTOWrap}
	anyCode := slices.Concat(codes, badSource, []rdmap.Code{rdmap.CodeAccessRights})
	var cases []Case
	for _, b := range bounds {
		read := func(d *dialogue, a message.Advert) {
			d.sendFPDU("Read Request of "+b.text, d.readULPDU(rdmap.ReadRequest{SinkSTag: probeSTag,
				Size: uint32(b.bytes), SrcSTag: a.STag, SrcTO: b.at(a)}))
		}
		switch {
		case b.good:
			cases = append(cases, toClient("rdmap/initiator-read-"+b.name, "P25 P26", rdmapChecks,
				"A Read of "+b.text+" is answered.", func(d *dialogue) {
					read(d, d.source)
					m := d.message(rdmap.OpReadResponse, "a Read Response")
					d.want(len(m.Payload) == b.bytes, wording.Bytes(b.bytes), wording.Bytes(len(m.Payload)))
					d.works()
				}))
			continue
		case !b.end:
			cases = append(cases, toServer("rdmap/responder-read-"+b.name, "P24 P25 Z11", rdmapChecks,
				"A Read of "+b.text+" that the server reads into is refused: Terminate 0x0101 or 0x0104, or for its rights.", func(d *dialogue) {
					read(d, d.serverBuffer())
					d.refuses("The Data Source Tagged Offset MUST fall in the range of legal offsets", anyCode...)
				}))
		}
		cases = append(cases, toClient("rdmap/initiator-read-"+b.name, "P25 Z11 Z12", rdmapChecks,
			"A Read of "+b.text+" is refused: Terminate 0x0101, or 0x0104 where the TO wraps.", func(d *dialogue) {
				read(d, d.source)
				d.refuses("The Data Source Tagged Offset MUST fall in the range of legal offsets", codes...)
			}))
	}
	for _, c := range []struct {
		name, text string
		r          rdmap.ReadRequest
	}{
		{"read-to-wrap", "A Read whose TO and size add up to 2^64 and more",
			rdmap.ReadRequest{Size: 8, SrcTO: math.MaxUint64 - 3}},
		{"read-size-max", "A Read of 2^32-1 bytes of a smaller buffer", rdmap.ReadRequest{Size: math.MaxUint32}},
	} {
		cases = append(cases, toClient("rdmap/initiator-"+c.name, "P25 Z11", rdmapChecks,
			c.text+" is refused: Terminate 0x0101, or 0x0104.", func(d *dialogue) {
				r := c.r
				if r.SinkSTag, r.SrcSTag = probeSTag, d.source.STag; r.SrcTO == 0 {
					r.SrcTO = d.source.TO
				}
				d.sendFPDU("Read Request", d.readULPDU(r))
				d.refuses("The sum of the Data Source Tagged Offset and the RDMA Read Message Size MUST fall in the range of legal offsets", codes...)
			}))
	}
	return cases
}
