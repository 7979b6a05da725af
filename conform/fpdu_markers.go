package conform

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/script"
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
				d.fillTo(6 * layout.MarkerInterval)
				d.works()
			}),
		either("fpdu", "marker-crc", "F04 F09", crcSection,
			"The CRC covers the marker: one that is computed without it is wrong.", func(d *dialogue) {
				d.needsMarkers()
				d.needsCRC()
				b, at := d.marked()
				d.send("FPDU with a CRC that leaves the marker out", b[:len(b)-layout.CRCLen],
					layout.AppendCRC(nil, layout.CRC32C(0,
						slices.Concat(b[:at], b[at+layout.MarkerLen:len(b)-layout.CRCLen]))))
				d.refused(orDrops, "All MPA Markers are included in the containing FPDU CRC calculation",
					rdmap.CodeMPACRC)
			}),
		either("fpdu", "marker-missing", "F07 R01", markerSection,
			"Where a marker is missing the FPDU is not taken.", func(d *dialogue) {
				d.needsMarkers()
				d.needsCRC()
				b, at := d.marked()
				bare := d.sealed(append(slices.Delete(b, at,
					at+layout.MarkerLen)[:len(b)-layout.MarkerLen-layout.CRCLen], 0, 0, 0, 0))
				d.send("FPDU without its marker, and more", bare, make([]byte, 64))
				d.refused(orDrops, "the marker is missing", rdmap.CodeMPACRC, rdmap.CodeMPAMarker)
			}),
	)
	for _, c := range []struct {
		name, requirements, text, sent string
		edit                           func(marker []byte)
	}{
		{"marker-res", "F06", "The reserved bits of a marker are not checked, except by the CRC.",
			"FPDU whose marker's reserved bits are set",
			func(m []byte) { m[0], m[1] = 0xff, 0xff }},
		{"marker-low-bits", "F10", "The low two bits of an FPDUPTR count as zero.",
			"FPDU whose marker's FPDUPTR has its low two bits set",
			func(m []byte) { m[3] |= 3 }},
	} {
		cases = append(cases, either("fpdu", c.name, c.requirements, markerSection, c.text, func(d *dialogue) {
			d.needsMarkers()
			b, at := d.marked()
			c.edit(b[at : at+layout.MarkerLen])
			d.send(c.sent, d.sealed(b))
			d.answersRead()
			d.works()
		})...)
	}
	for _, off := range []int{4, -4} {
		name := map[int]string{4: "marker-ahead", -4: "marker-back"}[off]
		cases = append(cases, either("fpdu", name, "F08 Q16", "RFC 5044 8",
			fmt.Sprintf("An FPDUPTR that is wrong by %d bytes is not checked, or refused: Terminate 0x2003.",
				off), func(d *dialogue) {
				d.needsMarkers()
				b, at := d.marked()
				pointer := b[at+2 : at+layout.MarkerLen]
				binary.BigEndian.PutUint16(pointer, uint16(int(binary.BigEndian.Uint16(pointer))+off))
				d.send("FPDU with a wrong FPDUPTR", d.sealed(b))
				d.mayRefuse("received MPA Marker and ULPDU Length fields do not agree on the start of an FPDU",
					[]rdmap.Code{rdmap.CodeMPAMarker}, d.answersRead)
			})...)
	}
	return cases
}

func (d *dialogue) needsMarkers() {
	if !d.terms().MarkersSend {
		d.notApplicable("the peer asks for no markers")
	}
}

// fillTo sends empty Writes up to an offset of the stream. Their 20 bytes bring the
// markers to each place that they can have in an FPDU.
func (d *dialogue) fillTo(offset uint64) {
	var all []byte
	for d.operating().SendOffset() < offset {
		all = append(all, d.framed(d.emptyWrite())...)
	}
	d.send("empty Writes", all)
}

// marked returns the FPDU of an emptyRead with a marker in the middle of it, and
// where that is.
func (d *dialogue) marked() (b []byte, at int) {
	// 16 bytes or more of the FPDU are to be before the marker, and as many after it.
	for {
		at := int(layout.MarkerInterval - d.operating().SendOffset()%layout.MarkerInterval)
		if at >= 16 && at <= 32 {
			return d.framed(d.emptyRead()), at
		}
		d.sendFPDU("empty Write", d.emptyWrite())
	}
}

// fpduMarked looks at the peer's markers, which we ask for.
func fpduMarked() []Case {
	dialects := []mpa.Dialect{mpa.DialectRFC6581, mpa.DialectRFC5044, mpa.DialectRtr,
		mpa.DialectRevision0, mpa.DialectStartKey}
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

// looksAtMarkers has the peer send more than 1536 bytes of FPDUs.
func looksAtMarkers(s *session) {
	d := &dialogue{session: s}
	s.setup(func() { d.establishWith(true, true) })
	var seen int
	if s.role() == mpa.RoleInitiator {
		if s.look(s.opts.Timeout) == sightEnd {
			s.notApplicable("the peer ends the connection where it is to send markers: negotiate/rep-m is about that")
		}
		s.peerAdvert("the client's source advert")
		seen = d.checkMarkers(&d.link.last)
	}
	for d.operating().ReceiveOffset() < 3*layout.MarkerInterval+1 {
		d.sendFPDU("zero-length Read Request", d.emptyRead())
		if d.terminates() {
			d.inconclusive("the peer does not serve a zero-length Read")
		}
		d.answersRead()
		seen += d.checkMarkers(&d.link.last)
	}
	d.want(seen > 0, "markers", "none")
}

// checkMarkers looks at the markers in an FPDU and returns how many there are.
func (d *dialogue) checkMarkers(f *script.FPDU) (n int) {
	b, offset := f.Bytes, f.Offset
	start := 0 // of ULPDU_Length
	if offset%layout.MarkerInterval == 0 {
		start = layout.MarkerLen
	}
	for at := range b {
		if (offset+uint64(at))%layout.MarkerInterval != 0 {
			continue
		}
		want := []byte{0, 0, 0, byte(max(at-start, 0))}
		d.want(slices.Equal(b[at:at+layout.MarkerLen], want),
			fmt.Sprintf("a marker of % x at byte %d of the stream", want, offset+uint64(at)),
			fmt.Sprintf("% x", b[at:at+layout.MarkerLen]))
		n++
	}
	return n
}
