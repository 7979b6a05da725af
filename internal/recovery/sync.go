package recovery

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/wording"
)

// Confidence says how certain it is that a boundary found by a search is one.
type Confidence uint8

// The degrees of confidence. Payload has the right CRC by chance in one of 2^32 cases, and
// so does a marker that agrees with another one, unless both are zero.
const (
	ConfidenceWeak    Confidence = iota + 1 // lengths only, that lead from one to the next
	ConfidenceFair                          // plausible ULPDUs, or nothing tells that there are no markers
	ConfidenceGood                          // one valid CRC, or three markers that agree (six, if all are zero)
	ConfidenceCertain                       // several valid CRCs in a row, or one with markers
)

// String returns the confidence in a word.
func (c Confidence) String() string {
	return wording.Name(c, "confidence", []string{"none", "weak", "fair", "good", "certain"})
}

// Sync is a boundary of an FPDU that was found in a piece of a stream, and what tells
// that it is one.
type Sync struct {
	// Offset is where the FPDU begins, with the marker in front: in the bytes given
	// to [Resync], or in the stream.
	Offset uint64
	// Markers tells whether there are markers, and Phase where: they begin at offsets whose
	// rest is Phase when divided by 512.
	Markers bool
	Phase   int
	// CRC tells whether CRCs are generated.
	CRC bool
	// FPDUs is the number of FPDUs that follow each other from Offset on, as far as was looked,
	// with valid CRCs if CRC is set. Agreeing is the number of markers in them, which all
	// agree, and Plausible that of the ULPDUs in them that were found plausible.
	FPDUs, Agreeing, Plausible int
	// Bytes is what these FPDUs take on the stream.
	Bytes uint64
	// Confidence sums it up.
	Confidence Confidence

	// before is what the FPDUs take that lead to one that was seen to be one.
	before uint64
	// pointing is the number of markers that agree and are not zero.
	pointing int
}

// unmarked reports whether there would be a marker in the FPDUs if there were any.
func (s *Sync) unmarked() bool { return !s.Markers && s.before >= layout.MarkerInterval }

// Bounds of a search.
const (
	searchWindow = 4 * layout.MaxFPDU // bytes looked at
	searchChain  = 64                 // FPDUs followed from one candidate
	plausibleLen = 64                 // bytes of a ULPDU for Plausible

	// What is asked for without CRCs: markers that agree, FPDUs in a row that are
	// plausible, or FPDUs in a row after some that may have run into them by chance.
	chainMarkers, chainPlausible, chainBlind, chainSkip = 3, 4, 16, 4
	// And of markers that are all zero, each of which may be the CRC field, not in use, of the
	// FPDU in front of it.
	chainZeros = 2 * chainMarkers
	// The last FPDUPTR of a marker that is the first one in its FPDU: at 508, there is
	// one in front of the FPDU.
	maxFirstFPDUPTR = layout.MarkerInterval - 2*layout.MarkerLen
)

// Resync searches a piece of a stream, in full operation and without gaps, of which
// nothing else is known, for the boundary of an FPDU, and finds out whether there are
// markers and CRCs. plausible, if not nil, is asked where CRCs do not tell: see
// [Config.Plausible]. At most the first 264256 bytes are looked at.
//
// A stream with markers and less than 512 bytes in whole FPDUs may pass for one without:
// Confidence is no better than fair then. Without CRCs, markers and plausible, only lengths
// tell an FPDU from payload: 20 of them in a row have to lead from one to the next, and the
// first 4 are passed over. Payload can look like that.
func Resync(b []byte, plausible func(ulpdu []byte) bool) (Sync, bool) {
	b = b[:min(len(b), searchWindow)]
	var (
		second Sync
		sums   crcSums
	)
	for _, mode := range []struct{ markers, crc bool }{{true, true}, {false, true}, {true, false}, {false, false}} {
		s := search{markers: mode.markers, crc: mode.crc, phase: -1, plausible: plausible, sums: &sums}
		sync, ok := s.find(b)
		switch {
		case !ok:
		case !sync.Markers && !sync.unmarked():
			if second.Confidence == 0 {
				second = sync
				second.Confidence = min(sync.Confidence, ConfidenceFair)
			}
		case sync.Confidence > second.Confidence:
			return sync, true
		}
	}
	return second, second.Confidence > 0
}

