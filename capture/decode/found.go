package decode

import "github.com/goiwarp/iwarp/internal/recovery"

// Confidence says how certain it is that a boundary found by a search is one.
type Confidence = recovery.Confidence

// The levels, the least certain first.
const (
	// ConfidenceWeak: only lengths lead from one FPDU to the next.
	ConfidenceWeak = recovery.ConfidenceWeak
	// ConfidenceFair: the ULPDUs are plausible, or nothing tells that there are no markers.
	ConfidenceFair = recovery.ConfidenceFair
	// ConfidenceGood: one CRC is valid, or three markers agree (six, if all are zero).
	ConfidenceGood = recovery.ConfidenceGood
	// ConfidenceCertain: several CRCs in a row are valid, or one with markers.
	ConfidenceCertain = recovery.ConfidenceCertain
)

// Location is how the start of an FPDU was found: RFC 5044, section 6.
type Location = recovery.Location

// The ways to find an FPDU, the surest first.
const (
	// LocatedInOrder: by the FPDU in front of it, when everything before was there.
	LocatedInOrder = recovery.LocatedInOrder
	// LocatedByMarker: out of order, by a marker in it.
	LocatedByMarker = recovery.LocatedByMarker
	// LocatedByLength: out of order, by the FPDU in front of it.
	LocatedByLength = recovery.LocatedByLength
	// LocatedByScan: by a search after lost bytes.
	LocatedByScan = recovery.LocatedByScan
	// LocatedByCut: by the ULPDU_Length of an FPDU that was cut, or that has wrong markers and no CRC.
	LocatedByCut = recovery.LocatedByCut
)
