package iwarp_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// TestLists has both ends Send, Write and Read at once, by lists of elements in memory that is registered in many
// pieces of any length, and compares every byte. Where the pieces, the elements, the segments and the markers end has
// nothing to do with each other.
func TestLists(t *testing.T) {
	overAll(t, func(t *testing.T, s rig.Setup) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		for range 2 {
			anyKind(&s, t, r)
			ini, res := s.Connect(t)
			meet(ini, res)
			both := [2]*lister{newLister(ini, r), newLister(res, r)}
			for range 2 {
				both[0].startRound()
				both[1].startRound()
				both[0].plan(both[1])
				both[1].plan(both[0])
				both[0].postAll()
				both[1].postAll()
				both[0].awaitCompletions()
				both[1].awaitCompletions()
				both[0].compare()
				both[1].compare()
			}
			rig.Finish(t, ini, res)
		}
	})
}

// anyKind draws how a connection is.
func anyKind(s *rig.Setup, t *testing.T, r *rand.Rand) {
	s.PD, s.Accept.PD = rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Markers: !s.Over.Sctp && r.IntN(2) == 0})),
		rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Markers: !s.Over.Sctp && r.IntN(2) == 0}))
	s.MPA.NoCRC = !s.Over.Sctp && r.IntN(3) == 0
	s.Accept.MPA.NoCRC = s.MPA.NoCRC
	for _, qp := range []*iwarp.QPConfig{&s.QP, &s.Accept.QP} {
		*qp = iwarp.QPConfig{Confirm: r.IntN(4) == 0, MaxInline: 200}
		if !s.Over.Sctp {
			qp.FPDUs = iwarp.FPDUs(r.IntN(int(iwarp.FPDUsLarge) + 1))
		}
	}
}

// meet has the Initiator send first, after which either may.
func meet(ini, res *rig.End) {
	for _, p := range [][2]*rig.End{{ini, res}, {res, ini}} {
		p[1].MustPostRecv(0)
		p[0].MustPost(&iwarp.SendWR{ID: 1})
		p[0].WantSent(iwarp.OpSend, 1, iwarp.StatusSuccess)
		p[1].WantReceived(0, iwarp.StatusSuccess)
	}
}

// A scattered region is an MR, and where in the memory of its end each byte lies.
type scattered struct {
	mr   *iwarp.MR
	base uint64
	at   []int
	used int // bytes from the start that something of this round goes to
}

// A lister is an end whose memory has sources in the first half, and in the second what the peer and its own Reads
// change.
type lister struct {
	end           *rig.End
	r             *rand.Rand
	memory, want  []byte
	sources, sink []*scattered
	posts         []iwarp.SendWR
	lengths       []int // of the Sends that it receives
}

const listed = 150_000 // bytes of either half

func newLister(e *rig.End, r *rand.Rand) *lister {
	l := &lister{end: e, r: r, memory: make([]byte, 2*listed)}
	for i := range l.memory {
		l.memory[i] = byte(r.Uint32())
	}
	l.want = bytes.Clone(l.memory)
	for range 4 {
		var pieces [][2]int
		for _, n := range l.cut(1 + r.IntN(listed/2)) {
			pieces = append(pieces, [2]int{r.IntN(listed - n), n}) // sources may overlap
		}
		l.sources = append(l.sources, l.register(pieces, iwarp.RemoteRead))
	}
	var pieces [][2]int
	for at := listed; at < 2*listed; {
		for _, n := range l.cut(min(50_000, 2*listed-at)) {
			pieces = append(pieces, [2]int{at, n})
			at += n
		}
	}
	r.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	for len(pieces) > 0 {
		n := min(len(pieces), 1+r.IntN(2*len(pieces)))
		l.sink = append(l.sink, l.register(pieces[:n], iwarp.LocalWrite|iwarp.RemoteWrite))
		pieces = pieces[n:]
	}
	return l
}

// cut draws the lengths of pieces: small ones, those of pages, of about a segment, or large ones.
func (l *lister) cut(size int) (lengths []int) {
	most := []int{64, 4096, 1500, 70_000}[l.r.IntN(4)]
	for size > 0 {
		n := min(1+l.r.IntN(most), size)
		lengths = append(lengths, n)
		size -= n
	}
	return lengths
}

// register makes an MR of pieces of memory: their offsets and lengths.
func (l *lister) register(pieces [][2]int, access iwarp.Access) *scattered {
	s := &scattered{base: l.r.Uint64() >> 1}
	var memory [][]byte
	for _, p := range pieces {
		memory = append(memory, l.memory[p[0]:][:p[1]:p[1]])
		for i := range p[1] {
			s.at = append(s.at, p[0]+i)
		}
	}
	s.mr = allocFast(l.end, len(pieces), len(s.at))
	registers(l.end, s.mr, iwarp.Registration{Memory: memory, Base: s.base, Access: access})
	return s
}

// size draws a length of up to so many bytes.
func (l *lister) size(most int) int {
	return min(most, l.r.IntN([]int{2, 20, 3000, 1460, 50_000}[l.r.IntN(5)]), listed/16)
}

