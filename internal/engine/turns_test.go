package engine

import (
	"testing"

	"github.com/goiwarp/iwarp/rdmap"
)

// Send Queue and Read Responses take turns, message by message.
func TestTurns(t *testing.T) {
	p := initiator(t)
	r := p.region(numbered(3000), remoteAll)
	for id := range uint64(3) {
		p.post(work(id, OpSend, all(r, 2000)))
		p.send(request(uint32(id)+1, rdmap.ReadRequest{SinkSTag: 5, Size: 2000, SrcSTag: r.STag()}))
	}
	for i := range 6 {
		want := rdmap.OpSend
		if i%2 == 1 {
			want = rdmap.OpReadResponse
		}
		for range 2 { // segments
			if f, ok := p.next(); !ok || rdmap.OpcodeOf(&f.H) != want {
				t.Fatalf("message %d is of opcode %v", i, rdmap.OpcodeOf(&f.H))
			}
		}
	}
	p.wantNothing()
}
