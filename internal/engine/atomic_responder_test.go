package engine

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// A server is a QP with words that its peer may change.
type server struct {
	*peer
	w []uint64
	r *memory.Region
}

func newServer(t *testing.T, change ...func(*setup)) *server {
	buf, w := words(4)
	s := &server{peer: responder(t, change...), w: w}
	s.r = s.region(buf, memory.RemoteAtomic|memory.RemoteRead)
	return s
}

// to aims a request at a word.
func (s *server) to(r rdmap.AtomicRequest, id uint32, word int) rdmap.AtomicRequest {
	r.ID, r.STag, r.TO = id, s.r.STag(), uint64(8*word)
	return r
}

// Proves A04, A12, A15, A17, A18, A22, A30: each request is answered in its turn among the Reads, with what was in memory
// before it; the responses count their own MSNs.
func TestAtomicResponder(t *testing.T) {
	s := newServer(t)
	s.w[1] = 40
	s.send(atomicRequest(1, s.to(rdmap.FetchAdd(2, 0), 11, 1)))
	s.want(atomicResponse(1, 11, 40))
	read := readOf(s.r.STag(), 8)
	read.SrcTO = 8
	s.window = 0
	s.send(request(2, read),
		atomicRequest(3, s.to(rdmap.CmpSwap(42, math.MaxUint64, 0x1234, 0xff), 12, 1)),
		atomicRequest(4, s.to(rdmap.CmpSwap(42, math.MaxUint64, 0x1234, 0xff), 12, 1)))
	if s.w[1] != 42 {
		t.Errorf("carried out before its turn: %d", s.w[1])
	}
	s.window = -1
	s.want(response(read.SinkSTag, read.SinkTO, binary.NativeEndian.AppendUint64(nil, 42)), atomicResponse(2, 12, 42),
		atomicResponse(3, 12, 0x34))
	if s.w[1] != 0x34 || s.w[0] != 0 || s.w[2] != 0 {
		t.Errorf("memory %#x", s.w)
	}
	s.noCompletion()
	s.wantState(RTS)
}

// Proves A18: the IRD is for Reads and Atomic Operations together.
func TestAtomicIRD(t *testing.T) {
	s := newServer(t, func(s *setup) { s.IRD = 2 })
	s.window = 0
	one := atomicRequest(1, s.to(rdmap.FetchAdd(1, 0), 1, 0))
	bad := atomicRequest(3, s.to(rdmap.FetchAdd(1, 0), 3, 0))
	s.send(one, request(2, readOf(s.r.STag(), 8)), bad)
	s.window = -1
	s.wantTerminate(terminateFor(0x1203, bad))
	if s.w[0] != 0 {
		t.Error("nothing is carried out after the Terminate is due")
	}
}

// Proves A14, A16, A20, A40: an Atomic Operation that is refused changes nothing and ends the connection; the
// Terminate has the code of the mistake, the DDP header and no RDMA header.
func TestAtomicRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(s *server, r *rdmap.AtomicRequest)
		code   rdmap.Code
	}{
		{"no such STag", func(_ *server, r *rdmap.AtomicRequest) { r.STag++ }, 0x0100},
		{"over the end", func(_ *server, r *rdmap.AtomicRequest) { r.TO = 32 }, 0x0101},
		{"no right", func(s *server, r *rdmap.AtomicRequest) {
			r.STag = s.region(make([]byte, 8), remoteAll).STag()
		}, 0x0102},
		{"another Protection Domain", func(s *server, r *rdmap.AtomicRequest) {
			r.STag = s.regionOf(make([]byte, 8), memory.Options{Access: memory.RemoteAtomic, PD: testPD + 1}).STag()
		}, 0x0103},
		{"wrap", func(_ *server, r *rdmap.AtomicRequest) { r.TO = math.MaxUint64 }, 0x0104},
		{"not aligned", func(_ *server, r *rdmap.AtomicRequest) { r.TO = 4 }, 0x0207},
		{"reserved AOpCode", func(_ *server, r *rdmap.AtomicRequest) { r.Op = 1 }, 0x0206},
		{"unassigned AOpCode", func(_ *server, r *rdmap.AtomicRequest) { r.Op = 15 }, 0x0206},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			r := s.to(rdmap.FetchAdd(1, 0), 1, 0)
			tt.change(s, &r)
			bad := atomicRequest(1, r)
			s.send(bad)
			want := terminateFor(tt.code, bad)
			if len(want.Payload) != 24 {
				t.Fatalf("a Terminate of %d bytes", len(want.Payload))
			}
			s.wantTerminate(want)
			s.wantCause(tt.code, false)
			for _, w := range s.w {
				if w != 0 {
					t.Errorf("memory %#x", s.w)
				}
			}
		})
	}
}

// The memory goes away after the request was accepted and before it is carried out.
//
// Proves A16.
func TestAtomicRevokedInBetween(t *testing.T) {
	s := newServer(t)
	s.window = 0
	f := atomicRequest(1, s.to(rdmap.FetchAdd(1, 0), 1, 0))
	s.send(f)
	s.table.Revoke(s.r)
	s.window = -1
	s.wantTerminate(terminateFor(0x0100, f))
	s.wantCause(0x0100, false)
}
