package mpa

// Sizes of ULPDUs and segments, in octets.
const (
	// MinMULPDU and MaxMULPDU bound the MULPDU whatever the EMSS is.
	MinMULPDU = 128
	MaxMULPDU = 64768
	// DefaultEMSS stands in where TCP does not report its effective MSS.
	DefaultEMSS = 1460
	// MaxULPDULength is the largest value of the ULPDU_Length field. A sender
	// stays within MaxMULPDU; a receiver takes what comes.
	MaxULPDULength = 65535
	// MaxFPDU is the size of the largest FPDU there can be on a stream: 65535
	// octets of ULPDU, ULPDU_Length, PAD, CRC and 130 markers. A receive buffer
	// of this size holds any FPDU. [R07]
	MaxFPDU = 66064
)

// MULPDU returns the size in octets of the largest ULPDU whose FPDU fits into an
// empty TCP segment of emss octets; emss <= 0 means [DefaultEMSS]. [S01]
//
// RFC 5044, Section 4.5: "MULPDU = EMSS - (6 + 4 * Ceiling(EMSS / 512) + EMSS mod
// 4)" with markers, "MULPDU = EMSS - (6 + EMSS mod 4)" without. With markers it
// assumes the worst place for them; [Writer.Room] knows the present one.
func MULPDU(emss int, markers bool) int {
	if emss <= 0 {
		emss = DefaultEMSS
	}
	n := emss - (6 + emss%4)
	if markers {
		n -= markerLen * ((emss + markerInterval - 1) / markerInterval)
	}
	// Section 3: "The range of MULPDU values MUST be between 128 octets and
	// 64768 octets, inclusive." [S02]
	return min(max(n, MinMULPDU), MaxMULPDU)
}

// padLen returns the number of pad octets behind a ULPDU of n octets.
//
// RFC 5044, Section 4.1: "The length of the pad is set so as to make the size of
// the FPDU an integral multiple of four." [F01]
func padLen(n int) int { return -(lengthLen + n) & 3 }

// contentLen returns the size of an FPDU around n octets, without its markers.
func contentLen(n int) int { return lengthLen + n + padLen(n) + crcLen }