// gathers draws the elements of a message, and returns what they hold.
func (l *lister) gathers() (sgl []iwarp.SGE, data []byte) {
	for range l.r.IntN(6) {
		s := l.sources[l.r.IntN(len(l.sources))]
		from := l.r.IntN(len(s.at))
		e := iwarp.SGE{MR: s.mr, Offset: from, Length: l.size(len(s.at) - from)}
		for _, at := range s.at[from:][:e.Length] {
			data = append(data, l.memory[at])
		}
		sgl = append(sgl, e)
	}
	return sgl, data
}

// room finds a sink for n bytes more. Without one it is nil.
func (l *lister) room(n int) (s *scattered, from int) {
	for _, s := range l.sink {
		if from := s.used; len(s.at)-from >= n {
			s.used += n
			return s, from
		}
	}
	return nil, 0
}

// expects has bytes come to a sink.
func (l *lister) expects(s *scattered, from int, data []byte) {
	for i, b := range data {
		l.want[s.at[from+i]] = b
	}
}

// receives posts a receive of elements for bytes, and expects those. It reports false where there is no room.
func (l *lister) receives(data []byte) bool {
	var sgl []iwarp.SGE
	var expect []func()
	for rest := data; len(rest) > 0; {
		n := len(rest)
		if len(sgl) < iwarp.MaxSGE-1 {
			n = 1 + l.r.IntN(n)
		}
		s, from := l.room(n)
		if s == nil {
			return false
		}
		part := rest[:n]
		expect = append(expect, func() { l.expects(s, from, part) })
		sgl = append(sgl, s.mr.Slice(from, n))
		rest = rest[n:]
	}
	for _, f := range expect {
		f()
	}
	l.end.MustPostRecv(uint64(len(l.lengths)), sgl...)
	l.lengths = append(l.lengths, len(data))
	return true
}

// startRound starts a round.
func (l *lister) startRound() {
	l.posts = nil
	for _, s := range l.sink {
		s.used = min(l.r.IntN(10), len(s.at))
	}
}

// plan draws what is posted to the peer in this round: at its end comes a Send, after which all else of it is in place.
func (l *lister) plan(peer *lister) {
	for range 1 + l.r.IntN(8) {
		switch l.r.IntN(3) {
		case 0:
			if sgl, data := l.gathers(); peer.receives(data) {
				l.posts = append(l.posts, iwarp.SendWR{Op: iwarp.OpSend, SGL: sgl})
			}
		case 1:
			sgl, data := l.gathers()
			if s, from := peer.room(len(data)); s != nil {
				peer.expects(s, from, data)
				l.posts = append(l.posts, iwarp.SendWR{Op: iwarp.OpWrite, SGL: sgl,
					Remote: iwarp.Remote{STag: s.mr.STag(), TO: s.base + uint64(from)}})
			}
		default:
			l.reads(peer)
		}
	}
	peer.receives(nil)
	l.posts = append(l.posts, iwarp.SendWR{Op: iwarp.OpSend})
}

func (l *lister) reads(peer *lister) {
	s := peer.sources[l.r.IntN(len(peer.sources))]
	from := l.r.IntN(len(s.at))
	data := make([]byte, l.size(len(s.at)-from))
	for i := range data {
		data[i] = peer.memory[s.at[from+i]]
	}
	if to, at := l.room(len(data)); to != nil {
		l.expects(to, at, data)
		l.posts = append(l.posts, iwarp.SendWR{Op: iwarp.OpRead, SGL: []iwarp.SGE{to.mr.Slice(at, len(data))},
			Remote: iwarp.Remote{STag: s.mr.STag(), TO: s.base + uint64(from)}})
	}
}

// postAll posts all at once, or one by one.
func (l *lister) postAll() {
	l.end.T.Helper()
	for i := range l.posts {
		l.posts[i].ID = uint64(i)
	}
	if l.r.IntN(2) == 0 {
		_, err := l.end.PostSends(l.posts)
		rig.Must(l.end.T, err)
		return
	}
	for i := range l.posts {
		l.end.MustPost(&l.posts[i])
	}
}

// awaitCompletions waits for the completions of a round.
func (l *lister) awaitCompletions() {
	l.end.T.Helper()
	sent := 0
	for came := 0; sent < len(l.posts) || came < len(l.lengths); {
		wc := rig.Next(l.end.T, l.end.SendCQ())
		switch {
		case wc.Status != iwarp.StatusSuccess:
			l.end.T.Fatal(wc.Err())
		case wc.Op != iwarp.OpRecv && wc.ID == uint64(sent):
			sent++
		case wc.Op == iwarp.OpRecv && wc.ID == uint64(came) && wc.Length == l.lengths[came]:
			came++
		default:
			l.end.T.Fatalf("completion of %v %d with %d bytes, after %d sent and %d received",
				wc.Op, wc.ID, wc.Length, sent, came)
		}
	}
	l.lengths = nil
}

// compare looks at every byte.
func (l *lister) compare() {
	l.end.T.Helper()
	for i := range l.memory {
		if l.memory[i] != l.want[i] {
			l.end.T.Fatalf("byte %d of %d is wrong; those from %d on are of sinks", i, len(l.memory), listed)
		}
	}
}
