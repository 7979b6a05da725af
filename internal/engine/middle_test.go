package engine

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// Of two QPs the first takes and builds the middle of a message as middle.go has it. The other has a Trace, with
// which every segment goes by itself. Nobody else may notice a difference.
type twins [2]*twin

type twin struct {
	*peer
	memory  [2][]byte
	regions [2]*memory.Region
	coming  []byte // FPDUs that it has yet to be given
	traced  int
	asks    uint32 // MSN of the peer's next Read Request
}

const twinMemory = 150 << 10 // of which the locks are several

func newTwins(t rapid.TB, change ...func(*setup)) (c twins) {
	for i := range c {
		n := &twin{asks: 1}
		n.peer = initiator(t, append(change, func(s *setup) {
			if i == 1 {
				s.Trace = func(Trace) { n.traced++ }
			}
		})...)
		for k := range n.memory {
			n.memory[k] = bytes.Repeat(numbered(250), twinMemory/250+1)[:twinMemory]
		}
		n.regions = [2]*memory.Region{n.region(n.memory[0], remoteAll|memory.RemoteInvalidate), n.inPieces(n.memory[1])}
		c[i] = n
	}
	return c
}

// inPieces is a region of memory that is registered in several pieces.
func (n *twin) inPieces(b []byte) *memory.Region {
	n.Helper()
	r, err := n.table.Allocate(testPD, memory.Most{Pieces: 4, Bytes: len(b)})
	if err != nil {
		n.Fatal(err)
	}
	g := memory.Registration{Memory: [][]byte{b[:4000], b[4000:4007], b[4007:70001], b[70001:]},
		Access: remoteAll | memory.RemoteInvalidate}
	if f := n.Machine.cfg.Memory.FastRegister(r, &g); f != memory.None {
		n.Fatal(f)
	}
	return r
}

// do has both do the same.
func (c twins) do(f func(*twin)) {
	for _, n := range c {
		f(n)
	}
}

// alike expects that nothing distinguishes the two.
func (c twins) alike(t rapid.TB) {
	t.Helper()
	a, b := c[0], c[1]
	if a.traced != 0 || b.traced == 0 {
		t.Fatalf("%d and %d segments are traced", a.traced, b.traced)
	}
	for k := range a.memory {
		if !bytes.Equal(a.memory[k], b.memory[k]) {
			t.Fatalf("region %d differs", k)
		}
	}
	c.do(func(n *twin) {
		for i := range n.done {
			n.done[i].Invalidated = 0 // an STag is another one in each
		}
	})
	if diff := cmp.Diff(b.Machine.Stats(), a.Machine.Stats()); diff != "" {
		t.Fatalf("counters (-by itself +in the middle):\n%s", diff)
	}
	if diff := cmp.Diff(b.done, a.done); diff != "" || a.Machine.State() != b.Machine.State() ||
		!cmp.Equal(a.causeAt(), b.causeAt()) {
		t.Fatalf("%v by %+v, and %v by %+v; completions:\n%s",
			b.Machine.State(), b.causeAt(), a.Machine.State(), a.causeAt(), diff)
	}
}

// causeAt is why and where the connection has ended.
func (n *twin) causeAt() (at [2]uint64) {
	if f := (*Failure)(nil); errors.As(n.Machine.Cause(), &f) {
		at = [2]uint64{uint64(f.Code), f.Offset}
	}
	return at
}

// comes has an FPDU come with the others.
func (n *twin) comes(f fpdu) { n.coming = n.w.Append(n.coming, f.ulpdu()) }

// arrives has everything come that is on its way, so many bytes at once.
func (n *twin) arrives(split int) {
	n.split = split
	n.sendBytes(n.coming)
	n.coming = nil
	n.output()
}

// A line of segments that mostly follow each other in a region.
type line struct {
	k  int
	to uint64
}

// segment draws the next of them: most are what one expects, and any may be something else.
func (l *line) segment(t *rapid.T, op rdmap.Opcode) func(*twin) {
	switch rapid.IntRange(0, 24).Draw(t, "oddity") {
	case 0:
		l.k = 1 - l.k
	case 1:
		l.to += uint64(rapid.IntRange(0, 3).Draw(t, "jump")) - 1
	case 2:
		l.to = rapid.SampledFrom([]uint64{0, 64<<10 - 2000, twinMemory - 2000, 1<<64 - 1000}).Draw(t, "far")
	}
	p := numbered(rapid.SampledFrom([]int{0, 1, 8, 200, 1430, 1430, 1430}).Draw(t, "bytes"))
	last := rapid.IntRange(0, 9).Draw(t, "last") == 0
	k, to := l.k, l.to
	l.to += uint64(len(p))
	return func(n *twin) {
		f := message(op, p)
		f.H.Last, f.H.STag, f.H.TO = last, n.regions[k].STag(), to
		n.comes(f)
	}
}

// goOn has one more segment of a Write come that goes on as expected.
func (l *line) goOn(n *twin) {
	n.comes(write(n.regions[l.k].STag(), l.to, numbered(1430)).more())
	n.arrives(0)
}

