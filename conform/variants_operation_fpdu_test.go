package conform_test

import (
	"bytes"
	"encoding/binary"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

var (
	withMarkers = setup{offer: mpa.Offer{Markers: true}}
	withoutCRC  = setup{offer: mpa.Offer{NoCRC: true}}
	manyReads   = setup{offer: mpa.Offer{IRD: 8, ORD: 8}}
)

// fpduVariants break what RFC 5044 asks of FPDUs.
func fpduVariants() []variant {
	unchecked := variant{toPeer: frame(nil, repairCRC), fromPeer: frame(nil)}
	return []variant{
		unchecked.named("CRC unchecked", "R01", "fpdu/responder-crc-wrong"),
		unchecked.named("CRC over the DDP header unchecked", "F04", "fpdu/responder-crc-header"),
		unchecked.named("CRC taken in big-endian", "F04", "fpdu/responder-crc-big-endian"),
		unchecked.named("CRC of zero taken", "F04", "fpdu/responder-crc-zero"),
		unchecked.named("first FPDU not validated", "Q11", "fpdu/responder-crc-first"),
		unchecked.named("Initiator checks no CRC", "R01", "fpdu/initiator-crc-payload").of(anInitiator),
		toEndpoint(dislikeCRC).named("CRC field looked at though CRCs are off", "F05",
			"fpdu/responder-crc-off").of(withoutCRC),
		fromEndpoint(fillPad).named("pad that is not zero", "F03", "fpdu/responder-pad-3"),
		fromEndpoint(fillPad).named("Initiator's pad that is not zero", "F03", "fpdu/initiator-pad-2").of(anInitiator),
		toEndpoint(dislikeFPDU(hasPad)).named("pad looked at", "F03", "fpdu/responder-pad-not-zero"),
		toEndpoint(drop(tooShort)).named("ULPDU without a DDP header passed over", "D10", "fpdu/responder-length-13"),
		toEndpoint(drop(tooShort)).named("ULPDU of one byte passed over", "D10",
			"fpdu/initiator-length-1").of(anInitiator),
		variant{toPeer: frame(nil, wholeReads)}.named("FPDU not taken in pieces", "R04", "fpdu/responder-split-each"),
		variant{toPeer: frame(nil, firstOfEach)}.named("one FPDU in a TCP segment", "R04", "fpdu/responder-packed"),
		toEndpoint(dislikeFPDU(func(_ uint64, _, ulpdu []byte) bool { return len(ulpdu) > 1024 })).
			named("large FPDUs not understood", "F12", "fpdu/responder-size-1442"),
		variant{toPeer: frame(nil, completeCRC)}.named("FPDU taken without its CRC", "R01",
			"fpdu/responder-fin-behind-crc"),
		variant{fromPeer: frame(nil, resetAtEnd)}.named("RST in place of a FIN", "Q15", "fpdu/responder-fin"),
	}
}

// markerVariants break what RFC 5044 asks of markers.
func markerVariants() []variant {
	return []variant{
		toEndpoint(dislikeFPDU(hasMarker(func(m []byte, _ int) bool { return m[0] != 0 }))).
			named("reserved bits of a marker looked at", "F06", "fpdu/responder-marker-res").of(withMarkers),
		toEndpoint(dislikeFPDU(hasMarker(func(m []byte, _ int) bool { return m[3]&3 != 0 }))).
			named("low bits of a FPDUPTR used", "F10", "fpdu/responder-marker-low-bits").of(withMarkers),
		toEndpoint(dislikeFPDU(hasMarker(func(_ []byte, left int) bool { return left == 4 }))).
			named("marker in front of the CRC not found", "F07", "fpdu/responder-marker-positions").of(withMarkers),
		variant{toPeer: frame(nil, repairCRC), fromPeer: frame(nil)}.
			named("marker not part of the CRC", "F04", "fpdu/responder-marker-crc").of(withMarkers),
		fromEndpoint(code(rdmap.CodeMPALocalCatastrophic)).
			named("wrong FPDUPTR called something else", "Q16", "fpdu/responder-marker-ahead").of(withMarkers),
		fromEndpoint(crcWithoutMarker).named("CRC leaves the markers out", "F04", "fpdu/responder-marked"),
		fromEndpoint(changeMarkers(func(m []byte) { m[1] = 1 })).
			named("reserved bits in markers", "F06", "fpdu/responder-marked"),
		fromEndpoint(changeMarkers(func(m []byte) { m[3] |= 1 })).
			named("low bits in FPDUPTRs", "F08", "fpdu/responder-marked"),
		fromEndpoint(changeMarkers(func(m []byte) {
			if p := binary.BigEndian.Uint16(m[2:]); p > 0 {
				binary.BigEndian.PutUint16(m[2:], p-4)
			}
		})).named("FPDUPTR too small", "F08", "fpdu/initiator-marked").of(anInitiator),
	}
}

func tooShort(seg *ddp.Segment, _ rdmap.Opcode) bool { return seg.Raw == nil }

// dislikeCRC has the endpoint close on a CRC field that is not zero, by a ULPDU that
// nobody takes.
func dislikeCRC(_ uint64, data, _ []byte) []byte {
	if bytes.Equal(data[len(data)-4:], make([]byte, 4)) {
		return data
	}
	w := mpa.NewWriter(false, false)
	return w.Append(nil, []byte{0})
}

// padOf returns the pad of an FPDU without markers.
func padOf(data, ulpdu []byte) []byte { return data[2+len(ulpdu) : len(data)-4] }

func fillPad(_ uint64, data, ulpdu []byte) []byte {
	for i := range padOf(data, ulpdu) {
		padOf(data, ulpdu)[i] = 0xaa
	}
	return script.Seal(data)
}

func hasPad(_ uint64, data, ulpdu []byte) bool {
	pad := padOf(data, ulpdu)
	return !bytes.Equal(pad, make([]byte, len(pad)))
}

// hasMarker looks for a marker in an FPDU; left is how many bytes follow it.
func hasMarker(bad func(marker []byte, left int) bool) func(uint64, []byte, []byte) bool {
	return func(offset uint64, data, _ []byte) bool {
		for at := range data {
			if (offset+uint64(at))%512 == 0 && bad(data[at:at+4], len(data)-at-4) {
				return true
			}
		}
		return false
	}
}

// crcWithoutMarker leaves a leading marker out of the CRC.
func crcWithoutMarker(offset uint64, data, _ []byte) []byte {
	if offset%512 != 0 {
		return data
	}
	end := len(data) - 4
	return layout.AppendCRC(data[:end], layout.CRC32C(0, data[4:end]))
}

// changeMarkers changes the markers of FPDUs.
func changeMarkers(change func(marker []byte)) edit {
	return func(offset uint64, data, _ []byte) []byte {
		for at := range data {
			if (offset+uint64(at))%512 == 0 {
				change(data[at : at+4])
			}
		}
		return script.Seal(data)
	}
}
