package engine

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// A talk is Sends whose segments mostly follow each other. Any message but the first may have another opcode.
type talk struct {
	msn, mo uint32
	op      rdmap.Opcode
}

// segment draws the next of them.
func (l *talk) segment(t *rapid.T) func(*twin) {
	if l.mo == 0 {
		l.op = rapid.SampledFrom([]rdmap.Opcode{rdmap.OpSend, rdmap.OpSendSE, rdmap.OpSendInvalidate}).Draw(t, "Send")
	}
	f := sendAs(l.op, l.msn, 0, numbered(rapid.SampledFrom([]int{0, 1, 4, 8, 200, 1430, 1430, 1430, 1430}).Draw(t,
		"bytes"))).at(int(l.mo))
	f.H.Last = rapid.IntRange(0, 12).Draw(t, "last") == 0
	switch rapid.IntRange(0, 60).Draw(t, "oddity") {
	case 0:
		f.H.MO += uint32(rapid.SampledFrom([]int{-1, 0, 1, 2, 1430, 2860}).Draw(t, "jump"))
		if rapid.Bool().Draw(t, "from here on") {
			l.mo = f.H.MO
		}
	case 1:
		f.H.MSN++
	case 2:
		f.H.RsvdULP ^= 3
	}
	if l.mo += uint32(len(f.Payload)); f.H.Last {
		l.mo, l.msn = 0, l.msn+1
	}
	return func(n *twin) {
		if l.op == rdmap.OpSendInvalidate {
			f.H.ULP = n.regions[1].STag()
		}
		n.comes(f)
	}
}

// Segments of Sends, in receives of elements as they come, right and wrong ones, in any split, with segments of Writes
// and invalidations in between.
//
// Proves D27, D37, D38, P28, P50: in the middle of a message each segment is placed, or refused, as at its beginning.
func TestMiddleOfSendsArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marked, prefixed := rapid.Bool().Draw(t, "markers"), rapid.Bool().Draw(t, "prefix")
		c := newTwins(t, func(s *setup) { s.MarkersReceive = marked })
		c.do(func(n *twin) { n.Machine.SetPrefix(prefixed) })
		for id := range rapid.IntRange(1, 4).Draw(t, "receives") {
			var sgl [][3]int
			for range rapid.IntRange(0, 6).Draw(t, "elements") {
				sgl = append(sgl, [3]int{rapid.IntRange(0, 1).Draw(t, "region"),
					rapid.IntRange(0, 70000).Draw(t, "offset"),
					rapid.SampledFrom([]int{0, 5, 1430, 2860, 9000, 70000}).Draw(t, "length")})
			}
			c.do(func(n *twin) { n.receive(uint64(id), n.elements(sgl)...) })
		}
		sends, writes := talk{msn: 1}, line{}
		for range rapid.IntRange(1, 60).Draw(t, "segments") {
			var step func(*twin)
			switch rapid.IntRange(0, 40).Draw(t, "what") {
			default:
				step = sends.segment(t)
			case 0:
				step = func(n *twin) { n.Machine.cfg.Memory.LocalInvalidate(n.regions[1]) }
			case 1, 2:
				step = writes.segment(t, rdmap.OpWrite)
			case 3, 4, 5:
				split := rapid.SampledFrom([]int{0, 0, 1 << 10, 10000}).Draw(t, "split")
				step = func(n *twin) { n.arrives(split) }
			}
			c.do(step)
		}
		c.do(func(n *twin) { n.arrives(0); n.comes(write(1, 0, nil)); n.arrives(0) })
		c.alike(t)
	})
}

