package engine

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/mpa"
)

// streamOf puts the segments of a plot on a stream, with Writes of many sizes between them, so that there are
// markers. damage, if it is not negative, is a byte to be spoilt.
func (x *scene) streamOf(p *plot, fill []int, damage int) []byte {
	filler := x.region(make([]byte, 2000), remoteAll)
	w := mpa.NewWriter(true, true)
	var b []byte
	for i, u := range p.ulpdus {
		b = w.Append(b, write(filler.STag(), 0, numbered(fill[i])).ulpdu())
		b = w.Append(b, x.translate(p, u))
	}
	if damage >= 0 {
		b[damage%len(b)] ^= 0x10
	}
	return b
}

// unfold has a stream arrive: pieces of it are shown, and others come in order.
func (x *scene) unfold(t *rapid.T, p *plot, stream []byte) {
	piece := rapid.IntRange(1, 1500)
	for told := 0; told < len(stream); {
		if rapid.Bool().Draw(t, "show") {
			from := rapid.IntRange(0, len(stream)-1).Draw(t, "from")
			(&showing{peer: x.peer, stream: stream}).show(from, min(from+piece.Draw(t, "bytes"), len(stream)))
		} else {
			n := min(told+piece.Draw(t, "told"), len(stream))
			x.input(stream[told:n])
			told = n
		}
		x.use(p)
	}
	x.fin()
}

// Whatever of a stream is shown before it comes in order, errors of all layers in it: what is sent,
// completed, told and counted is the same as without, and so is the memory, but for what nobody was
// told of.
//
// Proves D26, D27, P31, P34, P39, P49, R04, R06.
func TestShownInAnyOrder(t *testing.T) {
	placed, damaged := uint64(0), 0
	arrive := func(t *rapid.T) {
		a := newScene(t, aware)
		p := a.draw(t)
		fill := rapid.SliceOfN(rapid.IntRange(0, 1200), len(p.ulpdus), len(p.ulpdus)).Draw(t, "fill")
		damage := max(-1, rapid.IntRange(-9000, 9000).Draw(t, "damage"))
		a.input(a.streamOf(p, fill, damage))
		a.use(p)
		a.fin()
		b := newScene(t, aware)
		b.unfold(t, p, b.streamOf(p, fill, damage))
		placed += b.Machine.Stats().Ahead.PlacedBytes
		inOrder, any := a.verdict(), b.verdict()
		if inOrder.State != Idle {
			damaged++
			a.forgive(int(inOrder.Stats.RecvFPDUs)/2, p, inOrder.Memory, any.Memory)
		}
		if diff := cmp.Diff(inOrder, any); diff != "" {
			t.Fatalf("in order, and shown before:\n%s", diff)
		}
	}
	// a few inputs may have no error in them, by chance
	for round := 0; round < 20 && (placed == 0 || damaged == 0); round++ {
		rapid.Check(t, arrive)
	}
	if placed == 0 || damaged == 0 {
		t.Errorf("%d bytes were placed ahead, %d streams had errors", placed, damaged)
	}
}

// Bytes that are shown at any place, of the stream or of another, between bytes of the stream: no
// panic, nothing outside of the regions changes or is sent, and what is held is bounded.
//
// Proves Z12, Z31, D42.
func FuzzInputAhead(f *testing.F) {
	for _, s := range fuzzSeeds() {
		for mode := range byte(8) {
			f.Add(mode, s, []byte{0x80, 3, 0, 0x41, 200, 5, 0x90, 1, 9})
		}
	}
	f.Fuzz(func(t *testing.T, mode byte, data, script []byte) {
		s := newSetup(mpa.RoleResponder)
		aware(s)
		s.Params.Ahead = Ahead{Segments: 5, Bytes: 3000}
		s.PeerToPeer, s.Negotiated.RTR = mode&4 != 0, mpa.RTRRead|mpa.RTRSend
		x := newSecretive(t, s)
		stream, other := x.streams(mode, data)
		for told := 0; len(script) > 2 && x.Machine.State() == RTS; script = script[3:] {
			at, n := int(script[0]&0x7f)<<4|int(script[1]&0xf), 1+int(script[2])*8
			switch from := stream; {
			case script[0]&0x80 == 0:
				n = min(told+n, len(stream))
				x.input(stream[told:n])
				told = n
			case script[1]&0x80 != 0:
				from = other
				fallthrough
			default:
				x.Machine.InputAhead(x.clock, uint64(told+at), from[min(told+at, len(from)):min(told+at+n, len(from))])
				x.collectOutputs()
			}
			x.check()
			if x.Machine.ahead.segments() > 5 || x.Machine.Stats().Ahead.MostBytes > 3000 {
				t.Fatalf("%d FPDUs are held, %+v", x.Machine.ahead.segments(), x.Machine.Stats().Ahead)
			}
		}
		x.fin()
		x.check()
	})
}

// streams makes two streams of an input: ULPDUs in valid FPDUs from two sides, or bytes as they are.
func (f *secretive) streams(mode byte, data []byte) (stream, other []byte) {
	if mode&1 != 0 {
		return data, f.framed(data)
	}
	return f.framed(data), f.framed(bytes.Clone(data[min(len(data), 1+int(mode>>4)):]))
}

func (f *secretive) framed(data []byte) (stream []byte) {
	w := mpa.NewWriter(true, true)
	for len(data) > 1 {
		n := min(1+int(data[0]), len(data))
		u := bytes.Clone(data[1:n])
		f.aim(u)
		stream, data = w.Append(stream, u), data[n:]
		stream = w.Append(stream, write(f.writable.STag(), 0, make([]byte, 100)).ulpdu())
	}
	return stream
}
