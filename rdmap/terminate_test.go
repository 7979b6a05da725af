package rdmap

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// terminateTests name a vector of terminates.hex and what is in it.
var terminateTests = []struct {
	vector string
	want   Terminate // without the headers
	op     Opcode    // of the terminated DDP header
	header int       // its length, 0: none
	read   bool      // captured is the terminated RDMA header
}{
	{"none", Terminate{Code: CodeLocalCatastrophic}, 0, 0, false},
	{"tagged", Terminate{Code: CodeDDPBaseOrBounds, SegmentLength: 78, HasLength: true}, OpWrite, 14, false},
	{"untagged", Terminate{Code: CodeDDPInvalidMSNNoBuffer, SegmentLength: 34, HasLength: true}, OpSend, 18, false},
	{"read-request", Terminate{Code: CodeAccessRights, SegmentLength: 46, HasLength: true}, OpReadRequest, 18, true},
	{"crc", Terminate{Code: CodeMPACRC}, 0, 0, false},
	{"reserved", Terminate{Code: CodeUnexpectedOpcode, SegmentLength: 18, HasLength: true}, 12, 18, false},
	{"zeros", Terminate{Code: CodeCatastrophicStream}, 0, 0, false},
	{"length-only", Terminate{Code: CodeRemoteOperationUnspecified, SegmentLength: 32, HasLength: true}, 0, 0, false},
	{"header-only", Terminate{Code: CodeRemoteOperationUnspecified}, OpWrite, 14, false},

	{"siw-crc", Terminate{Code: CodeMPACRC, Layout: LayoutSIW}, 0, 0, false},
	{"siw-write-stag", Terminate{Code: CodeDDPInvalidSTag, SegmentLength: 64, HasLength: true,
		Layout: LayoutSIW}, OpWrite, 14, false},
	{"siw-write-bounds", Terminate{Code: CodeDDPBaseOrBounds, SegmentLength: 64, HasLength: true,
		Layout: LayoutSIW}, OpWrite, 14, false},
	{"siw-read-stag", Terminate{Code: CodeInvalidSTag, HasLength: true, Layout: LayoutSIW}, OpReadRequest, 18, true},
	{"siw-read-bounds", Terminate{Code: CodeBaseOrBounds, HasLength: true, Layout: LayoutSIW}, OpReadRequest, 18, true},
	{"siw-unasked-response", Terminate{Code: CodeDDPLocalCatastrophic, SegmentLength: 64, HasLength: true,
		Layout: LayoutSIW}, OpReadResponse, 14, false},
	{"siw-send-protection", Terminate{Code: CodeProtectionCannotInvalidate, SegmentLength: 16, HasLength: true,
		Layout: LayoutSIW}, OpSendInvalidate, 18, false},
	{"siw-header-only", Terminate{Code: CodeInvalidSTag, Layout: LayoutSIW}, OpReadRequest, 18, false},
	{"not-siw", Terminate{Code: CodeInvalidSTag}, 0, 0, false},
}

