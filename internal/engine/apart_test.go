package engine

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/rdmap"
)

// longSegments are segments of any kind that are long enough to have their payload stay
// between the markers, where that is to be placed at all; most are wrong.
func longSegments(stag uint32) map[string]fpdu {
	p := numbered(9000)
	return map[string]fpdu{
		"Write":                  write(stag, 100, p),
		"Write out of bounds":    write(stag, 2000, p),
		"Write to nothing":       write(0, 0, p),
		"Send":                   send(1, p),
		"Send with Invalidate":   sendAs(rdmap.OpSendInvalidate, 1, stag, p),
		"Send that is too long":  send(1, numbered(9500)),
		"Send out of turn":       send(2, p),
		"Read Response, unasked": response(stag, 0, p),
		"Read Request, too long": message(rdmap.OpReadRequest, p),
		"Terminate, too long":    message(rdmap.OpTerminate, p),
		"Terminate with long headers": message(rdmap.OpTerminate,
			append((&rdmap.Terminate{Code: rdmap.CodeDDPInvalidSTag}).Append(nil), p...)),
		"opcode without a message": send(1, p).with(func(h *ddp.Header) { h.RsvdULP |= 15 }),
		"another version of DDP":   send(1, p).with(func(h *ddp.Header) { h.Version = 0 }),
		"tagged Send":              write(stag, 0, p).with(func(h *ddp.Header) { h.RsvdULP = send(1, nil).H.RsvdULP }),
	}
}

// What a peer sends is taken the same with markers as without, at any distance from one: its
// bytes are placed, or the same Terminate is the answer.
//
// Proves F12, D24.
func TestLongBetweenMarkers(t *testing.T) {
	outcome := func(name string, marked bool, before int) (what []any) {
		p := responder(t, func(s *setup) { s.MarkersReceive = marked })
		buf, received := make([]byte, 10000), [2][]byte{make([]byte, 4000), make([]byte, 5010)}
		r := p.region(buf, remoteAll)
		p.receive(1, all(p.region(received[0], remoteAll), 4000), all(p.region(received[1], remoteAll), 5010))
		p.send(write(r.STag(), 9400, make([]byte, before)))
		p.send(longSegments(r.STag())[name])
		stag := binary.BigEndian.AppendUint32(nil, r.STag()) // a random number
		for f, ok := p.next(); ok; f, ok = p.next() {
			what = append(what, f.H, bytes.ReplaceAll(f.Payload, stag, nil))
		}
		for i := range p.done {
			p.done[i].Invalidated = 0
		}
		return append(what, p.Machine.State(), p.done, buf, received)
	}
	for name := range longSegments(1) {
		want := outcome(name, false, 0)
		for before := 448; before < 512; before += 4 { // so that a marker stands everywhere in the header
			if got := outcome(name, true, before); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s after %d bytes (-without markers +with):\n%s", name, before, cmp.Diff(want, got))
			}
		}
	}
}
