package script

import (
	"bytes"
	"encoding/binary"
)

// The types of SCTP's chunks: RFC 9260, section 3.2.
const (
	ChunkData             = 0
	ChunkInit             = 1
	ChunkInitAck          = 2
	ChunkSack             = 3
	ChunkHeartbeat        = 4
	ChunkHeartbeatAck     = 5
	ChunkAbort            = 6
	ChunkShutdown         = 7
	ChunkShutdownAck      = 8
	ChunkCookieEcho       = 10
	ChunkCookieAck        = 11
	ChunkShutdownComplete = 14
)

// Flags of DATA chunks.
const (
	flagEnding    = 1
	flagBeginning = 2
	flagUnordered = 4
)

// Lengths in octets.
const (
	chunkHeader = 4
	dataHeader  = 12 // after the chunk's
	initFixed   = 16
)

// Parameters of INIT and INIT ACK.
const (
	paramCookie     = 7
	paramAdaptation = 0xc006 // RFC 5061
)

// The error causes of an ABORT with a text: of its sender's consumer, and over a violation of
// the protocol.
const (
	causeUser     = 12
	causeProtocol = 13
)

// newChunk returns a chunk with its padding.
func newChunk(kind, flags byte, value []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{kind, flags}, uint16(chunkHeader+len(value)))
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// parameter returns a parameter of an INIT with its padding.
func parameter(kind uint16, value []byte) []byte {
	return newChunk(byte(kind>>8), byte(kind), value)
}

// packetOf returns a packet of SCTP with its checksum.
func packetOf(ports [2]uint16, tag uint32, chunks ...[]byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, ports[0])
	b = binary.BigEndian.AppendUint16(b, ports[1])
	b = binary.BigEndian.AppendUint32(b, tag)
	b = append(b, 0, 0, 0, 0)
	for _, c := range chunks {
		b = append(b, c...)
	}
	return sealed(b)
}

// chunksOf returns the tag and the chunks of a packet; none if its checksum is wrong.
func chunksOf(b []byte) (tag uint32, chunks []Chunk) {
	if len(b) < sctpHeader || !bytes.Equal(sealed(bytes.Clone(b)), b) {
		return 0, nil
	}
	return binary.BigEndian.Uint32(b[4:]), Chunks(b)
}

// reasonOf returns the text of an ABORT.
func reasonOf(c Chunk) string {
	b := c.Value
	if len(b) < chunkHeader {
		return ""
	}
	if cause := binary.BigEndian.Uint16(b); cause != causeUser && cause != causeProtocol {
		return ""
	}
	n := min(int(binary.BigEndian.Uint16(b[2:])), len(b))
	return string(b[chunkHeader:max(n, chunkHeader)])
}
