package engine

import (
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/rdmap"
)

// Where a segment is that we send, or could not send, is told in the measure of the LLP: bytes
// of the stream, or segments.
func TestPlaceOfWhatIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		layer func(*setup)
		want  []uint64 // where the Sends and the Terminate are
	}{
		"stream":   {func(*setup) {}, []uint64{0, 24, 48}},
		"messages": {messages, []uint64{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var places []uint64
			p := initiator(t, c.layer, func(s *setup) { s.Trace = func(x Trace) { places = append(places, x.Offset) } })
			p.post(work(1, OpSend))
			p.post(work(2, OpSend))
			p.post(work(3, OpSend, SGE{Length: 4})) // from nowhere
			p.want(send(1, nil), send(2, nil), terminate(rdmap.CodeLocalCatastrophic))
			if f := p.wantCause(rdmap.CodeLocalCatastrophic, false); f.Offset != c.want[2] ||
				!slices.Equal(places, c.want) {
				t.Errorf("failed at %d, sent at %v; want %v", f.Offset, places, c.want)
			}
		})
	}
}
