package engine

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// odd sets all that receivers of a message do not look at.
func odd(h *ddp.Header) { h.Rsvd, h.RsvdULP, h.ULP = 15, h.RsvdULP|0x30, 0xdeadbeef }

// Proves A03, A07, A08: what a message of RFC 7306 has no use for is sent as zero, or as the RFC wants it,
// and is not looked at: the Invalidate STag, reserved bits, and what is compared, of a FetchAdd.
func TestExtensionsIgnore(t *testing.T) {
	s := newServer(t)
	s.receive(1)
	s.w[1] = 40
	r := s.to(rdmap.FetchAdd(2, 0), 7, 1)
	r.Compare, r.CompareMask = 99, 0xff
	bad := atomicRequest(1, r).with(odd)
	bad.Payload[0], bad.Payload[1], bad.Payload[2], bad.Payload[3] = 0xff, 0xff, 0xff, 0xf0
	s.send(bad, immediate(1, 5).with(odd))
	s.want(atomicResponse(1, 7, 40))
	s.completion(Completion{ID: 1, Op: OpReceive, HasImmediate: true, Immediate: 5})
	if s.w[1] != 42 {
		t.Errorf("memory %d", s.w[1])
	}
	s.post(add(2, 5))
	s.post(work(3, OpImmediate))
	s.want(added(1, 1, 5), immediate(1, 0))
	unused := slices.Concat(make([]byte, 8), bytes.Repeat([]byte{0xff}, 8))
	if b := added(1, 1, 5).Payload; !bytes.Equal(b[:4], unused[:4]) || !bytes.Equal(b[36:], unused) {
		t.Errorf("a FetchAdd is % x", b)
	}
	s.send(atomicResponse(1, 1, 9).with(odd))
	s.completion(fetched(2, OpFetchAdd, 9), success(3, OpImmediate, 0))
	s.wantState(RTS)
}

// Proves A01, A04, A05, A40, A41: each field of DDP and RDMAP that is wrong in an Atomic Request ends the
// connection before anything is carried out, with its DDP header and no other.
func TestAtomicRequestFields(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(h *ddp.Header)
		code   rdmap.Code
	}{
		{"MSN skipped", func(h *ddp.Header) { h.MSN = 9 }, 0x1203},
		{"MSN 0", func(h *ddp.Header) { h.MSN = 0 }, 0x1203},
		{"MO", func(h *ddp.Header) { h.MO = 1 }, 0x1205},
		{"DDP version 0", func(h *ddp.Header) { h.Version = 0 }, 0x1206},
		{"RDMAP version 0", func(h *ddp.Header) { h.RsvdULP &= 0x3f }, 0x0205},
		{"queue 3", qn(3), 0x0206},
		{"queue 0", qn(0), 0x0206},
		{"no such queue", qn(4), 0x1201},
		{"tagged", tagged(true), 0x0206},
		{"no opcode", func(h *ddp.Header) { h.RsvdULP = h.RsvdULP&0xf0 | 15 }, 0x0206},
		{"not the last segment", func(h *ddp.Header) { h.Last = false }, 0x0207},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			bad := atomicRequest(1, s.to(rdmap.FetchAdd(1, 0), 1, 0)).with(tt.change)
			s.send(bad)
			s.wantTerminate(terminateFor(tt.code, bad))
			s.wantCause(tt.code, false)
			if s.w[0] != 0 {
				t.Errorf("memory %d", s.w[0])
			}
		})
	}
}

// Proves A17, A29: a Send that comes after an Atomic Request completes before the request is answered; the
// request takes no receive and completes nothing.
func TestSendOvertakesAtomicResponse(t *testing.T) {
	s := newServer(t)
	s.receive(1)
	s.receive(2)
	s.window = 0 // so that no answer leaves
	s.send(atomicRequest(1, s.to(rdmap.FetchAdd(1, 0), 7, 0)), send(1, nil), immediate(2, 5))
	s.completion(success(1, OpReceive, 0), Completion{ID: 2, Op: OpReceive, HasImmediate: true, Immediate: 5})
	s.noCompletion()
	s.window = -1
	s.want(atomicResponse(1, 7, 0))
	s.noCompletion()
}