// search is one search for a boundary, in one mode.
type search struct {
	markers, crc bool
	phase        int // index of a marker; without, of any boundary; negative if not known
	tried        int // FPDUs that end there or before were tried
	plausible    func(ulpdu []byte) bool

	sums *crcSums
	at   uint64 // stream offset of the bytes

	b     []byte
	index int // where they begin in sums
	head  [plausibleLen]byte
}

// find returns the first FPDU in b that begins a chain that is long enough.
func (s *search) find(b []byte) (Sync, bool) {
	s.b = b
	if s.crc {
		s.index = s.sums.fill(s.at, b)
	}
	if s.markers && s.phase < 0 {
		sync, ok := s.byMarkers()
		if !ok || !s.crc {
			return sync, ok
		}
		s.phase, s.tried = sync.Phase, 0 // there may be FPDUs without a marker in front
	}
	at, step := 0, 1
	if s.phase >= 0 {
		// Everything on a stream comes in fours.
		at, step = s.phase&3, 4
	}
	for ; at < len(b); at += step {
		if sync, ok := s.try(at, s.phase); ok {
			return sync, true
		}
	}
	return Sync{}, false
}

// byMarkers takes every place for that of a marker. Markers that are all zero count if there
// are no others: a zero is what payload and unused CRC fields have most often.
func (s *search) byMarkers() (Sync, bool) {
	var zeros Sync
	for m := range len(s.b) - layout.MarkerLen { // a CRC comes after it
		// RFC 5044, section 4.2: "The Reserved field MUST be set to zero on transmit",
		// and so must the two bits. [F06]
		ptr := binary.BigEndian.Uint32(s.b[m:])
		if ptr > maxFirstFPDUPTR || ptr&3 != 0 || int(ptr) > m {
			continue
		}
		sync, ok := s.try(m-int(ptr), m%layout.MarkerInterval)
		switch {
		case !ok:
		case s.crc || sync.pointing > 0:
			return sync, true
		case zeros.FPDUs == 0:
			zeros = sync
		}
	}
	return zeros, zeros.FPDUs > 0
}

// try follows the FPDUs that begin at an index, if the first one was not tried before.
func (s *search) try(at, phase int) (Sync, bool) {
	if _, size, _ := s.measure(at, phase); s.crc && at+size <= s.tried {
		return Sync{}, false
	}
	if phase < 0 {
		phase = at % layout.MarkerInterval
	}
	sync := Sync{Offset: uint64(at), Markers: s.markers, CRC: s.crc, Phase: phase}
	skip := 0
	if !s.crc && !s.markers && s.plausible == nil {
		skip = chainSkip
	}
	for next := at; sync.FPDUs < searchChain || s.counting(&sync); sync.FPDUs++ {
		length, size, ok := s.measure(next, phase)
		if !ok || !s.valid(next, phase, length, size, &sync) {
			break
		}
		next += size
		if sync.before = sync.Bytes; s.crc {
			sync.before += uint64(size) // the CRC tells of its last byte
		}
		if sync.Bytes += uint64(size); skip > 0 {
			sync.Offset, sync.FPDUs, sync.Bytes = uint64(next), -1, 0
			skip--
		}
	}
	return sync, s.enough(&sync)
}

// counting reports whether more markers may tell what those of a chain do not yet.
func (s *search) counting(sync *Sync) bool {
	return s.markers && !s.crc && sync.Agreeing < chainZeros
}

