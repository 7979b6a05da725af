//go:build interop

package interop_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A field is a protocol or a field in tshark's PDML, with those within.
type field struct {
	Name     string  `xml:"name,attr"`
	Show     string  `xml:"show,attr"`     // the value as text
	ShowName string  `xml:"showname,attr"` // what a reader sees
	Value    string  `xml:"value,attr"`    // the bytes
	Fields   []field `xml:"field"`
}

// pdml is tshark's reading of a capture.
type pdml struct {
	Packets []struct {
		Protos []field `xml:"proto"`
	} `xml:"packet"`
}

// A reported is a startup frame or an FPDU with all that tshark prints of it.
type reported struct {
	packet    uint64           // in which it is complete
	startup   mpa.StartupFrame // nil for an FPDU
	length    int              // ULPDU_Length
	checked   bool             // tshark has checked the CRC
	right     bool             // and found it right
	pad       []byte           // nil without one
	crc       []byte           // the field
	markers   []uint64         // FPDUPTR of each
	header    ddp.Header       // of the segment
	version   uint8            // of RDMAP
	op        rdmap.Opcode
	stag      *uint32            // Invalidate STag
	read      *rdmap.ReadRequest // of a Read Request
	terminate *rdmap.Terminate   // of a Terminate
}

// String describes all of it.
func (r reported) String() string {
	if r.startup != nil {
		return fmt.Sprintf("packet %d: %v %x", r.packet, r.startup, r.startup.ULPData())
	}
	s := fmt.Sprintf("packet %d: FPDU %d pad %x CRC %x (checked %t, right %t) markers %v, %v, RDMAP v%d %v",
		r.packet, r.length, r.pad, r.crc, r.checked, r.right, r.markers, r.header, r.version, r.op)
	if r.stag != nil {
		s += fmt.Sprintf(" of STag %#08x", *r.stag)
	}
	if r.read != nil {
		s += fmt.Sprintf(", %v", r.read)
	}
	if t := r.terminate; t != nil {
		s += fmt.Sprintf(", %v, M=%t length %d, headers %x %x",
			t, t.HasLength, t.SegmentLength, t.DDPHeader, t.RDMAPHeader)
	}
	return s
}

// reportOf is what tshark ought to report of an event.
func reportOf(e event) reported {
	if e.startup != nil {
		return reported{packet: e.packet, startup: e.startup}
	}
	f := &e.fpdu
	r := reported{
		packet: e.packet, length: f.Length, checked: f.CRC == decode.CRCRight ||
			f.CRC == decode.CRCWrong, right: f.CRC == decode.CRCRight,
		header: f.Segment.Header, op: f.Op, read: f.ReadRequest, terminate: f.Terminate,
	}
	r.pad, r.crc = f.Trailer()
	r.version, _ = rdmap.ParseControl(f.Segment.RsvdULP)
	for _, m := range f.Markers {
		r.markers = append(r.markers, uint64(m.FPDUPTR))
	}
	if stag, ok := rdmap.InvalidateSTag(&f.Segment.Header); ok {
		r.stag = &stag
	}
	return r
}

// parsePDML finds the events in tshark's output, by the ports from and to which
// they went: one that came in several segments is in the last one's packet.
func parsePDML(t testing.TB, text string) map[[2]string][]reported {
	t.Helper()
	var doc pdml
	if err := xml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("tshark's PDML: %v", err)
	}
	found := map[[2]string][]reported{}
	for i, packet := range doc.Packets {
		var ports [2]string
		for _, p := range packet.Protos {
			switch p.Name {
			case "tcp":
				ports = [2]string{p.find("tcp.srcport").Show, p.find("tcp.dstport").Show}
			case "iwarp_mpa":
				found[ports] = append(found[ports], p.mpa(t, uint64(i+1)))
			case "iwarp_ddp_rdmap":
				events := found[ports]
				p.rdmap(t, &events[len(events)-1])
			}
		}
	}
	return found
}

// find returns the first field whose name begins so, or an empty one.
func (f *field) find(prefix string) *field {
	for i := range f.Fields {
		if strings.HasPrefix(f.Fields[i].Name, prefix) {
			return &f.Fields[i]
		}
		if found := f.Fields[i].find(prefix); found.Name != "" {
			return found
		}
	}
	return &field{}
}

func (f *field) has(name string) bool { return f.find(name).Name != "" }

// num returns a field's value; one that is not there counts as 0, as the other
// model's do in a DDP header.
func (f *field) num(t testing.TB, name string) uint64 {
	t.Helper()
	return f.find(name).number(t)
}

// number returns the value of the field itself.
func (f *field) number(t testing.TB) uint64 {
	t.Helper()
	if f.Show == "" {
		return 0
	}
	n, err := strconv.ParseUint(f.Show, 0, 64)
	if err != nil {
		t.Fatalf("tshark's %s: %v", f.Name, err)
	}
	return n
}

func (f *field) flag(t testing.TB, name string) bool { return f.num(t, name) != 0 }

// bytes returns a field's bytes, nil without the field.
func (f *field) byteSplit(t testing.TB, name string) []byte {
	t.Helper()
	b, err := hex.DecodeString(f.find(name).Value)
	if err != nil {
		t.Fatalf("tshark's %s: %v", name, err)
	}
	if len(b) == 0 {
		return nil
	}
	return b
}

