package engine

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/goiwarp/iwarp/internal/layout"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A side is one host of a random exchange, with what the model expects of it. All
// memory is used once, so that the model is what was posted and nothing more.
type side struct {
	*host
	peer *side
	rand *rand.Rand

	source []byte // constant; the peer may read it
	window []byte // the peer may write and read it
	sink   []byte // of our Reads and receives
	rs     *memory.Region
	rw     *memory.Region
	rk     *memory.Region

	word []uint64 // one, which the peer may change by Atomic Operations
	rc   *memory.Region

	usedWindow, usedSink int      // bytes given out
	written              [][2]int // ranges of the peer's window that we have written

	wantWindow, wantSink []byte
	wantWord             uint64
	told                 int // bytes of our last Write, which Immediate Data tell of
	wantSend, wantRecv   []Completion
	nextID               uint64

	promises []promise // of the Sends to come, by which look is led
	looked   int       // completions that it has seen
}

const (
	sideSource = 20000
	sideMemory = 150000
)

func newSide(h *host, seed uint64) *side {
	s := &side{host: h, rand: rand.New(rand.NewPCG(seed, 1))}
	s.source, s.window, s.sink = numbered(sideSource), make([]byte, sideMemory), make([]byte, sideMemory)
	s.rand.Shuffle(sideSource, func(i, j int) { s.source[i], s.source[j] = s.source[j], s.source[i] })
	s.rs = h.regionOf(s.source, memory.Options{Access: memory.RemoteRead, PD: testPD, Base: 1 << 40})
	s.rw, s.rk = h.region(s.window, remoteAll), h.region(s.sink, memory.LocalWrite)
	var data []byte
	data, s.word = words(1)
	s.rc = h.region(data, memory.RemoteAtomic)
	s.wantWindow, s.wantSink = make([]byte, sideMemory), make([]byte, sideMemory)
	return s
}

// length draws the length of a message.
func (s *side) length() int {
	switch s.rand.IntN(4) {
	case 0:
		return s.rand.IntN(4)
	case 1:
		return s.rand.IntN(200)
	case 2:
		return testMULPDU - 20 + s.rand.IntN(10)
	}
	return s.rand.IntN(8000)
}

// post posts one random request, with what it is to bring about.
func (s *side) post() {
	s.nextID++
	ops := []Op{OpSend, OpWrite, OpRead, OpLocalInvalidate, OpFetchAdd, OpCompareSwap, OpWriteImm, OpImmediate}
	if s.Machine.RDMAPVersion == 0 {
		ops = ops[:4]
	}
	w := SendWork{ID: s.nextID, Op: ops[s.rand.IntN(len(ops))], Fence: s.rand.IntN(4) == 0, Unsignaled: s.rand.IntN(4) == 0}
	n, original := 0, uint64(0)
	switch w.Op {
	case OpSend:
		n = s.send(&w)
	case OpWrite:
		n = s.write(&w)
	case OpRead:
		n = s.read(&w)
	case OpLocalInvalidate:
		w.Target = s.region(nil, 0)
	case OpFetchAdd, OpCompareSwap:
		n, original = 8, s.atomic(&w)
	case OpWriteImm:
		n = s.write(&w)
		s.immediate(&w)
	case OpImmediate:
		s.immediate(&w)
	}
	if !w.Unsignaled {
		c := success(w.ID, w.Op, n)
		c.Original = original
		s.wantSend = append(s.wantSend, c)
	}
	s.host.post(w)
}

// from has a request send n random bytes of the source, in random pieces or
// inline, and returns them.
func (s *side) from(w *SendWork, n int) []byte {
	at := s.rand.IntN(sideSource - n)
	b := s.source[at : at+n]
	if n <= 2048 && s.rand.IntN(3) == 0 {
		w.Inline = b
		return b
	}
	w.SGL = listOf(s.pieces(s.rs, at, n, 1+s.rand.IntN(MaxSGE))...)
	return b
}

// pieces cuts a range of a region into so many elements.
func (s *side) pieces(r *memory.Region, at, n, elements int) (sgl []SGE) {
	for len(sgl) < elements-1 {
		k := s.rand.IntN(n/2 + 1)
		sgl = append(sgl, SGE{Region: r, Offset: at, Length: k})
		at, n = at+k, n-k
	}
	return append(sgl, SGE{Region: r, Offset: at, Length: n})
}

func (s *side) send(w *SendWork) int {
	w.Solicited = s.rand.IntN(2) == 0
	if s.Machine.prefixed {
		w.Prefix = s.rand.Uint64()
	}
	n := s.length()
	b := s.from(w, n)
	to := s.peer
	room := n + s.rand.IntN(20)
	to.nextID++
	to.receive(to.nextID, s.pieces(to.rk, to.usedSink, room, 1+s.rand.IntN(6))...)
	copy(to.wantSink[to.usedSink:], b)
	to.promises = append(to.promises, promise{len(s.written), [2]int{to.usedSink, n}})
	to.usedSink += room
	s.told = 0
	c := success(to.nextID, OpReceive, n)
	c.Solicited, c.Prefix = w.Solicited, w.Prefix
	to.wantRecv = append(to.wantRecv, c)
	return n
}

