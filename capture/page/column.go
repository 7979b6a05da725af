package page

import (
	"encoding/base64"
	"encoding/binary"
)

// lanes is in how many sequences a column keeps differences.
const lanes = 4

// A column is a sequence of numbers. A zero is followed by how many more there are, as most columns hardly change.
type column struct {
	bytes []byte
	last  [lanes]uint64
	zeros int64 // at the end, which are not in bytes
}

// add adds a number as its difference from the last one of its lane.
func (c *column) add(lane int, v uint64) {
	c.plain(int64(v - c.last[lane]))
	c.last[lane] = v
}

// add32 adds a number as its difference in 32 bits.
func (c *column) add32(lane int, v uint32) {
	c.plain(int64(int32(v - uint32(c.last[lane]))))
	c.last[lane] = uint64(v)
}

// plain adds a number as it is.
func (c *column) plain(v int64) {
	if v == 0 {
		c.zeros++
		return
	}
	c.bytes = binary.AppendVarint(c.endZeros(), v)
	c.zeros = 0
}

// endZeros returns the column with the zeros at its end.
func (c *column) endZeros() []byte {
	if c.zeros == 0 {
		return c.bytes
	}
	return binary.AppendVarint(append(c.bytes, 0), c.zeros-1)
}

// MarshalText returns the column as it is on the page.
func (c *column) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, c.endZeros()), nil
}