// becomesReady posts what a Send waits for, if it does.
func (n *twin) becomesReady() {
	if n.Machine.State() == RTS {
		n.receive(1)
		n.Machine.Ready(*n.now)
		n.collectOutputs()
	}
}

// Segments of Writes and Read Responses, right and wrong ones, in any split, with invalidations in between.
//
// Proves D24, D39, D40, D45, P28, P53: in the middle of a message each segment is placed, or refused, as at its beginning.
func TestMiddleArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		marked, waits := rapid.Bool().Draw(t, "markers"), rapid.Bool().Draw(t, "receives come late")
		c := newTwins(t, func(s *setup) {
			if s.MarkersReceive = marked; waits {
				s.RNR = RNR{Bytes: 1 << 20, Messages: 1 << 10}
			}
		})
		c.do(func(n *twin) {
			if !waits {
				n.receive(1)
			}
			r := work(2, OpRead, SGE{Region: n.regions[0], Length: 100 << 10})
			r.RemoteSTag = 7
			n.post(r)
			n.output()
		})
		writes, answers := line{}, line{}
		for range rapid.IntRange(1, 60).Draw(t, "segments") {
			var step func(*twin)
			switch rapid.IntRange(0, 40).Draw(t, "what") {
			default:
				step = writes.segment(t, rdmap.OpWrite)
			case 0:
				step = func(n *twin) { n.comes(sendAs(rdmap.OpSendInvalidate, 1, n.regions[0].STag(), nil)) }
			case 1:
				step = func(n *twin) { n.Machine.cfg.Memory.LocalInvalidate(n.regions[1]) }
			case 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16:
				step = answers.segment(t, rdmap.OpReadResponse)
			case 17, 18, 19:
				split := rapid.SampledFrom([]int{0, 0, 1 << 10, 10000}).Draw(t, "split")
				step = func(n *twin) { n.arrives(split) }
			}
			c.do(step)
		}
		c.do(func(n *twin) { n.arrives(0) })
		if waits {
			c.do(func(n *twin) { n.becomesReady(); writes.goOn(n) })
		}
		c.do(func(n *twin) { n.comes(write(1, 0, nil)); n.arrives(0) }) // something is traced in any case
		c.alike(t)
	})
}

// Sends, Writes and Read Responses are built of the same bytes, and go in the same writes.
//
// Proves D18, D19, D20, F01, F03, F04, S01: cut at the MULPDU, and framed.
func TestMiddleIsSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		emss, marked, crc := rapid.SampledFrom([]int{0, 536, 1448, 8948}).Draw(t, "EMSS"),
			rapid.Bool().Draw(t, "markers"), rapid.Bool().Draw(t, "CRC")
		c := newTwins(t, func(s *setup) {
			if s.MarkersSend, s.CRC = marked, crc; emss > 0 {
				aligned(emss, marked)(s)
			}
		})
		posts := rapid.IntRange(1, 4).Draw(t, "posts")
		for id := range posts {
			op := rapid.SampledFrom([]Op{OpSend, OpWrite, OpWriteImm, OpRead}).Draw(t, "op")
			var sgl [3][3]int
			for i := range sgl {
				sgl[i] = [3]int{rapid.IntRange(0, 1).Draw(t, "region"), rapid.IntRange(0, 1000).Draw(t, "offset"),
					rapid.SampledFrom([]int{0, 5, 3000, 70000, 149000}).Draw(t, "length")}
			}
			c.do(func(n *twin) { n.posts(id, op, sgl) })
		}
		late := rapid.IntRange(0, 6).Draw(t, "invalidated")
		for step := range 40 {
			if step == late {
				c.do(func(n *twin) { n.Machine.cfg.Memory.LocalInvalidate(n.regions[1]) })
			}
			window := rapid.SampledFrom([]int{100, 20000, 80000}).Draw(t, "window")
			c.do(func(n *twin) { n.window = window })
			a, b := c[0].output(), c[1].output()
			if n := max(len(b)-120, 0); len(a) != len(b) || !bytes.Equal(a[:n], b[:n]) ||
				c[0].Machine.State() == RTS && !bytes.Equal(a, b) {
				t.Fatalf("step %d: other bytes", step) // but for a Terminate, which has an STag
			}
		}
		c.alike(t)
	})
}

// posts posts a request, of whose elements a Write or Send has all; in place of a Read of its own, the peer asks for
// one.
func (n *twin) posts(id int, op Op, sgl [3][3]int) {
	if op == OpRead {
		e := sgl[0]
		n.comes(request(n.asks, rdmap.ReadRequest{SinkSTag: 9, SinkTO: 5, Size: uint32(e[2]),
			SrcSTag: n.regions[e[0]].STag(), SrcTO: uint64(e[1])}))
		n.asks++
		n.input(n.coming)
		n.coming = nil
		return
	}
	w := work(uint64(id), op, n.elements(sgl[:])...)
	w.RemoteSTag, w.RemoteTO = 3, 1<<33
	n.post(w)
}

