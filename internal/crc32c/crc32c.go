package crc32c

import "hash/crc32"

// The polynomial's table, which package hash/crc32 knows to have instructions for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Step adds one byte to a register, which is a CRC without its complement, and returns the new register.
func Step(register uint32, b byte) uint32 { return castagnoli[byte(register)^b] ^ register>>8 }

// host is what this machine can do.
var host = detect()

// Update adds p to a CRC that began as 0, and returns the new value.
func Update(crc uint32, p []byte) uint32 { return host.update(crc, p) }

// Copy copies src to the front of dst, adds the bytes copied to a CRC that began as 0, and
// returns the new value. Each byte of src is read once: if src changes meanwhile, the CRC
// still is that of what is in dst. No byte of dst after len(src) is written to.
//
// It panics if dst is shorter than src. The two must not overlap.
func Copy(dst, src []byte, crc uint32) uint32 { return host.copy(dst, src, crc) }

// A method is a way to compute the CRC.
type method uint8

const (
	portable method = iota // package hash/crc32
	folds256               // by folding in registers of so many bits
	folds512
)

// minFold is the length in bytes from which folding pays: putting the parts together at
// the end costs as much for few bytes as for many. fold needs 64.
const minFold = 128

func (m method) update(crc uint32, p []byte) uint32 {
	switch {
	case m == portable:
		return crc32.Update(crc, castagnoli, p)
	case len(p) < minFold: // where package hash/crc32 does the same, with more around it
		return ^words(^crc, p)
	case m == folds512:
		return ^fold(^crc, p)
	}
	return ^fold256(^crc, p)
}

// piece is how many bytes are copied before they are summed, where that takes two steps:
// few enough to be still in the first-level cache.
const piece = 16 << 10

func (m method) copy(dst, src []byte, crc uint32) uint32 {
	dst = dst[:len(src)]
	if len(src) >= minFold {
		switch m {
		case folds512:
			return ^foldCopy(dst, src, ^crc)
		case folds256:
			return ^foldCopy256(dst, src, ^crc)
		}
	}
	for len(src) > 0 {
		n := copy(dst[:min(piece, len(dst))], src)
		crc = m.update(crc, dst[:n])
		dst, src = dst[n:], src[n:]
	}
	return crc
}
