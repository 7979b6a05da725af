package layout

// An FPDU is one ULPDU with its frame: RFC 5044, section 4.1, markers not shown.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         ULPDU_Length          |                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
//	~                            ULPDU                              ~
//	|                               +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                               |       PAD (0-3 bytes)        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              CRC                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
const (
	LengthLen = 2 // bytes of ULPDU_Length
	CRCLen    = 4 // bytes of the CRC field
)

// Sizes of ULPDUs and segments, in bytes.
const (
	// MinMULPDU and MaxMULPDU bound the MULPDU whatever the EMSS is.
	MinMULPDU = 128
	MaxMULPDU = 64768
	// MaxUnpadded is the largest ULPDU within these bounds whose FPDU has no pad.
	MaxUnpadded = 64766
	// DefaultEMSS is used where TCP does not report its effective MSS.
	DefaultEMSS = 1460
	// MaxULPDULength is the largest value of the ULPDU_Length field. A sender
	// stays within MaxMULPDU; a receiver takes what comes.
	MaxULPDULength = 65535
	// MaxFPDU is the size of the largest FPDU there can be on a stream: 65535
	// bytes of ULPDU, ULPDU_Length, PAD, CRC and 130 markers. A receive buffer
	// of this size holds any FPDU.
	MaxFPDU = 66064
)

// MULPDU returns the size in bytes of the largest ULPDU whose FPDU fits into an
// empty TCP segment of emss bytes; emss <= 0 means [DefaultEMSS].
//
// RFC 5044, section 4.5: "MULPDU = EMSS - (6 + 4 * Ceiling(EMSS / 512) + EMSS mod
// 4)" with markers, "MULPDU = EMSS - (6 + EMSS mod 4)" without. With markers it
// assumes the worst place for them. It does not shrink for a segment that is partly
// filled, as a sender may.
func MULPDU(emss int, markers bool) int {
	if emss <= 0 {
		emss = DefaultEMSS
	}
	n := emss - (6 + emss%4)
	if markers {
		n -= MarkerLen * ((emss + MarkerInterval - 1) / MarkerInterval)
	}
	// Section 3: "The range of MULPDU values MUST be between 128 octets and
	// 64768 octets, inclusive." [S02] Where the formula gives more, the FPDU has
	// no pad either, as with all values of the formula.
	return min(max(n, MinMULPDU), MaxUnpadded)
}

// PadLen returns the number of pad bytes after a ULPDU of n bytes.
//
// RFC 5044, section 4.1: "The length of the pad is set so as to make the size of
// the FPDU an integral multiple of four."
func PadLen(n int) int { return -(LengthLen + n) & 3 }

// ContentLen returns the size of an FPDU around n bytes, without its markers.
func ContentLen(n int) int { return LengthLen + n + PadLen(n) + CRCLen }

// Room returns the size in bytes of the largest ULPDU whose FPDU takes at most n bytes
// of the stream from an offset on, and less than zero if no FPDU is that small. Bounds of
// the MULPDU do not apply.
//
// RFC 5044, section 4.5: "When one or more FPDUs are already packed into a TCP Segment,
// MULPDU MAY be reduced accordingly."
func Room(offset uint64, n int, markers bool) int {
	n &^= 3 // the size of an FPDU is a multiple of four
	if markers {
		// Of a marker in the last four bytes nothing would come after it, so that it is
		// the next FPDU's: that has no room either.
		first := NextMarker(offset)
		if first < n {
			n -= MarkerLen * (1 + (n-1-first)/MarkerInterval)
		}
	}
	return n - (LengthLen + CRCLen)
}
