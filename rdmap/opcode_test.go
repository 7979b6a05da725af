package rdmap

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// opcodeTests are the rows of RFC 5040, Figures 4 and 5, and of RFC 7306, Figures 2 and 3.
var opcodeTests = []struct {
	op     Opcode
	value  uint8
	name   string
	tagged bool
	qn     uint32
	header int
	ulp    bool // carries ULP payload
	inv    bool // carries an Invalidate STag
	first2 string
}{
	{OpWrite, 0, "RDMA Write", true, 0, 0, true, false, "c1 40"},
	{OpReadRequest, 1, "RDMA Read Request", false, 1, 28, false, false, "41 41"},
	{OpReadResponse, 2, "RDMA Read Response", true, 0, 0, true, false, "c1 42"},
	{OpSend, 3, "Send", false, 0, 0, true, false, "41 43"},
	{OpSendInvalidate, 4, "Send with Invalidate", false, 0, 0, true, true, "41 44"},
	{OpSendSE, 5, "Send with SE", false, 0, 0, true, false, "41 45"},
	{OpSendSEInvalidate, 6, "Send with SE and Invalidate", false, 0, 0, true, true, "41 46"},
	{OpTerminate, 7, "Terminate", false, 2, 4, false, false, "41 47"},
	{OpImmediateData, 8, "Immediate Data", false, 0, 8, false, false, "41 48"},
	{OpImmediateDataSE, 9, "Immediate Data with SE", false, 0, 8, false, false, "41 49"},
	{OpAtomicRequest, 10, "Atomic Request", false, 1, 52, false, false, "41 4a"},
	{OpAtomicResponse, 11, "Atomic Response", false, 3, 12, false, false, "41 4b"},
}

// Proves P06: the opcodes' values.
// Proves P01: the model and the queue of each.
// Proves P09: which have an RDMAP header, and which carry ULP payload.
func TestOpcodes(t *testing.T) {
	for _, tt := range opcodeTests {
		info, ok := tt.op.Info()
		if !ok || uint8(tt.op) != tt.value || tt.op.String() != tt.name || info.Name != tt.name {
			t.Errorf("opcode %d: %v, %q, known %t", tt.value, tt.op, info.Name, ok)
		}
		if info.Tagged != tt.tagged || info.QN != tt.qn || info.HeaderLen != tt.header || info.Payload != tt.ulp {
			t.Errorf("%v: %+v", tt.op, info)
		}
	}
	for _, op := range []Opcode{Opcode(Opcodes), 15, 255} {
		if info, ok := op.Info(); ok || info != (Info{}) {
			t.Errorf("opcode %d is known: %+v", op, info)
		}
	}
	if got := Opcode(15).String(); got != "opcode 15" {
		t.Error(got)
	}
}

// Proves P02: the control byte is the first of RsvdULP.
// Proves P01, P06: the first two bytes of every message, as they are sent.
// Proves P08: the Invalidate STag is zero where none was asked for.
func TestOpcodeHeader(t *testing.T) {
	for _, tt := range opcodeTests {
		h := tt.op.Header(1)
		h.Last = true
		got := h.Append(nil)
		if diff := cmp.Diff(testrig.Bytes(t, tt.first2), got[:2]); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.op, diff)
		}
		if h.QN != tt.qn || h.ULP != 0 || h.STag != 0 || h.TO != 0 || OpcodeOf(&h) != tt.op {
			t.Errorf("%v: %v", tt.op, h)
		}
		if v0 := tt.op.Header(0); v0.Version != 0 || v0.RsvdULP != tt.value {
			t.Errorf("%v of version 0: %v", tt.op, v0)
		}
	}
}

// Proves P04: version in bits 7-6, zeros in 5-4, opcode in 3-0, and back without 5-4.
func TestControl(t *testing.T) {
	for version := range uint8(4) {
		for op := range Opcode(16) {
			c := Control(version, op)
			if c != version*64+uint8(op) {
				t.Errorf("version %d, opcode %d: %#02x", version, op, c)
			}
			for rsv := range uint8(4) {
				if v, o := ParseControl(c | rsv<<4); v != version || o != op {
					t.Errorf("%#02x: version %d, opcode %d", c|rsv<<4, v, o)
				}
			}
		}
	}
}

// Proves P08: the field is the Invalidate STag in opcodes 4 and 6, and ignored in all others.
func TestInvalidateSTag(t *testing.T) {
	want := map[Opcode]bool{OpSendInvalidate: true, OpSendSEInvalidate: true}
	for op := range Opcode(16) {
		h := ddp.Header{RsvdULP: Control(1, op), ULP: 0xabcdef01}
		stag, ok := InvalidateSTag(&h)
		if ok != want[op] || ok && stag != 0xabcdef01 || !ok && stag != 0 {
			t.Errorf("%v: %#x, %t", op, stag, ok)
		}
	}
}
