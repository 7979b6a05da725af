package sctpudp

import (
	"encoding/binary"
	"hash/crc32"
)

// Chunk types of RFC 9260, section 3.2.
const (
	chunkData             = 0
	chunkInit             = 1
	chunkInitAck          = 2
	chunkSack             = 3
	chunkHeartbeat        = 4
	chunkHeartbeatAck     = 5
	chunkAbort            = 6
	chunkShutdown         = 7
	chunkShutdownAck      = 8
	chunkError            = 9
	chunkCookieEcho       = 10
	chunkCookieAck        = 11
	chunkShutdownComplete = 14
)

const (
	headerLen      = 12 // ports, verification tag, checksum
	chunkHeaderLen = 4
	dataHeaderLen  = 16 // of a DATA chunk

	flagT      = 1 // of ABORT and SHUTDOWN COMPLETE: the tag is the sender's own
	flagsWhole = 3 // of DATA: the beginning and the end of a message
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A packet is one of SCTP whose form was checked: RFC 9260, section 3.
type packet []byte

// A chunk is one of a packet's, with its header and without padding.
type chunk []byte

func (p packet) source() uint16      { return binary.BigEndian.Uint16(p) }
func (p packet) destination() uint16 { return binary.BigEndian.Uint16(p[2:]) }
func (p packet) tag() uint32         { return binary.BigEndian.Uint32(p[4:]) }

func (c chunk) kind() byte    { return c[0] }
func (c chunk) flags() byte   { return c[1] }
func (c chunk) value() []byte { return c[chunkHeaderLen:] }

// stream is that of a DATA chunk, or 0 if it is too short to have one.
func (c chunk) stream() uint16 {
	if len(c) < dataHeaderLen {
		return 0
	}
	return binary.BigEndian.Uint16(c[8:])
}

// checksum is that of a packet, with the field itself as zero.
func checksum(b []byte) uint32 {
	var zero [4]byte
	sum := crc32.Update(0, castagnoli, b[:8])
	sum = crc32.Update(sum, castagnoli, zero[:])
	return crc32.Update(sum, castagnoli, b[headerLen:])
}

// parse returns the chunks of a packet, or none if its form or its checksum is wrong.
//
// RFC 9260, section 6.10: "INIT, INIT ACK, and SHUTDOWN COMPLETE chunks MUST NOT be bundled" with others.
func parse(b []byte) (p packet, chunks []chunk) {
	if len(b) < headerLen+chunkHeaderLen || binary.LittleEndian.Uint32(b[8:]) != checksum(b) {
		return nil, nil
	}
	p = b
	if p.source() == 0 || p.destination() == 0 {
		return nil, nil
	}
	for rest := b[headerLen:]; len(rest) > 0; {
		if len(rest) < chunkHeaderLen {
			return nil, nil
		}
		n := int(binary.BigEndian.Uint16(rest[2:]))
		if n < chunkHeaderLen || n > len(rest) {
			return nil, nil
		}
		chunks = append(chunks, chunk(rest[:n]))
		rest = rest[min((n+3)&^3, len(rest)):]
	}
	for _, c := range chunks {
		if alone(c.kind()) && len(chunks) > 1 {
			return nil, nil
		}
	}
	return p, chunks
}

func alone(kind byte) bool {
	return kind == chunkInit || kind == chunkInitAck || kind == chunkShutdownComplete
}

// start begins a packet.
func start(source, destination uint16, tag uint32) []byte {
	b := make([]byte, headerLen, 128)
	binary.BigEndian.PutUint16(b, source)
	binary.BigEndian.PutUint16(b[2:], destination)
	binary.BigEndian.PutUint32(b[4:], tag)
	return b
}

// appendChunk appends a chunk and its padding.
func appendChunk(b []byte, kind, flags byte, value []byte) []byte {
	b = append(b, kind, flags)
	b = binary.BigEndian.AppendUint16(b, uint16(chunkHeaderLen+len(value)))
	b = append(b, value...)
	return pad(b)
}

func pad(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// seal puts in the checksum.
func seal(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[8:], checksum(b))
	return b
}

// control is a packet with one chunk.
func control(source, destination uint16, tag uint32, kind byte, value []byte) []byte {
	return seal(appendChunk(start(source, destination, tag), kind, 0, value))
}
