package chunk

import "encoding/binary"

// DataLen is the bytes of a DATA chunk before its user data, the chunk's head included.
const DataLen = overhead + dataFields

const dataFields = 12

// Flags of DATA.
const (
	FlagEnding    = 1 // the end of a message
	FlagBeginning = 2
	FlagUnordered = 4

	FlagsWhole = FlagBeginning | FlagEnding
)

// A Data is what a DATA chunk carries: RFC 9260, section 3.3.1.
type Data struct {
	TSN    uint32
	Stream uint16
	Number uint16 // the Stream Sequence Number, which unordered ones do not have
	PPID   uint32
	// Bytes is what is there of the user data, and Length how many bytes of it were sent: see [Chunk].
	Bytes  []byte
	Length int
}

// Data reads a DATA chunk. It reports false if there is no room for its fields.
func (c *Chunk) Data() (d Data, ok bool) {
	b := c.Value
	if len(b) < dataFields {
		return d, false
	}
	return Data{
		TSN: binary.BigEndian.Uint32(b), Stream: binary.BigEndian.Uint16(b[4:]), Number: binary.BigEndian.Uint16(b[6:]),
		PPID: binary.BigEndian.Uint32(b[8:]), Bytes: b[dataFields:], Length: c.Length - dataFields,
	}, true
}

// Chunk returns a DATA chunk with flags.
func (d *Data) Chunk(flags byte) Chunk {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, dataFields+len(d.Bytes)), d.TSN)
	b = binary.BigEndian.AppendUint16(b, d.Stream)
	b = binary.BigEndian.AppendUint16(b, d.Number)
	b = binary.BigEndian.AppendUint32(b, d.PPID)
	b = append(b, d.Bytes...)
	return Chunk{Type: TypeData, Flags: flags, Value: b, Length: len(b)}
}

// Acknowledged returns the Cumulative TSN Ack of a SACK or SHUTDOWN: RFC 9260, sections 3.3.4 and 3.3.8. It reports
// false if there is no room for one.
func (c *Chunk) Acknowledged() (tsn uint32, ok bool) {
	if len(c.Value) < 4 {
		return 0, false
	}
	return binary.BigEndian.Uint32(c.Value), true
}

// Sack returns the Cumulative TSN Ack and the Advertised Receiver Window Credit of a SACK: RFC 9260, section 3.3.4. It
// reports false if there is no room for them.
func (c *Chunk) Sack() (tsn, window uint32, ok bool) {
	if len(c.Value) < 8 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(c.Value), binary.BigEndian.Uint32(c.Value[4:]), true
}

// SetWindow writes another Advertised Receiver Window Credit into a SACK, for which [Chunk.Sack] has found room.
func (c *Chunk) SetWindow(n uint32) { binary.BigEndian.PutUint32(c.Value[4:], n) }

// Before reports whether one TSN comes before another: RFC 9260, section 1.6.
func Before(a, b uint32) bool { return int32(a-b) < 0 }