// elements makes elements of regions' numbers, offsets and lengths.
func (n *twin) elements(sgl [][3]int) (list []SGE) {
	for _, e := range sgl {
		r := n.regions[e[0]]
		list = append(list, SGE{Region: r, Offset: e[1], Length: e[2], Term: r.Term()})
	}
	return list
}

// A Read Response that goes on for longer than the Read, or ends before it, is refused where it does that.
//
// Proves P28: with the segments before it in one piece, too.
func TestMiddleIsTooLong(t *testing.T) {
	for _, c := range []struct {
		bytes int
		last  bool
		code  rdmap.Code
	}{{999, true, rdmap.CodeCatastrophicStream}, {1001, false, rdmap.CodeDDPBaseOrBounds}} {
		n := newTwins(t)[0]
		r := work(2, OpRead, SGE{Region: n.regions[0], Length: 3000})
		n.post(r)
		n.output()
		stag := n.regions[0].STag()
		for at := 0; at < 2000; at += 500 {
			n.comes(response(stag, uint64(at), make([]byte, 500)).more())
		}
		end := response(stag, 2000, make([]byte, c.bytes))
		end.H.Last = c.last
		n.comes(end)
		n.arrives(0)
		if f := n.wantCause(c.code, false); f.Offset != 4*520 {
			t.Errorf("%d bytes: refused at %d", c.bytes, f.Offset)
		}
		if !bytes.Equal(n.memory[0][2000:2250], numbered(250)) || n.memory[0][1999] != 0 {
			t.Error("placed after the refusal, or not before it")
		}
	}
}

// Between two pieces of a message its memory is anybody's: it can be taken away, and then nothing more of the message
// is placed.
//
// Proves D39, Z06: the segment that comes next is refused.
func TestMiddleLetsGo(t *testing.T) {
	n := newTwins(t)[0]
	r := n.regions[0]
	for at := range 3 {
		n.comes(write(r.STag(), uint64(at*500), make([]byte, 500)).more())
	}
	n.arrives(0)
	if f := n.table.Revoke(r); f != memory.None {
		t.Fatal(f)
	}
	n.comes(write(r.STag(), 1500, make([]byte, 500)).more())
	n.arrives(0)
	n.wantCause(rdmap.CodeDDPInvalidSTag, false)
	if n.memory[0][1499] != 0 || !bytes.Equal(n.memory[0][1500:1750], numbered(250)) {
		t.Error("placed after it was revoked, or not before that")
	}
}

// A message of several segments takes fewer steps than it has: the middle of it goes with the segment before, as far as
// the element that it lies in. Where each is traced, each is a step.
func TestMiddleIsOneStep(t *testing.T) {
	const whole = testMULPDU - ddp.TaggedHeaderLen
	for i, n := range newTwins(t) {
		for _, m := range []struct {
			op    Op
			sgl   [3][3]int
			steps [2][]uint64 // how many segments each builds
		}{
			{OpWrite, [3][3]int{{0, 0, 3 * whole}, {0, 5, 2*whole + 9}}, [2][]uint64{{3, 2, 1}, {1, 1, 1, 1, 1, 1}}},
			{OpRead, [3][3]int{{0, 5, 3*whole + 9}}, [2][]uint64{{3, 1}, {1, 1, 1, 1}}},
			{OpRead, [3][3]int{{1, 5, 3*whole + 9}}, [2][]uint64{{2, 1, 1}, {1, 1, 1, 1}}},
			{OpRead, [3][3]int{{1, 70001 - 3*whole, 5*whole + 9}}, [2][]uint64{{5, 1}, {1, 1, 1, 1, 1, 1}}},
		} {
			n.g.reset(0, 0)
			n.posts(1, m.op, m.sgl)
			var got []uint64
			for before := n.Machine.Stats().SentFPDUs; n.Machine.nextFPDU(n.g); before = n.Machine.Stats().SentFPDUs {
				got = append(got, n.Machine.Stats().SentFPDUs-before)
			}
			if !slices.Equal(got, m.steps[i]) {
				t.Errorf("%v, traced: %t: steps of %v segments, want %v", m.op, i == 1, got, m.steps[i])
			}
		}
	}
}

// Segments that follow the first one are not judged by themselves, unless each is traced.
func TestMiddleGoesOn(t *testing.T) {
	for i, n := range newTwins(t) {
		r := work(2, OpRead, SGE{Region: n.regions[0], Length: 3000})
		n.post(r)
		n.output()
		for _, segment := range []func(stag uint32, to uint64, p []byte) fpdu{write, response} {
			stag := n.regions[0].STag()
			n.send(segment(stag, 0, make([]byte, 500)).more())
			for at := uint64(500); at < 2500; at += 500 {
				if got := n.Machine.goesOn(segment(stag, at, make([]byte, 500)).more().ulpdu()); got != (i == 0) {
					t.Errorf("traced: %t: the segment at %d goes on: %t", i == 1, at, got)
				}
			}
			n.Machine.placing.End()
			if end := n.memory[0][2499]; (end == 0) != (i == 0) {
				t.Errorf("traced: %t: the last byte is %d", i == 1, end)
			}
			copy(n.memory[0], bytes.Repeat(numbered(250), 10))
		}
	}
}
