//go:build interop

package interop_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"strconv"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A field is a protocol or a field in tshark's PDML, with those within.
type field struct {
	Name     string  `xml:"name,attr"`
	Show     string  `xml:"show,attr"`     // the value as text
	ShowName string  `xml:"showname,attr"` // what a reader sees
	Value    string  `xml:"value,attr"`    // the octets
	Fields   []field `xml:"field"`
}

// pdml is tshark's reading of a capture.
type pdml struct {
	Packets []struct {
		Protos []field `xml:"proto"`
	} `xml:"packet"`
}

// parsePDML finds the events in tshark's output, by the ports from and to which
// they went: one that came in several segments is in the last one's packet.
func parsePDML(t testing.TB, text string) map[[2]string][]event {
	t.Helper()
	var doc pdml
	if err := xml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("tshark's PDML: %v", err)
	}
	found := map[[2]string][]event{}
	for _, packet := range doc.Packets {
		var ports [2]string
		for _, p := range packet.Protos {
			switch p.Name {
			case "tcp":
				ports = [2]string{p.find("tcp.srcport").Show, p.find("tcp.dstport").Show}
			case "iwarp_mpa":
				found[ports] = append(found[ports], p.mpa(t))
			case "iwarp_ddp_rdmap":
				events := found[ports]
				p.rdmap(t, &events[len(events)-1].fpdu)
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
	text := f.find(name).Show
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatalf("tshark's %s: %v", name, err)
	}
	return n
}

func (f *field) flag(t testing.TB, name string) bool { return f.num(t, name) != 0 }

// octets returns a field's octets, nil without the field.
func (f *field) octets(t testing.TB, name string) []byte {
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

func (f *field) mpa(t testing.TB) event {
	t.Helper()
	if key := f.octets(t, "iwarp_mpa.key."); key != nil {
		return event{startup: f.startup(t, string(key))}
	}
	e := event{fpdu: fpdu{ulpduLength: int(f.num(t, "iwarp_mpa.ulpdulength")), crc: crcUnchecked}}
	if check := f.find("iwarp_mpa.crc_check"); check.Name != "" {
		e.fpdu.crc = crcBad
		if strings.Contains(check.ShowName, "(Good CRC32)") {
			e.fpdu.crc = crcGood
		}
	}
	return e
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
		PrivateData: f.octets(t, "iwarp_mpa.privatedata"),
	}
	return mpa.AppendStartup(nil, &frame)
}

func (f *field) rdmap(t testing.TB, into *fpdu) {
	t.Helper()
	into.header = f.ddp(t)
	into.version, into.op = uint8(f.num(t, "iwarp_rdma.version")), rdmap.Opcode(f.num(t, "iwarp_rdma.opcode"))
	if f.has("iwarp_rdma.inval_stag") {
		stag := uint32(f.num(t, "iwarp_rdma.inval_stag"))
		into.invalidate = &stag
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
		QN: uint32(f.num(t, "iwarp_ddp.qn")), MSN: uint32(f.num(t, "iwarp_ddp.msn")), MO: uint32(f.num(t, "iwarp_ddp.mo")),
		// of a tagged header tshark shows RDMAP's octet only taken apart
		RsvdULP: uint8(f.num(t, "iwarp_rdma.version")<<6 | f.num(t, "iwarp_rdma.rsv")<<4 | f.num(t, "iwarp_rdma.opcode")),
	}
	if ulp := f.octets(t, "iwarp_ddp.rsvdulp"); len(ulp) == 5 {
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
	code := f.num(t, "iwarp_rdma.term_layer")<<12 | f.num(t, "iwarp_rdma.term_etype")<<8 | f.num(t, "iwarp_rdma.term_errcode")
	term := &rdmap.Terminate{
		Code:        rdmap.Code(code),
		HasLength:   f.flag(t, "iwarp_rdma.term_hdrct_m"),
		DDPHeader:   f.octets(t, "iwarp_rdma.term_ddp_h"),
		RDMAPHeader: f.octets(t, "iwarp_rdma.term_rdma_h"),
	}
	if length := f.octets(t, "iwarp_rdma.term_ddp_seg_len"); len(length) == 2 {
		term.SegmentLength = binary.BigEndian.Uint16(length)
	}
	return term
}