// enough judges a chain.
func (s *search) enough(sync *Sync) bool {
	switch {
	case sync.FPDUs <= 0:
		return false
	case s.crc && s.markers && s.phase < 0 && sync.Agreeing == 0:
		return false // what was taken for a marker lies behind the FPDU that it would have to be in
	case s.crc && (sync.FPDUs > 1 || sync.Agreeing > 0):
		sync.Confidence = ConfidenceCertain
	case s.crc:
		sync.Confidence = ConfidenceGood
	case s.markers:
		sync.Confidence = ConfidenceGood
		if s.phase < 0 && sync.pointing == 0 {
			return sync.Agreeing >= chainZeros
		}
		return sync.Agreeing >= chainMarkers
	case s.plausible != nil:
		sync.Confidence = ConfidenceFair
		return sync.FPDUs >= chainPlausible
	default:
		sync.Confidence = ConfidenceWeak
		return sync.FPDUs >= chainBlind
	}
	return true
}

// measure returns ULPDU_Length and the size of the FPDU at an index, if it is whole.
func (s *search) measure(at, phase int) (length, size int, ok bool) {
	length, size, ok = layout.Measure(uint64(at-phase), s.b[at:], s.markers)
	return length, size, ok && at+size <= len(s.b)
}

// valid judges one FPDU of a chain, and counts what tells for it.
func (s *search) valid(at, phase, length, size int, sync *Sync) bool {
	if s.crc {
		if !s.crcValid(at, size, sync.FPDUs == 0) {
			return false
		}
	} else if length == 0 || length > layout.MaxMULPDU || !s.padded(at, phase, length) {
		// RFC 5044, section 3: a ULPDU has "between one and 64768 octets". [S02]
		return false
	}
	marks, pointing, ok := s.agree(at, phase, size)
	if !ok {
		return false
	}
	if s.plausible != nil {
		start := at + layout.LeadLen(uint64(at-phase), s.markers) + layout.LengthLen
		if s.plausible(s.beginning(start, phase, min(length, plausibleLen))) {
			sync.Plausible++
		} else if !s.crc {
			return false
		}
	}
	sync.Agreeing += marks
	sync.pointing += pointing
	return true
}

// crcValid checks a CRC: in constant time for the first FPDU of a chain, as those that
// are none are many, and with the fast instructions for the others.
func (s *search) crcValid(at, size int, first bool) bool {
	if !first {
		return layout.CRCValid(s.b[at : at+size])
	}
	end := at + size - layout.CRCLen
	return s.sums.sum(s.index+at, s.index+end) == binary.LittleEndian.Uint32(s.b[end:])
}

// padded reports whether the PAD is zero, as it must be sent. [F03]
func (s *search) padded(at, phase, length int) bool {
	for i := layout.LengthLen + length; i < layout.LengthLen+length+layout.PadLen(length); i++ {
		pad := at + i
		if s.markers {
			pad += layout.MarkerLen * layout.MarkersIn(uint64(at-phase), i+1)
		}
		if s.b[pad] != 0 {
			return false
		}
	}
	return true
}

// agree reports whether all markers of an FPDU point to it, how many there are, and how
// many of them are not zero.
func (s *search) agree(at, phase, size int) (marks, pointing int, ok bool) {
	if !s.markers {
		return 0, 0, true
	}
	place := uint64(at - phase)
	header := at + layout.LeadLen(place, true)
	for m := at + layout.NextMarker(place); m < at+size; m += layout.MarkerInterval {
		ptr := layout.Points(layout.FPDUPTR(s.b[m:]))
		if ptr != layout.Pointer(uint64(header), uint64(m)) {
			return marks, pointing, false
		}
		if marks++; ptr != 0 {
			pointing++
		}
	}
	return marks, pointing, true
}

// beginning returns the first n bytes of a ULPDU.
func (s *search) beginning(at, phase, n int) []byte {
	if !s.markers {
		return s.b[at : at+n]
	}
	return layout.AppendContent(s.head[:0], uint64(at-phase), s.b[at:], n)
}
