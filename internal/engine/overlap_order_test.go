package engine

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
)

// Messages whose segments overlap at random, and arrive in any order, against those placed one after the other: the
// bytes that were sent last stay, each completion comes when its last segment has its turn, and nothing else is
// touched.
//
// Proves D24, D26, D27, P28.
func TestOverlapsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		const messages, size = 3, 12
		s := overMessages(t, mpa.RoleInitiator)
		buf := bytes.Repeat([]byte{'-'}, 2*messages*size)
		want := bytes.Clone(buf)
		region := s.region(buf, memory.LocalWrite)
		for i := range messages {
			s.receive(uint64(i), SGE{Region: region, Offset: i * size, Length: size})
			sink := SGE{Region: region, Offset: (messages + i) * size, Length: size}
			s.post(work(uint64(messages+i), OpRead, sink))
		}
		s.letters()
		var sent []fpdu
		sent = append(sent, write(0, 0, nil))
		var done []int // with which segment each message ends
		parts := [2][][2]int{}
		for i := range messages {
			for q := range 2 {
				all := overlapping(r, size)
				for j, p := range all {
					b := bytes.Repeat([]byte{byte('a' + r.IntN(26))}, p[1])
					at := (q*messages + i) * size
					copy(want[at+p[0]:], b)
					f := send(uint32(i+1), b).at(p[0])
					if q == 1 {
						f = response(region.STag(), uint64(at+p[0]), b)
					}
					if j < len(all)-1 {
						f = f.more()
					}
					sent = append(sent, f)
				}
				done = append(done, len(sent)-1)
				parts[q] = append(parts[q], all...)
			}
		}
		came := make([]bool, len(sent))
		for _, i := range r.Perm(len(sent)) {
			s.arrives(uint64(i), sent[i])
			came[i] = true
			s.letters()
			next, ends := 0, 0
			for next < len(came) && came[next] {
				next++
			}
			for _, d := range done {
				if d < next {
					ends++
				}
			}
			if len(s.done) != ends {
				rt.Fatalf("%d completions, want %d: %v", len(s.done), ends, parts)
			}
		}
		for _, c := range s.done {
			if c.Status != StatusSuccess {
				rt.Fatalf("%+v: %v, %v", c, parts, s.Machine.Cause())
			}
		}
		if !bytes.Equal(buf, want) {
			rt.Fatalf("%q, want %q: %v", buf, want, parts)
		}
	})
}

// overlapping returns offsets and lengths of segments that cover a message, the last of which is its end.
func overlapping(r *rand.Rand, size int) (parts [][2]int) {
	covered := make([]bool, size)
	for range r.IntN(5) {
		at := r.IntN(size)
		parts = append(parts, [2]int{at, r.IntN(size - at + 1)})
	}
	top := 0
	for _, p := range parts {
		for i := range p[1] {
			covered[p[0]+i] = true
		}
		if p[1] > 0 {
			top = max(top, p[0])
		}
	}
	last := top + r.IntN(size-top)
	for i := range last {
		if !covered[i] {
			parts = append(parts, [2]int{i, 1 + r.IntN(last-i)})
		}
	}
	return append(parts, [2]int{last, size - last})
}