func (s *side) write(w *SendWork) int {
	n, to := s.length(), s.peer
	b := s.from(w, n)
	w.RemoteSTag, w.RemoteTO = to.rw.STag(), uint64(to.usedWindow)
	copy(to.wantWindow[to.usedWindow:], b)
	s.written = append(s.written, [2]int{to.usedWindow, n})
	to.usedWindow += n
	s.told = n
	return n
}

// atomic changes the peer's word, and returns what it was.
func (s *side) atomic(w *SendWork) (original uint64) {
	to := s.peer
	original = to.wantWord
	w.RemoteSTag, w.Atomic.Data = to.rc.STag(), s.rand.Uint64()
	switch {
	case w.Op == OpFetchAdd:
		to.wantWord += w.Atomic.Data
	case s.rand.IntN(2) == 0: // which is not equal
		w.Atomic.Mask, w.Atomic.Compare, w.Atomic.CompareMask = math.MaxUint64, original+1, math.MaxUint64
	default:
		w.Atomic.Mask, w.Atomic.Compare, w.Atomic.CompareMask = math.MaxUint64, original, math.MaxUint64
		to.wantWord = w.Atomic.Data
	}
	if s.rand.IntN(2) == 0 {
		w.SGL = listOf(SGE{Region: s.rk, Offset: s.usedSink, Length: 8})
		binary.NativeEndian.PutUint64(s.wantSink[s.usedSink:], original)
		s.usedSink += 8
	}
	return original
}

// immediate has a request tell the peer.
func (s *side) immediate(w *SendWork) {
	w.Immediate, w.Solicited = s.rand.Uint64(), s.rand.IntN(2) == 0
	to := s.peer
	to.nextID++
	to.receive(to.nextID)
	to.promises = append(to.promises, promise{written: len(s.written)})
	to.wantRecv = append(to.wantRecv, Completion{
		ID: to.nextID, Op: OpReceive, Solicited: w.Solicited, Immediate: w.Immediate, HasImmediate: true, Written: uint32(s.told),
	})
	s.told = 0
}

// read reads the peer's source, or what was written before.
func (s *side) read(w *SendWork) int {
	n, from := s.length(), s.peer
	at := s.rand.IntN(sideSource - n)
	b := from.source[at:]
	w.RemoteSTag, w.RemoteTO = from.rs.STag(), from.rs.Base()+uint64(at)
	if len(s.written) > 0 && s.rand.IntN(2) == 0 {
		r := s.written[s.rand.IntN(len(s.written))]
		at, n = r[0], r[1]
		b = from.wantWindow[at:]
		w.RemoteSTag, w.RemoteTO = from.rw.STag(), uint64(at)
	}
	w.SGL = listOf(s.pieces(s.rk, s.usedSink, n, 1+s.rand.IntN(5))...)
	copy(s.wantSink[s.usedSink:], b[:n])
	s.usedSink += n
	return n
}

// room reports whether another request can be posted.
func (s *side) room() bool {
	return !s.Machine.sq.Full() && !s.peer.Machine.rq.Full() && s.usedSink < sideMemory-10000 && s.peer.usedSink < sideMemory-10000 && s.peer.usedWindow < sideMemory-10000
}

// check compares with the model.
func (s *side) check() {
	s.Helper()
	var sends, receives []Completion
	for _, c := range s.done {
		if c.Op == OpReceive {
			receives = append(receives, c)
		} else {
			sends = append(sends, c)
		}
	}
	if diff := cmp.Diff(s.wantSend, sends); diff != "" {
		s.Fatalf("Send Queue (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(s.wantRecv, receives); diff != "" {
		s.Fatalf("Receive Queue (-want +got):\n%s", diff)
	}
	if !bytes.Equal(s.window, s.wantWindow) || !bytes.Equal(s.sink, s.wantSink) || s.word[0] != s.wantWord {
		s.Fatal("memory is not as expected")
	}
}

// Any requests of both sides at once, in any variant and under any split of both
// streams, against a model: memory, completions and their order.
//
// Proves D05, D24, D25, D26, P20, P23, P28, P31, P32, P40, P41, P42, P43, P46, P47, R06, A12, A21, A22, A25, A34, A35.
func TestAnyWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 2))
		p := randomPair(t, r)
		a, b := newSide(p.a, seed), newSide(p.b, seed+1)
		a.peer, b.peer = b, a
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			s := []*side{a, b}[r.IntN(2)]
			for !s.room() && p.step() {
			}
			if s.room() {
				s.post()
			}
			for range r.IntN(6) {
				p.step()
			}
		}
		p.run()
		a.check()
		b.check()
		a.done, b.done = nil, nil
		p.closeBoth()
	})
}

