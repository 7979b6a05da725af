package recovery

import "github.com/goiwarp/iwarp/internal/crc32c"

// crcSums tells the CRC32c of any part of a buffer in the same short time, whatever its
// size: a search tries every length that payload may look like.
//
// A CRC is linear: the register after b[from:to] is that after b[:to], less that after
// b[:from] moved on over to-from bytes of zeroes. Moving over zeroes is to multiply by
// a power of x, modulo the polynomial.
type crcSums struct {
	base  uint64   // stream offset at which the register begins as 0
	after []uint32 // the register n bytes after base
	low   [128]uint32
	high  [130]uint32 // powers for up to 66560 bytes, over MaxFPDU
}

const (
	crcUnit   = 0x80000000 // the polynomial 1, in the reflected order
	crcWord   = 4          // bytes of zeroes between two powers
	crcStride = 128        // powers in low
)

// fill takes in the bytes at a stream offset, except for those it has taken in before, and
// returns at what index of after they begin.
func (c *crcSums) fill(at uint64, b []byte) (index int) {
	if c.low[0] == 0 {
		c.powers()
	}
	n := uint64(len(c.after))
	switch {
	case at < c.base || at >= c.base+n:
		c.base, c.after = at, append(c.after[:0], 0)
	case at-c.base > n/2:
		c.after = c.after[:copy(c.after, c.after[at-c.base:])]
		c.base = at
	}
	index = int(at - c.base)
	reg := c.after[len(c.after)-1]
	for i := len(c.after) - 1 - index; i < len(b); i++ {
		reg = crc32c.Step(reg, b[i])
		c.after = append(c.after, reg)
	}
	return index
}

// release frees what was taken in.
func (c *crcSums) release() { c.after = nil }

func (c *crcSums) powers() {
	word := uint32(crcUnit)
	for range crcWord {
		word = crc32c.Step(word, 0)
	}
	c.low[0], c.high[0] = crcUnit, crcUnit
	for i := 1; i < len(c.low); i++ {
		c.low[i] = crcMultiply(c.low[i-1], word)
	}
	stride := crcMultiply(c.low[crcStride-1], word)
	for i := 1; i < len(c.high); i++ {
		c.high[i] = crcMultiply(c.high[i-1], stride)
	}
}

// sum returns the CRC32c of the bytes from one index of after to another, a multiple of 4
// and at most MaxFPDU apart.
func (c *crcSums) sum(from, to int) uint32 {
	n := (to - from) / crcWord
	power := crcMultiply(c.high[n/crcStride], c.low[n%crcStride])
	return ^(c.after[to] ^ crcMultiply(^c.after[from], power))
}

// crcMultiply multiplies two polynomials modulo that of CRC32c, in the reflected order.
func crcMultiply(a, b uint32) (product uint32) {
	const polynomial = 0x82f63b78
	for a != 0 {
		product ^= b & -(a >> 31)
		a <<= 1
		b = b>>1 ^ polynomial&-(b&1)
	}
	return product
}
