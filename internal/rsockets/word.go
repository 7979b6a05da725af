package rsockets

import (
	"encoding/binary"
	"fmt"
)

// A Word is what an end tells the other by a Send of WordLen bytes, in the byte order of its host.
//
//	 31    29 28                                                     0
//	+--------+--------------------------------------------------------+
//	|   Op   |                        Value                           |
//	+--------+--------------------------------------------------------+
type Word uint32

// WordLen is the length of a Word in bytes.
const WordLen = 4

// Op is the kind of a Word.
type Op uint8

// The kinds of words. rdma-core sends no other, and takes some of these for data.
const (
	OpData Op = 0 // Value bytes were written into the ring
	// words up to this number may be sent, by its low 16 bits; and there may be a new entry in the table
	OpCredit  Op = 4
	OpMap     Op = 6 // entry Value of the table of maps is new
	OpControl Op = 7 // see Control
)

// Control is the Value of a Word of OpControl.
type Control uint32

const (
	// Disconnect says that the peer neither sends nor receives any more.
	Disconnect Control = 0
	// KeepAlive does nothing. On iWARP it is not sent.
	KeepAlive Control = 1
	// Shutdown says that the peer sends no more.
	Shutdown Control = 2
)

const (
	valueBits = 29
	// MaxValue is the largest Value of a Word.
	MaxValue = 1<<valueBits - 1
)

// NewWord returns a word. A value has MaxValue at most.
func NewWord(op Op, value uint32) Word { return Word(op)<<valueBits | Word(value&MaxValue) }

// Op returns the kind.
func (w Word) Op() Op { return Op(w >> valueBits) }

// Value returns what the word says.
func (w Word) Value() uint32 { return uint32(w) & MaxValue }

// String returns kind and value, such as "data 512".
func (w Word) String() string {
	name, known := map[Op]string{OpData: "data", OpCredit: "credit", OpMap: "map", OpControl: "control"}[w.Op()]
	if !known {
		name = fmt.Sprintf("kind %d", w.Op())
	}
	return fmt.Sprintf("%s %d", name, w.Value())
}

// Append appends the WordLen bytes in a byte order.
func (w Word) Append(b []byte, big bool) []byte {
	if big {
		return binary.BigEndian.AppendUint32(b, uint32(w))
	}
	return binary.LittleEndian.AppendUint32(b, uint32(w))
}

// ParseWord reads what a Send has brought. Any but WordLen bytes are an *Error.
func ParseWord(b []byte, big bool) (Word, error) {
	if len(b) != WordLen {
		return 0, wrong("word", "length %d, where it is to be %d", len(b), WordLen)
	}
	return Word(order(big).Uint32(b)), nil
}