// Proves A17, P22: what asks for an answer is answered without the consumer: its receive stays where it is.
func TestAnsweredWithoutConsumer(t *testing.T) {
	s := newServer(t)
	s.receive(1)
	s.send(request(1, readOf(s.r.STag(), 8)), atomicRequest(2, s.to(rdmap.FetchAdd(1, 0), 7, 1)),
		request(3, rdmap.ReadRequest{}))
	s.want(response(5, 0, make([]byte, 8)), atomicResponse(1, 7, 0), response(0, 0, nil))
	s.noCompletion()
	if _, receives := s.Machine.Outstanding(); receives != 1 {
		t.Errorf("%d receives are left", receives)
	}
	s.send(send(1, nil))
	s.completion(success(1, OpReceive, 0))
}

// Proves A43: Immediate Data for which there is no receive ends both connections, and both consumers hear why.
func TestImmediateErrorIsTold(t *testing.T) {
	p := newPair(t)
	w := work(1, OpImmediate)
	w.Immediate = 5
	p.a.post(w)
	p.run()
	for h, byPeer := range map[*host]bool{p.a: true, p.b: false} {
		var f *Failure
		if !errors.As(h.Machine.Cause(), &f) || f.Code != rdmap.CodeDDPInvalidMSNNoBuffer || f.Peer != byPeer {
			t.Errorf("told by the peer %t: %v", byPeer, h.Machine.Cause())
		}
	}
}

// A peer sends a Write, Atomic Requests, a Read Request, Immediate Data and a Send, which come in any order.
//
// Proves A22, A28, A30, A35, A37: what was sent first is in place, or completed, when the next is carried
// out, and the answers leave in the order of the requests.
func TestExtensionsInAnyOrder(t *testing.T) {
	permute([]int{0, 1, 2, 3, 4, 5}, 0, func(order []int) { extensionsIn(t, order) })
}

// permute gives each order of those from k on.
func permute(all []int, k int, give func(order []int)) {
	if k == len(all) {
		give(all)
	}
	for i := k; i < len(all); i++ {
		all[k], all[i] = all[i], all[k]
		permute(all, k+1, give)
		all[k], all[i] = all[i], all[k]
	}
}

func extensionsIn(t *testing.T, order []int) {
	t.Helper()
	s := &sender{newPeer(t, mpa.RoleResponder, messages)}
	data, w := words(1)
	r := s.region(data, memory.RemoteAtomic|memory.RemoteWrite|memory.RemoteRead)
	s.receive(1)
	s.receive(2)
	first, second := rdmap.FetchAdd(1, 0), rdmap.FetchAdd(1, 0)
	first.ID, first.STag, second.ID, second.STag = 21, r.STag(), 22, r.STag()
	w[0] = 99
	read := rdmap.ReadRequest{SinkSTag: 5, Size: 8, SrcSTag: r.STag()}
	parts := []fpdu{
		write(r.STag(), 0, make([]byte, 8)), atomicRequest(1, first),
		immediate(1, 9), request(2, read), atomicRequest(3, second), send(2, nil),
	}
	came := make([]bool, len(parts))
	got := [][]byte{}
	for _, i := range order {
		s.arrives(uint64(i), parts[i])
		came[i] = true
		got = append(got, s.letters()...)
		next := slices.Index(came, false)
		if next < 0 {
			next = len(parts)
		}
		// How many of the requests before the first that is missing are answered, and how many receives complete.
		answers, receives := below(next, 1, 3, 4), below(next, 2, 5)
		if len(got) != answers || len(s.done) != receives {
			t.Fatalf("%v: after %d, when %d is missing, %d answers and %d completions",
				order, i, next, len(got), len(s.done))
		}
	}
	for i, want := range []fpdu{atomicResponse(1, 21, 0), response(5, 0, bytesOf(1)), atomicResponse(2, 22, 1)} {
		if !slices.Equal(got[i], want.ulpdu()) {
			t.Fatalf("%v: answer %d is % x, want % x", order, i, got[i], want.ulpdu())
		}
	}
	s.completion(Completion{ID: 1, Op: OpReceive, HasImmediate: true, Immediate: 9, Written: 8},
		success(2, OpReceive, 0))
	if w[0] != 2 {
		t.Fatalf("%v: memory %d", order, w[0])
	}
}

// below counts the numbers that are less than a bound.
func below(bound int, all ...int) (n int) {
	for _, k := range all {
		if k < bound {
			n++
		}
	}
	return n
}

// bytesOf is a word as it is in memory.
func bytesOf(v uint64) []byte {
	b, w := words(1)
	w[0] = v
	return b
}
