package iwarp_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/goiwarp/iwarp"
)

// Memory that a request has registered belongs to the program alone again when it is invalid: nothing keeps it from the garbage collector, however
// the request ended and whatever the QP does afterwards.
func TestRegisteredMemoryIsLetGo(t *testing.T) {
	r := newOpRig(t)
	for name, end := range map[string]func(mr *iwarp.MR){
		"invalidated":  func(mr *iwarp.MR) { r.done(&iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Target: mr}) },
		"deregistered": func(mr *iwarp.MR) { must(r, mr.Deregister()) },
	} {
		for _, pieces := range []int{1, 2, 100} {
			mr := r.ini.fast(pieces, 100*opOctets)
			list, first := registerable(pieces)
			r.done(&iwarp.SendWR{Op: iwarp.OpFastRegister, Target: mr, Register: &iwarp.Registration{Memory: list, Access: iwarp.LocalWrite}})
			if runtime.GC(); first.Value() == nil {
				t.Fatalf("%s, %d pieces: gone while it is registered", name, pieces)
			}
			clear(list)
			end(mr)
			if runtime.GC(); first.Value() != nil {
				t.Errorf("%s, %d pieces: it is kept", name, pieces)
			}
		}
	}
}

// registerable returns memory in pieces, and by what to tell whether the first is there still.
func registerable(pieces int) ([][]byte, weak.Pointer[byte]) {
	list := make([][]byte, pieces)
	for i := range list {
		list[i] = make([]byte, opOctets)
	}
	return list, weak.Make(&list[0][0])
}
