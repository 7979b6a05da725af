package engine

import (
	"bytes"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// What is sent is what the memory held when Output read it, with the CRC of that,
// whatever becomes of the memory before the LLP has taken the bytes: it is
// deregistered and used for something else, or another peer writes to it.
//
// Proves Z13, Z14, F04.
func TestReadOnce(t *testing.T) {
	for name, change := range map[string]func(p *peer, r *memory.Region, buf []byte){
		"deregistered and used again": func(p *peer, r *memory.Region, buf []byte) {
			p.table.Revoke(r)
			clear(buf)
		},
		"written to by another peer": func(p *peer, r *memory.Region, buf []byte) {
			other := memory.Domain{Table: p.table, PD: testPD, Stream: testStream + 1}
			if f := other.Place(r.STag(), 0, layout.Plain(make([]byte, len(buf)))); f != memory.None {
				t.Fatal(f)
			}
		},
	} {
		for _, marked := range []bool{false, true} {
			for _, n := range []int{1, 100, 1400, 40000} {
				for op, begin := range map[rdmap.Opcode]func(p *peer, r *memory.Region){
					rdmap.OpSend:  func(p *peer, r *memory.Region) { p.post(work(1, OpSend, all(r, n))) },
					rdmap.OpWrite: func(p *peer, r *memory.Region) { p.post(work(1, OpWrite, all(r, n))) },
					rdmap.OpReadResponse: func(p *peer,
						r *memory.Region) {
						p.send(request(1, readOf(r.STag(), uint32(n))))
					},
				} {
					p := initiator(t, func(s *setup) { s.MULPDU, s.MarkersSend = 50000, marked })
					buf := numbered(n)
					r := p.region(buf, remoteAll)
					begin(p, r)
					v := p.Machine.Output(*p.now, p.g)
					change(p, r, buf)
					b := slices.Concat(v...)
					rx := mpa.NewReader(marked, true)
					f, used, err := rx.Next(b)
					if err != nil || used != len(b) {
						t.Fatalf("%s, %v of %d bytes, markers %t: %v, %d of %d bytes",
							name, op, n, marked, err, used, len(b))
					}
					if !bytes.HasSuffix(f.ULPDU, numbered(n)) {
						t.Fatalf("%s, %v of %d bytes, markers %t: other bytes than were there", name, op, n, marked)
					}
				}
			}
		}
	}
}

// A Gather is all that a connection holds of bytes on their way, however much is
// posted and however long the peer takes them.
func TestGatherIsBounded(t *testing.T) {
	p := initiator(t, func(s *setup) { s.MULPDU = layout.MaxMULPDU })
	r := p.region(make([]byte, 10<<20), 0)
	for id := range uint64(8) {
		p.post(work(id, OpWrite, all(r, 10<<20)))
	}
	for range 20 {
		n := len(slices.Concat(p.Machine.Output(*p.now, p.g)...))
		if n < gatherBytes || n > GatherArena || cap(p.g.arena) != GatherArena {
			t.Fatalf("%d bytes in an arena of %d", n, cap(p.g.arena))
		}
		p.Machine.Sent(*p.now, p.g, 1) // the peer takes one byte
		if got := len(slices.Concat(p.Machine.Output(*p.now, p.g)...)); got != n-1 {
			t.Fatalf("%d bytes left of %d", got, n)
		}
		p.Machine.Sent(*p.now, p.g, n-1)
	}
}
