package rdmap_test

import (
	"testing"

	"github.com/goiwarp/iwarp/rdmap"
)

// TestNames reads back the names of opcodes and codes, also of those that have no name of their own.
func TestNames(t *testing.T) {
	for want := range rdmap.Opcode(16) {
		var got rdmap.Opcode
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Errorf("%v: %v, %v", want, got, err)
		}
	}
	for _, want := range []rdmap.Code{0, 0x0100, 0x1203, rdmap.CodeMPACRC, 0x7fff} {
		var got rdmap.Code
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Errorf("%v: %v, %v", want, got, err)
		}
	}
	var bare rdmap.Code
	if err := bare.UnmarshalText([]byte("(0x0204)")); err != nil || bare != 0x0204 {
		t.Errorf("a number alone: %v, %v", bare, err)
	}
	for _, bad := range []string{"", "nothing", "(0x)", "a (0x10000)", "a (0x12"} {
		if new(rdmap.Code).UnmarshalText([]byte(bad)) == nil || new(rdmap.Opcode).UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestWithArticle: a message type has the article that it is read with.
func TestWithArticle(t *testing.T) {
	for op, want := range map[rdmap.Opcode]string{
		rdmap.OpWrite: "an RDMA Write", rdmap.OpSend: "a Send", rdmap.OpTerminate: "a Terminate",
		rdmap.OpImmediateData: "an Immediate Data", rdmap.OpAtomicRequest: "an Atomic Request", 15: "an opcode 15",
	} {
		if got := op.WithArticle(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
