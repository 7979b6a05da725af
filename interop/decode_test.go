package interop_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// An event is one startup frame or one FPDU, with all that is compared.
type event struct {
	dir    direction
	offset uint64 // of the first octet in the direction's stream
	size   int    // octets on the stream

	startup mpa.StartupFrame // nil for an FPDU
	fpdu    fpdu
}

// An fpdu is what there is to know of an FPDU but its payload.
type fpdu struct {
	ulpduLength int
	crc         crcVerdict
	header      ddp.Header
	version     uint8 // of RDMAP
	op          rdmap.Opcode

	invalidate *uint32            // the STag in a Send with Invalidate
	read       *rdmap.ReadRequest // of a Read Request
	terminate  *rdmap.Terminate   // of a Terminate
}

type crcVerdict string

const (
	crcGood      crcVerdict = "good"
	crcBad       crcVerdict = "bad"
	crcUnchecked crcVerdict = "off"
)

// String describes the event without its place in the stream.
func (e event) String() string {
	if e.startup == nil {
		return fmt.Sprintf("%v FPDU %v", e.dir, e.fpdu)
	}
	return strings.TrimSpace(fmt.Sprintf("%v %v %x", e.dir, e.startup, e.startup.ULPData()))
}

func (f fpdu) String() string {
	s := fmt.Sprintf("%d CRC %s, %v, RDMAP v%d %v", f.ulpduLength, f.crc, f.header, f.version, f.op)
	if f.invalidate != nil {
		s += fmt.Sprintf(" of STag %#08x", *f.invalidate)
	}
	if f.read != nil {
		s += fmt.Sprintf(", %v", f.read)
	}
	if t := f.terminate; t != nil {
		s += fmt.Sprintf(", %v, M=%t length %d, headers %x %x", t, t.HasLength, t.SegmentLength, t.DDPHeader, t.RDMAPHeader)
	}
	return s
}

// A decoder finds the events in the octets of one connection. It uses the
// product's codecs for all of them: it is these that are tested.
type decoder struct {
	streams [2]stream
	events  []event
}

// A stream is what a decoder knows of one direction.
type stream struct {
	buf    []byte // not yet consumed
	offset uint64 // of buf
	frame  mpa.StartupFrame
	fpdus  mpa.Reader
	crc    crcVerdict
}

// decode returns the events of a connection whose octets come in these pieces.
func decode(pieces []piece) ([]event, error) {
	var d decoder
	for _, p := range pieces {
		if err := d.input(p); err != nil {
			return d.events, err
		}
	}
	for dir, s := range d.streams {
		if len(s.buf) != 0 && !d.rejected() {
			return d.events, fmt.Errorf("%v: %d octets left at offset %d", direction(dir), len(s.buf), s.offset)
		}
	}
	return d.events, nil
}

func (d *decoder) input(p piece) error {
	s := &d.streams[p.dir]
	s.buf = append(s.buf, p.bytes...)
	if s.frame == nil {
		d.startup(p.dir)
	}
	if !d.started() || d.rejected() {
		return nil
	}
	if err := d.full(fromInitiator); err != nil {
		return err
	}
	return d.full(fromResponder)
}

// started says whether both ends' choices are known.
func (d *decoder) started() bool {
	return d.streams[fromInitiator].frame != nil && d.streams[fromResponder].frame != nil
}

// rejected says whether MPA has ended: what follows is not for it.
func (d *decoder) rejected() bool {
	f := d.streams[fromResponder].frame
	return f != nil && f.R()
}

// startup looks for a direction's startup frame; with the second of them the
// form of both directions' FPDUs is known.
func (d *decoder) startup(dir direction) {
	s := &d.streams[dir]
	frame, err := mpa.ParseStartup(s.buf)
	if err != nil {
		return // not whole
	}
	s.frame = slices.Clone(frame)
	d.add(dir, len(frame), event{startup: s.frame})
	if d.started() {
		d.open(fromInitiator)
		d.open(fromResponder)
	}
}

// open begins a direction's Full Operation: the receiver has decided on
// markers, and either end's wish for a CRC is enough.
func (d *decoder) open(dir direction) {
	s, receiver := &d.streams[dir], d.streams[dir.peer()].frame
	crc := s.frame.C() || receiver.C()
	s.fpdus, s.crc = mpa.NewReader(receiver.M(), crc), crcUnchecked
	if crc {
		s.crc = crcGood // the Reader gives none out whose CRC is not
	}
}

// full takes the whole FPDUs out of a direction.
func (d *decoder) full(dir direction) error {
	s := &d.streams[dir]
	for {
		found, n, err := s.fpdus.Next(s.buf)
		if err != nil {
			return fmt.Errorf("%v: %w", dir, err)
		}
		if n == 0 {
			return nil
		}
		f, err := parseFPDU(found.ULPDU)
		if err != nil {
			return fmt.Errorf("%v: FPDU at offset %d: %w", dir, s.offset, err)
		}
		f.crc = s.crc
		d.add(dir, n, event{fpdu: f})
	}
}

// add notes an event of size octets, and consumes these.
func (d *decoder) add(dir direction, size int, e event) {
	s := &d.streams[dir]
	e.dir, e.offset, e.size = dir, s.offset, size
	d.events = append(d.events, e)
	s.buf, s.offset = s.buf[size:], s.offset+uint64(size)
}

func parseFPDU(ulpdu []byte) (fpdu, error) {
	seg, err := ddp.Parse(ulpdu)
	if err != nil {
		return fpdu{}, err
	}
	f := fpdu{ulpduLength: len(ulpdu), header: seg.Header}
	f.version, f.op = rdmap.ParseControl(seg.RsvdULP)
	return f, f.parseRDMAP(&seg)
}

func (f *fpdu) parseRDMAP(seg *ddp.Segment) error {
	if bad := rdmap.CheckExtendedSegment(seg, f.version); bad != nil {
		return bad
	}
	if stag, ok := rdmap.InvalidateSTag(&seg.Header); ok {
		f.invalidate = &stag
	}
	switch f.op {
	case rdmap.OpReadRequest:
		r, err := rdmap.ParseReadRequest(seg.Payload)
		f.read = &r
		return err
	case rdmap.OpTerminate:
		t, err := rdmap.ParseTerminate(seg.Payload)
		t = t.Clone()
		f.terminate = &t
		return err
	}
	return nil
}
