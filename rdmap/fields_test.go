package rdmap

import (
	"encoding/json"
	"testing"
)

// TestFields takes a header of each opcode apart: its fields are all of it, and none if a byte is missing.
func TestFields(t *testing.T) {
	for op := range Opcode(1 << 4) {
		info, _ := op.Info()
		n := 0
		for _, f := range op.Fields(make([]byte, info.HeaderLen+1)) {
			if n += f.Len; f.Name == "" || f.Text == "" {
				t.Errorf("%v: %+v", op, f)
			}
		}
		if n > 0 && n != info.HeaderLen || (n > 0) != (info.Key != "") {
			t.Errorf("%v: fields of %d bytes under %q, the header has %d", op, n, info.Key, info.HeaderLen)
		}
		if n > 0 && (op.Fields(make([]byte, n-1)) != nil || op.Describe(make([]byte, n-1)) != "") {
			t.Errorf("%v: fields of a header that is too short", op)
		}
	}
}

// TestResponses holds what answers a message against what is an answer.
func TestResponses(t *testing.T) {
	answers := map[Opcode]bool{}
	for op := range Opcode(1 << 4) {
		if info, _ := op.Info(); info.Response != 0 {
			answers[info.Response] = true
		}
	}
	for op := range Opcode(1 << 4) {
		if info, _ := op.Info(); info.Answer != answers[op] {
			t.Errorf("%v is an answer: %t", op, info.Answer)
		}
	}
}

// TestFieldValues compares the fields with what was appended.
func TestFieldValues(t *testing.T) {
	add, swap := FetchAdd(5, 1<<31), CmpSwap(1, 2, 3, 4)
	add.ID, add.STag, add.TO = 1, 0x1234, 64
	read := ReadRequest{SinkSTag: 1, SinkTO: 2, Size: 3, SrcSTag: 4, SrcTO: 5}
	resp := AtomicResponse{ID: 6, Value: 7}
	for _, c := range []struct {
		op      Opcode
		header  []byte
		text    string
		at      int // of a field
		name    string
		key     string
		shown   string
		encoded string
	}{
		{OpReadRequest, read.Append(nil), "size 3 source 0x00000004 0x5 sink 0x00000001 0x2", 2,
			"RDMARDSZ", "size", "3", "3"},
		{OpAtomicRequest, add.Append(nil), add.String(), 0, "AOpCode", "operation", "FetchAdd", `"FetchAdd"`},
		{OpAtomicRequest, add.Append(nil), add.String(), 5, "Add Mask", "mask", "0x80000000", "2147483648"},
		{OpAtomicRequest, swap.Append(nil), swap.String(), 4, "Swap Data", "data", "0x3", "3"},
		{OpAtomicResponse, resp.Append(nil), "original 0x7, of request 6", 1, "Original Value", "value", "0x7", "7"},
		{OpImmediateDataSE, AppendImmediateData(nil, 8), "data 0x8", 0, "Immediate Data", "", "0x8", "8"},
	} {
		f := c.op.Fields(c.header)[c.at]
		if encoded, _ := json.Marshal(f.Value); f.Name != c.name || f.Key != c.key || f.Text != c.shown ||
			string(encoded) != c.encoded {
			t.Errorf("%v: %+v, %s", c.op, f, encoded)
		}
		if got := c.op.Describe(c.header); got != c.text {
			t.Errorf("%v: %q, want %q", c.op, got, c.text)
		}
	}
}

// TestFieldsAsText describes a header whose opcode has no words of its own.
func TestFieldsAsText(t *testing.T) {
	e := *OpAtomicResponse.entry()
	e.text = nil
	resp := AtomicResponse{ID: 6, Value: 7}
	if got := e.describe(resp.Append(nil)); got != "id 6 value 0x7" {
		t.Error(got)
	}
}