func randomPair(t *rapid.T, r *rand.Rand) *pair {
	kinds := []mpa.RTR{mpa.RTRWrite, mpa.RTRRead, mpa.RTRSend}
	crc, ver, kind := r.IntN(2) == 0, uint8(r.IntN(2)), kinds[r.IntN(3)]
	p := newPair(t, markers(r.IntN(2) == 0, r.IntN(2) == 0), both(func(s *setup) {
		s.CRC, s.DDPVersion, s.RDMAPVersion = crc, ver, ver
		s.PeerToPeer, s.Negotiated.RTR = true, kind
		s.MULPDU = []int{layout.MinMULPDU, 1000, testMULPDU, 8938, layout.MaxMULPDU}[r.IntN(5)]
		if r.IntN(2) == 0 {
			aligned([]int{200, 1398, 1448, 8948, 65483}[r.IntN(5)], s.MarkersSend)(s)
		}
		s.IRD, s.ORD = 4, 1+r.IntN(4)
	}))
	p.prefix(r.IntN(2) == 0)
	upTo := []int{50, 1500, 1 << 20}[r.IntN(3)]
	piece := func(int) int { return 1 + r.IntN(upTo) }
	p.ab.piece, p.ba.piece, p.a.chunk, p.b.chunk = piece, piece, piece, piece
	p.first = func() bool { return r.IntN(2) == 0 }
	return p
}

// A verdict is all that an input stream has brought about.
type verdict struct {
	State   State
	Cause   string
	Done    []Completion
	Notices []string
	Sent    []byte
	Memory  []byte
	Stats   Stats
}

// anySegments draws segments, most of them legal when they come.
func anySegments(t *rapid.T, stag uint32) []fpdu {
	var sent, reads uint32
	var fs []fpdu
	for range rapid.IntRange(1, 12).Draw(t, "segments") {
		b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "payload")
		switch rapid.IntRange(0, 12).Draw(t, "kind") {
		case 0, 1, 2:
			fs = append(fs, write(stag, rapid.Uint64Range(0, 60).Draw(t, "TO"), b))
		case 3, 4, 5:
			sent++
			fs = append(fs, send(sent, b))
		case 6, 7:
			reads++
			fs = append(fs, request(reads, readOf(stag, uint32(len(b)))))
		case 8:
			fs = append(fs, response(rapid.Uint32().Draw(t, "STag"), 0, b))
		case 9:
			fs = append(fs, message(7, b))
		case 10:
			sent++
			fs = append(fs, immediate(sent, 5))
		case 11:
			reads++
			r := rdmap.FetchAdd(1, 0)
			r.STag, r.TO = stag, rapid.SampledFrom([]uint64{0, 8, 8, 8, 4}).Draw(t, "word")
			fs = append(fs, atomicRequest(reads, r))
		case 12:
			fs = append(fs, message(rapid.SampledFrom([]rdmap.Opcode{8, 9, 10, 11}).Draw(t, "opcode"), b))
		}
	}
	return fs
}

// Proves R06, D05: the same stream brings about the same under any split, errors included.
func TestAnySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSetup(mpa.RoleResponder)
		buf := make([]byte, 100)
		r, err := s.table.Register(buf, memory.Options{Access: remoteAll | memory.RemoteAtomic, PD: testPD})
		if err != nil {
			t.Fatal(err)
		}
		s.MarkersReceive, s.CRC = rapid.Bool().Draw(t, "markers"), rapid.Bool().Draw(t, "crc")
		w := mpa.NewWriter(s.MarkersReceive, s.CRC)
		var stream []byte
		for _, f := range anySegments(t, r.STag()) {
			stream = w.Append(stream, f.ulpdu())
		}
		if rapid.IntRange(0, 5).Draw(t, "damage") == 0 {
			stream[rapid.IntRange(0, len(stream)-1).Draw(t, "at")] ^= 0x10
		}
		whole := judge(t, s, r, buf, stream, func() int { return len(stream) })
		split := judge(t, s, r, buf, stream, func() int { return rapid.IntRange(1, 60).Draw(t, "piece") })
		single := judge(t, s, r, buf, stream, func() int { return 1 })
		if diff := cmp.Diff(whole, split) + cmp.Diff(whole, single); diff != "" {
			t.Fatalf("whole and split:\n%s", diff)
		}
	})
}

// judge gives a stream to a fresh QP in pieces and returns what came of it.
func judge(t rapid.TB, s *setup, r *memory.Region, buf, stream []byte, piece func() int) verdict {
	clear(buf)
	p := &peer{clock: epoch}
	p.host = newHost(t, &p.clock, s)
	p.start(s)
	for id := range uint64(4) {
		p.receive(id, SGE{Region: r, Offset: 60, Length: 30})
	}
	p.window = 0
	for rest := slices.Clone(stream); len(rest) > 0; {
		n := min(piece(), len(rest))
		p.input(rest[:n])
		rest = rest[n:]
	}
	p.window = -1
	v := verdict{Sent: p.output(), State: p.Machine.State(), Done: p.done, Memory: bytes.Clone(buf), Stats: p.Machine.Stats()}
	if p.Machine.Cause() != nil {
		v.Cause = p.Machine.Cause().Error()
	}
	for _, n := range p.notices {
		v.Notices = append(v.Notices, noticeText(n))
	}
	return v
}
