package crc32c

import "encoding/binary"

// MPA has a marker of four bytes in front of every 508 bytes that are not one: RFC 5044, section 4.3.
const (
	// WeaveFrom is the multiple of bytes that Weave takes, and WeaveTo what each of these becomes.
	WeaveFrom = 508
	WeaveTo   = 512
	markerLen = WeaveTo - WeaveFrom
)

// Weave copies src, of one or more times [WeaveFrom] bytes, to the front of dst with a marker in front of each
// of them, adds all that to a CRC that began as 0, and returns the new value. The first marker's FPDUPTR is a
// distance, of which the low 16 bits are taken, and each that follows has 512 more. As with [Copy],
// each byte of src is read once, and no byte of dst after what src becomes is written to.
//
// It panics if dst is too short, or if src is not such a multiple. The two must not overlap.
func Weave(dst, src []byte, distance, crc uint32) uint32 { return host.weave(dst, src, distance, crc) }

func (m method) weave(dst, src []byte, distance, crc uint32) uint32 {
	blocks := len(src) / WeaveFrom
	if blocks == 0 || len(src)%WeaveFrom > 0 {
		panic("crc32c: Weave takes multiples of 508 bytes")
	}
	dst = dst[:blocks*WeaveTo]
	switch m {
	case folds512:
		return ^foldWeave(dst, src, distance, ^crc)
	case folds256:
		return ^foldWeave256(dst, src, distance, ^crc)
	}
	for len(src) > 0 {
		binary.BigEndian.PutUint32(dst, distance&0xffff)
		copy(dst[markerLen:WeaveTo], src[:WeaveFrom])
		crc = m.update(crc, dst[:WeaveTo])
		distance, dst, src = distance+WeaveTo, dst[WeaveTo:], src[WeaveFrom:]
	}
	return crc
}
