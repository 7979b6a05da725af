package decode_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/sctp"
)

// An sctpScript is a capture of an SCTP association in the making.
type sctpScript struct {
	tb     testing.TB
	file   bytes.Buffer
	now    time.Time
	native bool // IP protocol 132, and not in UDP
	snap   int  // bytes of a packet that are captured, if not 0
	tsn    [2]uint32
	ssn    [2]uint16
	msn    [2][4]uint32
	stream uint16
}

// Chunk types of SCTP.
const (
	typeData, typeInit, typeInitAck, typeSack, typeAbort      = 0, 1, 2, 3, 6
	typeShutdown, typeCookieEcho, typeCookieAck, typeShutDone = 7, 10, 11, 14
)

// flagsWhole are those of a DATA chunk with all of a message, unordered.
const flagsWhole = 7

func newSCTP(tb testing.TB) *sctpScript {
	s := &sctpScript{tb: tb, now: start, tsn: [2]uint32{0xfffffffe, 77}}
	for d := range s.msn {
		s.msn[d] = [4]uint32{1, 1, 1, 1}
	}
	le := binary.LittleEndian
	head := le.AppendUint32(nil, 0xa1b2c3d4)
	head = append(head, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	head = le.AppendUint32(head, 65535)
	s.file.Write(le.AppendUint32(head, uint32(capture.LinkRaw)))
	return s
}

// tags are the verification tags by the direction of their receiver's packets.
var tags = [2]uint32{0x11111111, 0x22222222}

// sctpChunk makes a chunk.
func sctpChunk(kind, flags byte, value []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{kind, flags}, uint16(4+len(value)))
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// packet sends chunks.
func (s *sctpScript) packet(d capture.Dir, tag uint32, chunks ...[]byte) {
	ports := [2]uint16{client.Port(), server.Port()}
	be := binary.BigEndian
	b := be.AppendUint16(nil, ports[d])
	b = be.AppendUint16(b, ports[d.Peer()])
	b = be.AppendUint32(b, tag)
	b = append(append(b, 0, 0, 0, 0), bytes.Join(chunks, nil)...)
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	proto := byte(132)
	if !s.native {
		udp := be.AppendUint16(nil, ports[d]+1)
		udp = be.AppendUint16(udp, ports[d.Peer()]+1)
		udp = be.AppendUint16(udp, uint16(8+len(b)))
		proto, b = 17, append(append(udp, 0, 0), b...)
	}
	addrs := [2][]byte{client.Addr().AsSlice(), server.Addr().AsSlice()}
	ip := be.AppendUint16([]byte{0x45, 0}, uint16(20+len(b)))
	ip = append(ip, 0, 0, 0x40, 0, 64, proto, 0, 0)
	ip = append(append(ip, addrs[d]...), addrs[d.Peer()]...)
	s.write(append(ip, b...))
}

// write adds a packet to the file.
func (s *sctpScript) write(b []byte) {
	s.now = s.now.Add(time.Millisecond)
	le, n := binary.LittleEndian, len(b)
	if s.snap > 0 {
		n = min(n, s.snap)
	}
	r := le.AppendUint32(nil, uint32(s.now.Unix()))
	r = le.AppendUint32(r, uint32(s.now.Nanosecond()/1000))
	r = le.AppendUint32(r, uint32(n))
	r = le.AppendUint32(r, uint32(len(b)))
	s.file.Write(append(r, b[:n]...))
}

// indication is an Adaptation Layer Indication.
func indication(n uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{0xc0, 0x06, 0, 8}, n)
}

// init sends the INIT or INIT ACK of an end.
func (s *sctpScript) setup(d capture.Dir, out, in uint16, params []byte) {
	be := binary.BigEndian
	b := be.AppendUint32(nil, tags[d.Peer()])
	b = be.AppendUint32(b, 1<<16)
	b = be.AppendUint16(b, out)
	b = be.AppendUint16(b, in)
	b = append(be.AppendUint32(b, s.tsn[d]), params...)
	if d == fw {
		s.packet(d, 0, sctpChunk(typeInit, 0, b))
		return
	}
	s.packet(d, tags[d], sctpChunk(typeInitAck, 0, b))
}