// Proves P13: layer, type, code, M, D, R; the reserved bits are ignored, bytes after the
// parts too.
// Proves P15: the parts that M, D and R announce, the DDP header's length by its own T bit.
func TestParseTerminate(t *testing.T) {
	for _, tt := range terminateTests {
		t.Run(tt.vector, func(t *testing.T) {
			got, err := ParseTerminate(testrig.Vectors(t, "terminates")[tt.vector])
			if err != nil {
				t.Fatal(err)
			}
			h, ok := got.Header()
			if ok != (tt.header > 0) || ok && OpcodeOf(&h) != tt.op || len(got.DDPHeader) != tt.header {
				t.Errorf("DDP header: % x", got.DDPHeader)
			}
			r, ok := got.ReadRequest()
			if ok != tt.read || ok && r != captured {
				t.Errorf("RDMA header: % x", got.RDMAPHeader)
			}
			got.DDPHeader, got.RDMAPHeader = nil, nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Proves P13, P15: what the RFC lays down is written just so, with zeros in the reserved bits.
func TestAppendTerminate(t *testing.T) {
	for _, name := range []string{"none", "tagged", "untagged", "read-request", "crc", "length-only", "header-only"} {
		b := testrig.Vectors(t, "terminates")[name]
		term, err := ParseTerminate(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := term.Append(nil); !bytes.Equal(got, b) {
			t.Errorf("%s: wrote\n% x\nwant\n% x", name, got, b)
		}
	}
	term, _ := ParseTerminate(testrig.Vectors(t, "terminates")["reserved"])
	if got := term.Append(nil); got[2] != 0xc0 || got[3] != 0 {
		t.Errorf("reserved bits: % x", got[:4])
	}
	term, _ = ParseTerminate(testrig.Vectors(t, "terminates")["siw-write-stag"])
	if got := term.Append(nil)[:4]; !bytes.Equal(got, []byte{0x11, 0x00, 0xc0, 0x00}) {
		t.Errorf("what siw sent, laid out as the RFC has it: % x", got)
	}
}

// Control fields without parts, which do not tell their layout.
func TestTerminateLayoutByCode(t *testing.T) {
	for _, tt := range []struct {
		control string
		code    Code
		layout  Layout
	}{
		{"20 02 00 00", CodeMPACRC, LayoutRFC},
		{"02 02 00 00", CodeMPACRC, LayoutSIW},
		{"02 03 00 00", CodeMPAMarker, LayoutSIW},
		{"02 07 00 00", CodeCatastrophicStream, LayoutRFC}, // siw's 0x2007 looks the same
		{"10 00 00 00", CodeDDPLocalCatastrophic, LayoutRFC},
		{"01 00 00 00", CodeInvalidSTag, LayoutRFC},
		{"21 03 00 00", CodeDDPInvalidMSNRange, LayoutSIW},
		{"12 03 00 00", CodeDDPInvalidMSNRange, LayoutRFC},
		{"0f 42 00 00", 0x0f42, LayoutRFC}, // neither
		{"0f 42 08 ff", 0x0f42, LayoutRFC}, // reserved bits, none of them siw's
	} {
		got, err := ParseTerminate(testrig.Bytes(t, tt.control))
		if err != nil || got.Code != tt.code || got.Layout != tt.layout {
			t.Errorf("%s: %v, %v, %v; want %v, %v", tt.control, got.Code, got.Layout, err, tt.code, tt.layout)
		}
	}
}

// A peer may set any of the 13 reserved bits, those too where siw has M, D and R, with or
// without zeros in place of absent parts: a proper Terminate reads as it does without
// them, and siw's layout is known by the parts that follow.
//
// Proves P13: "Reserved: 13 bits. This field MUST be set to zero on transmit, ignored on
// receive."
func TestTerminateReservedBits(t *testing.T) {
	proper := map[string][]byte{}
	for _, name := range []string{"none", "tagged", "untagged", "read-request", "crc", "zeros",
		"length-only", "header-only"} {
		proper[name] = testrig.Vectors(t, "terminates")[name]
	}
	for c := range 0x10000 {
		if code := Code(c); code.Known() {
			term := Terminate{Code: code}
			proper[code.String()] = term.Append(nil)
		}
	}
	for name, b := range proper {
		want, err := ParseTerminate(b)
		if err != nil || want.Layout != LayoutRFC {
			t.Fatalf("%s: %v, layout of %v", name, err, want.Layout)
		}
		for reserved := range 1 << 13 {
			spoilt := bytes.Clone(b)
			spoilt[2] |= byte(reserved >> 8)
			spoilt[3] = byte(reserved)
			got, err := ParseTerminate(spoilt)
			if err != nil || got.Code != want.Code || got.Layout != want.Layout || got.HasLength != want.HasLength ||
				got.SegmentLength != want.SegmentLength ||
				!bytes.Equal(got.DDPHeader, want.DDPHeader) || !bytes.Equal(got.RDMAPHeader, want.RDMAPHeader) {
				t.Fatalf("%s, reserved bits 0x%04x: got %v, %v, want %v", name, reserved, got, err, want)
			}
		}
	}
}

// Every prefix is either whole without its last parts, or an error that leaves
// the code readable.
//
// Proves P15: a part which is announced has to be there.
// Proves P36: a Terminate which is not valid is an error.
func TestParseTerminateTooShort(t *testing.T) {
	b := testrig.Vectors(t, "terminates")["read-request"]
	for n := range b {
		got, err := ParseTerminate(b[:n])
		noRDMAHeader := n == 4+2+18
		if (err == nil) != noRDMAHeader {
			t.Errorf("%d bytes: %v", n, err)
		}
		if err != nil && !errors.Is(err, &Error{Code: CodeCatastrophicStream}) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if n >= TerminateMinLen && got.Code != CodeAccessRights {
			t.Errorf("%d bytes: %v", n, got.Code)
		}
	}
}

// TestTerminateFor goes through figure 10.
//
// Proves P16: which parts go with which layer and type.
// Proves P50: type and code alone without an incoming message.
// Proves P53: for Writes, Sends and Read Responses the segment's length and DDP header.
// Proves P54: for Read Requests the Read Request header too, where figure 10 has it.
func TestTerminateFor(t *testing.T) {
	write, send, read, response := message(t, "write"), message(t, "send"), message(t, "read-request"),
		message(t, "read-response")
	long := message(t, "send") // with as many bytes as a Read Request, and more
	long.Payload = make([]byte, 100)
	for _, tt := range []struct {
		code    Code
		seg     *ddp.Segment
		length  uint16
		control string // Append's first four bytes
		total   int    // how many it appends
	}{
		{CodeCatastrophicStream, nil, 0, "02 07 00 00", 4},
		{CodeDDPInvalidMO, nil, 0, "12 04 00 00", 4},
		{CodeLocalCatastrophic, send, 0, "00 00 00 00", 4},
		{0x0042, read, 0, "00 42 00 00", 4},
		{CodeDDPLocalCatastrophic, write, 0, "10 00 00 00", 4},
		{CodeMPACRC, write, 0, "20 02 00 00", 4},
		{CodeMPAInsufficientIRD, read, 0, "20 06 00 00", 4},
		{CodeDDPInvalidSTag, write, 22, "11 00 c0 00", 20},
		{CodeDDPBaseOrBounds, response, 22, "11 01 c0 00", 20},
		{CodeDDPMessageTooLong, send, 34, "12 05 c0 00", 24},
		{CodeDDPInvalidMSNRange, read, 46, "12 03 c0 00", 24},
		{CodeProtectionCannotInvalidate, send, 34, "01 09 c0 00", 24},
		{CodeProtectionCannotInvalidate, long, 118, "01 09 c0 00", 24},
		{CodeAccessRights, read, 46, "01 02 e0 00", 52},
		{CodeUnexpectedOpcode, write, 22, "02 06 c0 00", 20},
		{CodeCatastrophicStream, read, 46, "02 07 c0 00", 24},
	} {
		term := TerminateFor(tt.code, tt.seg)
		b := term.Append(nil)
		if !bytes.Equal(b[:4], testrig.Bytes(t, tt.control)) || len(b) != tt.total || term.SegmentLength != tt.length {
			t.Errorf("%v: length %d, % x", tt.code, term.SegmentLength, b)
		}
		back, err := ParseTerminate(b)
		if diff := cmp.Diff(term, back); err != nil || diff != "" {
			t.Errorf("%v: read back %v (-wrote +read):\n%s", tt.code, err, diff)
		}
	}
}

// The Terminate outlives the memory of the segment that it tells of.
func TestTerminateForCopies(t *testing.T) {
	b := testrig.Vectors(t, "messages")["read-request"]
	s, _ := ddp.Parse(b)
	term := TerminateFor(CodeAccessRights, &s)
	want := term.Append(nil)
	clear(b)
	if got := term.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("% x", got)
	}
}

// A Read Request cut short has no header to send back, and a segment too long
// for the length field no length.
func TestTerminateForOddSegments(t *testing.T) {
	s := message(t, "read-request")
	s.Payload = s.Payload[:27]
	if term := TerminateFor(CodeAccessRights, s); term.RDMAPHeader != nil || term.DDPHeader == nil {
		t.Errorf("%+v", term)
	}
	s = message(t, "write")
	s.Payload = make([]byte, 65522)
	if term := TerminateFor(CodeDDPInvalidSTag, s); term.HasLength || term.DDPHeader == nil {
		t.Errorf("%+v", term)
	}
	s.Payload = s.Payload[:65521]
	if term := TerminateFor(CodeDDPInvalidSTag, s); !term.HasLength || term.SegmentLength != 65535 {
		t.Errorf("%+v", term)
	}
}

func TestTerminateString(t *testing.T) {
	for vector, want := range map[string]string{
		"crc":     "LLP/MPA/CRC mismatch (0x2002)",
		"siw-crc": "LLP/MPA/CRC mismatch (0x2002) (layout of siw)",
		"read-request": "RDMAP/Remote Protection/access rights violation (0x0102) for RDMA Read Request, " +
			"DDP untagged L=1 Rsvd=0 DV=1 RsvdULP=0x41:00000000 QN=1 MSN=1 MO=0, " +
			"65000 bytes from STag 0x79ca8f00 TO 0x555ea09ee4f0 to STag 0x846f3200 TO 0x55f07ce59610",
	} {
		term, _ := ParseTerminate(testrig.Vectors(t, "terminates")[vector])
		if got := term.String(); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", vector, got, want)
		}
	}
	if LayoutRFC.String() != "RFC 5040" {
		t.Error(LayoutRFC)
	}
}

// Any code, with any of the parts, is read back as it was written.
func TestTerminateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		term := Terminate{Code: Code(rapid.Uint16().Draw(t, "code"))}
		if term.HasLength = rapid.Bool().Draw(t, "M"); term.HasLength {
			term.SegmentLength = rapid.Uint16().Draw(t, "length")
		}
		if rapid.Bool().Draw(t, "D") {
			h := ddp.Header{Tagged: rapid.Bool().Draw(t, "T"), RsvdULP: rapid.Uint8().Draw(t, "RsvdULP")}
			term.DDPHeader = h.Append(nil)
		}
		if rapid.Bool().Draw(t, "R") {
			r := ReadRequest{Size: rapid.Uint32().Draw(t, "size")}
			term.RDMAPHeader = r.Append(nil)
		}
		got, err := ParseTerminate(term.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got.Layout == LayoutSIW { // no parts, and a code which only siw's reading knows
			got.Code, got.Layout = swapLayerEType(got.Code), LayoutRFC
		}
		if diff := cmp.Diff(term, got); diff != "" {
			t.Fatalf("(-wrote +read):\n%s", diff)
		}
	})
}

// FuzzTerminate: nothing panics, and what is read in the RFC's layout is read
// again from what is written.
func FuzzTerminate(f *testing.F) {
	for _, b := range testrig.Vectors(f, "terminates") {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		term, err := ParseTerminate(b)
		_ = term.String()
		if err != nil {
			return
		}
		again, err := ParseTerminate(term.Append(nil))
		if err != nil {
			t.Fatalf("% x: %v", b, err)
		}
		if term.Layout == LayoutSIW || again.Layout == LayoutSIW {
			return // the layout is not kept, nor is it certain
		}
		if diff := cmp.Diff(term, again); diff != "" {
			t.Fatalf("% x (-read +again):\n%s", b, diff)
		}
	})
}