// Segments of Sends that follow the first one are not judged by themselves, as far as they end in the element of the
// receive in which they begin, and in the receive, unless each is traced.
func TestMiddleOfSendsGoesOn(t *testing.T) {
	for i, n := range newTwins(t) {
		n.receive(1, n.elements([][3]int{{0, 100, 1500}, {0, 5000, 1200}})...)
		n.send(send(1, make([]byte, 500)).more())
		for _, c := range []struct {
			at, bytes int
			want      bool
		}{
			{500, 500, true},
			{1000, 501, false}, // one byte of it is for the second element
			{1000, 500, true},
			{1500, 700, true},
			{2200, 501, false}, // the receive ends
			{2200, 500, true},
		} {
			if got := n.Machine.goesOn(send(1, make([]byte, c.bytes)).at(c.at).more().ulpdu()); got != (c.want &&
				i == 0) {
				t.Errorf("traced: %t: %d bytes at %d go on: %t", i == 1, c.bytes, c.at, got)
			}
		}
		// What the elements hold more than the longest message is no place for one.
		n.Machine.capacity = 2600
		if n.Machine.sequel.After(&ddp.Segment{Header: send(1, nil).at(2200).more().H, Raw: send(1, nil).more().ulpdu(),
			Payload: make([]byte, 300)}); n.Machine.goesOn(send(1, make([]byte, 101)).at(2500).more().ulpdu()) {
			t.Errorf("traced: %t: a message goes on past its greatest length", i == 1)
		}
		n.Machine.placing.End()
		if m := n.memory[0]; i == 0 && (!bytes.Equal(m[100:1600], make([]byte, 1500)) ||
			!bytes.Equal(m[5000:6200], make([]byte, 1200)) || m[1600] == 0 || m[6200] == 0) {
			t.Error("they are elsewhere")
		}
	}
}

// Segments that follow one which came out of order go by themselves: what is missing before them may yet come.
//
// Proves D27: the message is delivered when all of it has come.
func TestMiddleOfSendsOutOfOrder(t *testing.T) {
	c := newTwins(t)
	c.do(func(n *twin) {
		n.receive(1, n.elements([][3]int{{0, 0, 3000}})...)
		for _, at := range []int{500, 1000, 1500, 0, 2000} {
			f := send(1, make([]byte, 500)).at(at)
			f.H.Last = at == 2000
			n.comes(f)
		}
		n.arrives(0)
		if len(n.done) != 1 || n.done[0].Length != 2500 {
			t.Errorf("completed %+v", n.done)
		}
	})
	c.alike(t)
}

// A segment that follows one which has filled a gap is where others have come: it is refused, and no byte that has not
// come is delivered.
//
// Proves D27, D38: each byte of a message is placed once, and all are.
func TestMiddleOfSendsFillsGap(t *testing.T) {
	c := newTwins(t)
	c.do(func(n *twin) {
		n.receive(1, n.elements([][3]int{{0, 0, 3000}})...)
		for _, at := range []int{0, 1000, 500, 1000} {
			n.comes(send(1, make([]byte, 500)).at(at).more())
		}
		n.comes(send(1, make([]byte, 500)).at(2000))
		n.arrives(0)
		n.wantCause(rdmap.CodeDDPInvalidMO, false)
	})
	c.alike(t)
}

// Elements of receives are not judged when they are posted: one may have no region, or be said to be longer than any
// memory. A message is placed in what there is, and refused where there is nothing.
func TestMiddleOfSendsMeetsAnyElement(t *testing.T) {
	for _, second := range []func(*twin) SGE{
		func(*twin) SGE { return SGE{Length: 100000} },
		func(n *twin) SGE { return SGE{Region: n.regions[1], Offset: 8, Length: math.MaxInt} },
		func(n *twin) SGE { return SGE{Region: n.regions[1], Offset: math.MaxInt, Length: math.MaxInt} },
	} {
		c := newTwins(t)
		c.do(func(n *twin) {
			n.receive(1, SGE{Region: n.regions[0], Length: 3000}, second(n))
			for at := 0; at < twinMemory+5000; at += 1000 {
				n.comes(send(1, make([]byte, 1000)).at(at).more())
			}
			n.arrives(0)
			n.wantCause(rdmap.CodeLocalCatastrophic, false)
			if f := n.table.Revoke(n.regions[1]); f != memory.None { // which takes every lock
				n.Error(f)
			}
		})
		c.alike(t)
	}
}
