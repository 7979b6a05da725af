package page

import (
	"encoding/base64"
	"encoding/binary"
)

// lanes is in how many sequences a column keeps differences.
const lanes = 4

// A column is a sequence of numbers.
type column struct {
	octets []byte
	last   [lanes]uint64
}

// add adds a number as its difference from the last one of its lane.
func (c *column) add(lane int, v uint64) {
	c.octets = binary.AppendVarint(c.octets, int64(v-c.last[lane]))
	c.last[lane] = v
}

// add32 adds a number as its difference in 32 bits.
func (c *column) add32(lane int, v uint32) {
	c.octets = binary.AppendVarint(c.octets, int64(int32(v-uint32(c.last[lane]))))
	c.last[lane] = uint64(v)
}

// plain adds a number as it is.
func (c *column) plain(v int64) { c.octets = binary.AppendVarint(c.octets, v) }

// MarshalText returns the column as it is on the page.
func (c *column) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, c.octets), nil
}