// up opens the association.
func (s *sctpScript) up() {
	for d := range s.tsn {
		s.setup(capture.Dir(d), 16, 16, indication(1))
	}
	s.cookies()
}

func (s *sctpScript) cookies() {
	s.packet(fw, tags[fw], sctpChunk(typeCookieEcho, 0, []byte("cookie..")))
	s.packet(bw, tags[bw], sctpChunk(typeCookieAck, 0, nil))
}

// chunk returns a DATA chunk with the next TSN.
func (s *sctpScript) chunk(d capture.Dir, flags byte, ppid uint32, message []byte) []byte {
	be := binary.BigEndian
	b := be.AppendUint32(nil, s.tsn[d])
	b = be.AppendUint16(b, s.stream)
	b = be.AppendUint16(b, 0)
	s.tsn[d]++
	return sctpChunk(typeData, flags, append(be.AppendUint32(b, ppid), message...))
}

// message sends a user message.
func (s *sctpScript) message(d capture.Dir, ppid uint32, message []byte) {
	s.packet(d, tags[d], s.chunk(d, flagsWhole, ppid, message))
}

// numbered puts the next DDP-SSN in front.
func (s *sctpScript) numbered(d capture.Dir, rest []byte) []byte {
	s.ssn[d]++
	return append(binary.BigEndian.AppendUint16(nil, s.ssn[d]-1), rest...)
}

// control sends a session control message.
func (s *sctpScript) control(d capture.Dir, c sctp.Control) {
	c.SSN = s.ssn[d]
	s.ssn[d]++
	s.message(d, sctp.PPIDControl, sctp.AppendControl(nil, &c))
}

// function sends one without private data.
func (s *sctpScript) function(d capture.Dir, f sctp.Function) {
	s.control(d, sctp.Control{Function: f, Enhanced: mpa.Enhanced{A: true, C: true, IRD: 4, ORD: 4}})
}

// open opens a session, with an RTR by a Write.
func (s *sctpScript) open() {
	s.up()
	s.session()
}

func (s *sctpScript) session() {
	s.function(fw, sctp.FunctionEnhancedInitiate)
	s.function(bw, sctp.FunctionEnhancedAccept)
	s.tagged(fw, rdmap.OpWrite, 1, 0, nil)
}

// close ends the session, and the association.
func (s *sctpScript) close() []byte {
	s.function(fw, sctp.FunctionTerminate)
	s.function(bw, sctp.FunctionTerminate)
	return s.down()
}

// down ends the association.
func (s *sctpScript) down() []byte {
	s.ack(bw)
	s.packet(fw, tags[fw], sctpChunk(typeShutdown, 0, binary.BigEndian.AppendUint32(nil, s.tsn[bw]-1)))
	s.packet(fw, tags[fw], sctpChunk(typeShutDone, 0, nil))
	return s.file.Bytes()
}

// ack has an end acknowledge all that the other one has sent.
func (s *sctpScript) ack(d capture.Dir) {
	b := binary.BigEndian.AppendUint32(nil, s.tsn[d.Peer()]-1)
	s.packet(d, tags[d], sctpChunk(typeSack, 0, append(b, 0, 1, 0, 0, 0, 0, 0, 0)))
}

// quiet lets time pass until nothing that was acknowledged can turn up any more.
func (s *sctpScript) quiet() {
	for range 3 {
		s.now = s.now.Add(2 * time.Second)
		s.ack(fw)
		s.ack(bw)
	}
}

// tagged sends a tagged message of one segment.
func (s *sctpScript) tagged(d capture.Dir, op rdmap.Opcode, stag uint32, to uint64, payload []byte) {
	h := op.Header(1)
	h.Last, h.STag, h.TO = true, stag, to
	s.segment(d, h, payload)
}

// segment sends a DDP segment.
func (s *sctpScript) segment(d capture.Dir, h ddp.Header, payload []byte) {
	s.message(d, sctp.PPIDSegment, s.numbered(d, append(h.Append(nil), payload...)))
}

// untagged sends an untagged message of one segment.
func (s *sctpScript) untagged(d capture.Dir, op rdmap.Opcode, payload []byte) {
	h := op.Header(1)
	h.Last, h.MSN = true, s.msn[d][h.QN]
	s.msn[d][h.QN]++
	s.segment(d, h, payload)
}