func (f *field) mpa(t testing.TB, packet uint64) reported {
	t.Helper()
	if key := f.byteSplit(t, "iwarp_mpa.key."); key != nil {
		return reported{packet: packet, startup: f.startup(t, string(key))}
	}
	check := f.find("iwarp_mpa.crc_check")
	r := reported{
		packet: packet, length: int(f.num(t, "iwarp_mpa.ulpdulength")), pad: f.byteSplit(t, "iwarp_mpa.pad"),
		crc: f.byteSplit(t, "iwarp_mpa.crc"), checked: check.Name != "",
		right: strings.Contains(check.ShowName, "(Good CRC32)"),
	}
	for _, m := range f.find("iwarp_mpa.markers").Fields {
		if m.Name == "iwarp_mpa.marker_fpduptr" {
			r.markers = append(r.markers, m.number(t))
		}
	}
	return r
}

// startup puts a frame together from its fields. tshark does not know of the S
// bit: it is the highest of the reserved ones, and IRD and ORD private data.
func (f *field) startup(t testing.TB, key string) mpa.StartupFrame {
	t.Helper()
	res := f.num(t, "iwarp_mpa.res")
	frame := mpa.StartupFields{
		Key: key,
		M:   f.flag(t, "iwarp_mpa.marker_flag"), C: f.flag(t, "iwarp_mpa.crc_flag"), R: f.flag(t, "iwarp_mpa.rej_flag"),
		S: res&0x10 != 0, Res: uint8(res & 0xf), Rev: uint8(f.num(t, "iwarp_mpa.rev")),
		PDLength:    int(f.num(t, "iwarp_mpa.pdlength")),
		PrivateData: f.byteSplit(t, "iwarp_mpa.privatedata"),
	}
	return mpa.AppendStartup(nil, &frame)
}

func (f *field) rdmap(t testing.TB, into *reported) {
	t.Helper()
	into.header = f.ddp(t)
	into.version, into.op = uint8(f.num(t, "iwarp_rdma.version")), rdmap.Opcode(f.num(t, "iwarp_rdma.opcode"))
	if f.has("iwarp_rdma.inval_stag") {
		stag := uint32(f.num(t, "iwarp_rdma.inval_stag"))
		into.stag = &stag
	}
	if f.has("iwarp_rdma.rr") {
		into.read = f.readRequest(t)
	}
	if f.has("iwarp_rdma.terminate") {
		into.terminate = f.terminate(t)
	}
}

func (f *field) ddp(t testing.TB) ddp.Header {
	t.Helper()
	h := ddp.Header{
		Tagged: f.flag(t, "iwarp_ddp.tagged_flag"), Last: f.flag(t, "iwarp_ddp.last_flag"),
		Rsvd: uint8(f.num(t, "iwarp_ddp.rsvd")), Version: uint8(f.num(t, "iwarp_ddp.dv")),
		STag: uint32(f.num(t, "iwarp_ddp.stag")), TO: f.num(t, "iwarp_ddp.tagged_offset"),
		QN: uint32(f.num(t, "iwarp_ddp.qn")), MSN: uint32(f.num(t, "iwarp_ddp.msn")),
		MO: uint32(f.num(t, "iwarp_ddp.mo")),
		// of a tagged header tshark shows RDMAP's byte only taken apart
		RsvdULP: uint8(f.num(t, "iwarp_rdma.version")<<6 | f.num(t,
			"iwarp_rdma.rsv")<<4 | f.num(t, "iwarp_rdma.opcode")),
	}
	if ulp := f.byteSplit(t, "iwarp_ddp.rsvdulp"); len(ulp) == 5 {
		h.RsvdULP, h.ULP = ulp[0], binary.BigEndian.Uint32(ulp[1:])
	}
	return h
}

func (f *field) readRequest(t testing.TB) *rdmap.ReadRequest {
	t.Helper()
	return &rdmap.ReadRequest{
		SinkSTag: uint32(f.num(t, "iwarp_rdma.sinkstag")), SinkTO: f.num(t, "iwarp_rdma.sinkto"),
		Size:    uint32(f.num(t, "iwarp_rdma.rdmardsz")),
		SrcSTag: uint32(f.num(t, "iwarp_rdma.srcstag")), SrcTO: f.num(t, "iwarp_rdma.srcto"),
	}
}

// terminate takes the M, D and R bits from what is there: tshark shows a header
// where its bit is set, and only there.
func (f *field) terminate(t testing.TB) *rdmap.Terminate {
	t.Helper()
	code := f.num(t, "iwarp_rdma.term_layer")<<12 | f.num(t, "iwarp_rdma.term_etype")<<8 | f.num(t,
		"iwarp_rdma.term_errcode")
	term := &rdmap.Terminate{
		Code:        rdmap.Code(code),
		HasLength:   f.flag(t, "iwarp_rdma.term_hdrct_m"),
		DDPHeader:   f.byteSplit(t, "iwarp_rdma.term_ddp_h"),
		RDMAPHeader: f.byteSplit(t, "iwarp_rdma.term_rdma_h"),
	}
	if length := f.byteSplit(t, "iwarp_rdma.term_ddp_seg_len"); len(length) == 2 {
		term.SegmentLength = binary.BigEndian.Uint16(length)
	}
	return term
}
