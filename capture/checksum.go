package capture

import (
	"encoding/binary"
	"math/bits"
)

// onesSum adds octets to a sum in the ones' complement of 64 bits. b has an even
// number of octets, or is the last to be added.
func onesSum(sum uint64, b []byte) uint64 {
	var carry uint64
	for ; len(b) >= 8; b = b[8:] {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
	}
	var last [8]byte
	copy(last[:], b)
	sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(last[:]), carry)
	sum, carry = bits.Add64(sum, 0, carry)
	return sum + carry
}

// checksum is the Internet checksum (RFC 1071) of what was added.
func checksum(sum uint64) uint16 {
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
