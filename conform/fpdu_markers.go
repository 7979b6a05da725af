package conform

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

const markerSection = "RFC 5044 4.2, 4.3"

// fpduMarkers send markers to a peer that asks for them.
func fpduMarkers() []Case {
	cases := slices.Concat(
		either("fpdu", "marker-positions", "F07 F08 F09 F11 R02", markerSection,
			"A marker is found before an FPDU, within its headers, and before its CRC.", func(d *dialogue) {
				d.needsMarkers()
				d.fillTo(6 * markerInterval)
				d.works()
			}),
		either("fpdu", "marker-crc", "F04 F09", crcSection,
			"A marker is part of what the CRC is of: a CRC without it is wrong.", func(d *dialogue) {
				d.needsMarkers()
				d.needsCRC()
				b, at := d.marked()
				d.sendOctets("FPDU with a CRC that leaves the marker out", b[:len(b)-crcLen],
					mpa.AppendCRC(nil, mpa.CRC32C(0, slices.Concat(b[:at], b[at+markerLen:len(b)-crcLen]))))
				d.refused(orDrops, "All MPA Markers are included in the containing FPDU CRC calculation", rdmap.CodeMPACRC)
			}),
		either("fpdu", "marker-missing", "F07 R01", markerSection,
			"Where a marker is missing the FPDU is not taken.", func(d *dialogue) {
				d.needsMarkers()
				d.needsCRC()
				b, at := d.marked()
				bare := d.sealed(append(slices.Delete(b, at, at+markerLen)[:len(b)-markerLen-crcLen], 0, 0, 0, 0))
				d.sendOctets("FPDU without its marker, and more", bare, make([]byte, 64))
				d.refused(orDrops, "the marker is missing", rdmap.CodeMPACRC, rdmap.CodeMPAMarker)
			}),
	)
	for _, c := range []struct {
		name, requirements, text, sent string
		edit                           func(marker []byte)
	}{
		{"marker-res", "F06", "The reserved bits of a marker are not looked at but for the CRC.", "FPDU whose marker's reserved bits are set",
			func(m []byte) { m[0], m[1] = 0xff, 0xff }},
		{"marker-low-bits", "F10", "The low two bits of a FPDUPTR are taken for zero.", "FPDU whose marker's FPDUPTR has its low two bits set",
			func(m []byte) { m[3] |= 3 }},
	} {
		cases = append(cases, either("fpdu", c.name, c.requirements, markerSection, c.text, func(d *dialogue) {
			d.needsMarkers()
			b, at := d.marked()
			c.edit(b[at : at+markerLen])
			d.sendOctets(c.sent, d.sealed(b))
			d.answersRead()
			d.works()
		})...)
	}
	for _, off := range []int{4, -4} {
		name := map[int]string{4: "marker-ahead", -4: "marker-back"}[off]
		cases = append(cases, either("fpdu", name, "F08 Q16", "RFC 5044 8",
			fmt.Sprintf("A FPDUPTR that is wrong by %d octets is not looked at, or Terminate 0x2003.", off), func(d *dialogue) {
				d.needsMarkers()
				b, at := d.marked()
				pointer := b[at+2 : at+markerLen]
				binary.BigEndian.PutUint16(pointer, uint16(int(binary.BigEndian.Uint16(pointer))+off))
				d.sendOctets("FPDU with a wrong FPDUPTR", d.sealed(b))
				d.takenOr("received MPA Marker and ULPDU Length fields do not agree on the start of an FPDU",
					[]rdmap.Code{rdmap.CodeMPAMarker}, d.answersRead)
			})...)
	}
	return cases
}

func (d *dialogue) needsMarkers() {
	if !d.Terms().MarkersSend {
		d.NotApplicable("the peer asks for no markers")
	}
}

// fillTo sends empty Writes up to an offset of the stream. Their 20 octets bring the
// markers to each place that they can have in an FPDU.
func (d *dialogue) fillTo(offset uint64) {
	var all []byte
	for d.operating().w.Offset() < offset {
		all = append(all, d.FrameULPDU(d.emptyWrite())...)
	}
	d.sendOctets("empty Writes", all)
}

// marked returns the FPDU of an emptyRead with a marker in the middle of it, and
// where that is.
func (d *dialogue) marked() (b []byte, at int) {
	// 16 octets or more of the FPDU are to be in front of the marker, and as many
	// behind it.
	for {
		at := int(markerInterval - d.operating().w.Offset()%markerInterval)
		if at >= 16 && at <= 32 {
			return d.FrameULPDU(d.emptyRead()), at
		}
		d.SendFPDU("empty Write", d.emptyWrite())
	}
}

// fpduMarked looks at the peer's markers, which we ask for.
func fpduMarked() []Case {
	dialects := []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044, mpa.DialectRtr, mpa.DialectRevision0, mpa.DialectStartKey}
	build := func(side string, c Case) Case {
		c.ID, c.Requirements = "fpdu/"+side+"-marked", []string{"F04", "F06", "F07", "F08", "F09", "Q04"}
		return c.in(dialects...)
	}
	const text = "With M=1 in our startup frame the peer's markers are where they must be, with reserved bits of zero and the right FPDUPTR."
	return []Case{
		build("responder", toResponder("", "", markerSection, text, looksAtMarkers)),
		build("initiator", toInitiator("", "", markerSection, text, looksAtMarkers).withRping()),
	}
}

// looksAtMarkers has the peer send more than 1536 octets of FPDUs.
func looksAtMarkers(s *Session) {
	d := &dialogue{Session: s}
	s.Setup(func() { d.establish(true, true) })
	var seen int
	if s.Role() == mpa.RoleInitiator {
		if s.look(s.opts.Timeout) == sightEnd {
			s.NotApplicable("the peer ends the connection where it is to send markers: negotiate/rep-m is about that")
		}
		s.PeerAdvert("the client's source advert")
		seen = d.checkMarkers(d.lastFPDU())
	}
	for d.operating().r.Offset() < 3*markerInterval+1 {
		d.SendFPDU("zero-length Read Request", d.emptyRead())
		if d.terminates() {
			d.Inconclusive("the peer does not serve a zero-length Read")
		}
		d.answersRead()
		b, offset := d.lastFPDU()
		seen += d.checkMarkers(b, offset)
	}
	d.Want(seen > 0, "markers", "none")
}

// checkMarkers looks at the markers in an FPDU and returns how many there are.
func (d *dialogue) checkMarkers(b []byte, offset uint64) (n int) {
	start := 0 // of ULPDU_Length
	if offset%markerInterval == 0 {
		start = markerLen
	}
	for at := range b {
		if (offset+uint64(at))%markerInterval != 0 {
			continue
		}
		want := []byte{0, 0, 0, byte(max(at-start, 0))}
		d.Want(slices.Equal(b[at:at+markerLen], want), fmt.Sprintf("a marker of % x at octet %d of the stream", want, offset+uint64(at)), fmt.Sprintf("% x", b[at:at+markerLen]))
		n++
	}
	return n
}
