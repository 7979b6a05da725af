package ulp_test

import (
	"testing"

	"github.com/goiwarp/iwarp/internal/ulp"
)

// BenchmarkConn explains a call of NFS with its chunk, the Write to that, and the reply; and the same on a connection of
// which nothing is known, before it is given up.
func BenchmarkConn(b *testing.B) {
	call, reply := vector(b, "rpc-call-read"), vector(b, "rpc-reply-read")
	a := ulp.Access{STag: 0xaabb0001, TO: 0x7f0000001000, Length: 1400, Data: make([]byte, 1400)}
	b.ReportAllocs()
	c := new(ulp.Group[int]).New(20049, [2][]byte{})
	for b.Loop() {
		c.Send(0, 0, ulp.Message{Data: call, Length: len(call)})
		c.Access(0, 1, a)
		c.Send(0, 1, ulp.Message{Data: reply, Length: len(reply)})
	}
}
