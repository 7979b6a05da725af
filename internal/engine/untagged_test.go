package engine

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/memory"
	"github.com/goiwarp/iwarp/rdmap"
)

// set changes one field of a segment's header.
func qn(n uint32) func(*ddp.Header)      { return func(h *ddp.Header) { h.QN = n } }
func msn(n uint32) func(*ddp.Header)     { return func(h *ddp.Header) { h.MSN = n } }
func version(n uint8) func(*ddp.Header)  { return func(h *ddp.Header) { h.Version = n } }
func control(n uint8) func(*ddp.Header)  { return func(h *ddp.Header) { h.RsvdULP = n } }
func tagged(yes bool) func(*ddp.Header)  { return func(h *ddp.Header) { h.Tagged = yes } }
func opcode(n uint8) func(*ddp.Header)   { return control(1<<6 | n) }
func rdmapVer(n uint8) func(*ddp.Header) { return control(n<<6 | uint8(rdmap.OpSend)) }

// Proves D36, D37, D38, D41, D43, P01, P05, P07, P10, P47, P48, P49, P53, P55, P56: the
// first segment that no rule allows ends the connection with its code.
// Proves D29: the connection is kept for the Terminate.
func TestSegmentErrors(t *testing.T) {
	ten := numbered(10)
	read := rdmap.ReadRequest{}
	for _, tt := range []struct {
		name string
		good []fpdu // taken
		bad  fpdu
		code rdmap.Code
	}{
		{"queue 4", nil, send(1, ten).with(qn(4)), 0x1201},
		{"Send on queue 3", nil, send(1, ten).with(qn(3)), 0x0206},
		{"queue 2^32-1", nil, send(1, ten).with(qn(math.MaxUint32)), 0x1201},
		{"Send on queue 1", nil, send(1, ten).with(qn(1)), 0x0206},
		{"Send on queue 2", nil, send(1, ten).with(qn(2)), 0x0206},
		{"Read Request on queue 0", nil, request(1, read).with(qn(0)), 0x0206},
		{"Terminate on queue 0", nil, terminate(0).with(qn(0)), 0x0206},

		{"MSN 0", nil, send(0, ten), 0x1203},
		{"MSN skipped", []fpdu{send(1, ten)}, send(3, ten), 0x1203},
		{"MSN repeated", []fpdu{send(1, ten)}, send(1, ten), 0x1203},
		{"first MSN skipped", nil, send(2, nil), 0x1203},
		{"MSN of a Read skipped", []fpdu{request(1, read)}, request(3, read), 0x1203},
		{"MSN of a Read repeated", []fpdu{request(1, read)}, request(1, read), 0x1203},
		{"no receive", []fpdu{send(1, ten), send(2, ten)}, send(3, nil), 0x1202},

		{"MO of a first segment", nil, send(1, ten).at(1), 0x1204},
		{"gap", []fpdu{send(1, ten).more()}, send(1, ten[:5]).at(11), 0x1204},
		{"MO after the receive", nil, send(1, ten).at(21), 0x1204},
		{"MO 2^32-1", nil, send(1, ten).with(func(h *ddp.Header) { h.MO = math.MaxUint32 }), 0x1204},
		{"MO of a Read Request", nil, request(1, read).at(28), 0x1205},
		{"one byte too long", nil, send(1, numbered(21)), 0x1205},
		{"one byte too long in the second segment", []fpdu{send(1, ten).more()}, send(1, numbered(11)).at(10), 0x1205},
		{"two Sends interleaved", []fpdu{send(1, ten).more()}, send(2, ten), 0x1203},
		{"last flag missing", []fpdu{send(1, ten).more(), send(1, ten).at(10).more()}, send(2, nil), 0x1203},
		{"last flag missing in a Read Request", nil, request(1, read).more(), 0x0207},

		{"DDP version 0, untagged", nil, send(1, ten).with(version(0)), 0x1206},
		{"DDP version 3, untagged", nil, send(1, ten).with(version(3)), 0x1206},
		{"DDP version 2, tagged", nil, write(1, 0, nil).with(version(2)), 0x1104},
		{"RDMAP version 0", nil, send(1, ten).with(rdmapVer(0)), 0x0205},
		{"RDMAP version 2", nil, send(1, ten).with(rdmapVer(2)), 0x0205},
		{"RDMAP version 3", nil, send(1, ten).with(rdmapVer(3)), 0x0205},
		{"RDMAP version 3 in a Terminate", nil, terminate(0).with(control(3<<6 | 7)), 0x0205},

		{"Send, tagged", nil, send(1, ten).with(tagged(true)), 0x0206},
		{"Write, untagged", nil, write(1, 0, nil).with(tagged(false)), 0x0206},
		{"Read Request, tagged", nil, request(1, read).with(tagged(true)), 0x0206},
		{"Terminate, tagged", nil, terminate(0).with(tagged(true)), 0x0206},
		{"Read Request one byte short", nil, message(rdmap.OpReadRequest, numbered(27)), 0x0207},
		{"Read Request one byte long", nil, message(rdmap.OpReadRequest, numbered(29)), 0x0207},
		{"Read Response, unasked", nil, response(1, 0, ten), 0x0206},
		{"Read Response without bytes, unasked", nil, response(1, 0, nil), 0x0206},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := responder(t)
			r := p.region(make([]byte, 40), memory.LocalWrite)
			p.receive(1, SGE{Region: r, Offset: 0, Length: 15}, SGE{Region: r, Offset: 15, Length: 5})
			p.receive(2, SGE{Region: r, Offset: 20, Length: 20})
			p.send(tt.good...)
			for range tt.good {
				if f, ok := p.next(); ok && rdmap.OpcodeOf(&f.H) == rdmap.OpTerminate {
					t.Fatalf("refused too early: %v", p.Machine.Cause())
				}
			}
			p.send(tt.bad)
			p.wantTerminate(terminateFor(tt.code, tt.bad))
			p.wantCause(tt.code, false)
			p.wantState(Error)
		})
	}
}

// Proves P07: the opcodes that do not exist are not known here, on any queue and tagged.
func TestUnknownOpcodes(t *testing.T) {
	for op := uint8(rdmap.Opcodes); op < 16; op++ {
		for _, f := range []fpdu{send(1, nil), send(1, nil).with(qn(1)), send(1, nil).with(qn(2)), write(1, 0, nil)} {
			f = f.with(opcode(op))
			p := responder(t)
			p.receive(1)
			p.send(f)
			p.wantTerminate(terminateFor(0x0206, f))
			p.completion(flushed(1, OpReceive))
		}
	}
}

// Proves P30, D38: a message longer than its receive completes that in error,
// surfaces, and leaves the memory after it alone.
func TestSendTooLong(t *testing.T) {
	p := responder(t)
	buf := make([]byte, 12)
	r := p.region(buf, memory.LocalWrite)
	p.receive(1, SGE{Region: r, Offset: 0, Length: 10})
	p.receive(2)
	bad := send(1, numbered(2)).at(9)
	p.send(send(1, numbered(9)).more(), bad)
	p.wantTerminate(terminateFor(0x1205, bad))
	p.completion(failed(1, OpReceive, StatusLocalLength), flushed(2, OpReceive))
	if buf[9] != 0 || buf[10] != 0 || buf[11] != 0 {
		t.Errorf("%v", buf)
	}
}

// Proves P29: an empty receive takes an empty Send; a Send without a receive is
// refused even if it is empty.
func TestEmptySend(t *testing.T) {
	p := responder(t)
	p.receive(1)
	p.send(send(1, nil))
	p.completion(success(1, OpReceive, 0))
	p.send(send(2, nil))
	p.wantTerminate(terminateFor(0x1202, send(2, nil)))
}

// Proves D24, D27, D28: a Send's segments come in any order but for the last, and are
// scattered over the elements of its receive, empty ones too.
// Proves Z30: what is unusual about it is counted.
func TestScatter(t *testing.T) {
	p := responder(t)
	buf := make([]byte, 20)
	r := p.region(buf, memory.LocalWrite)
	p.receive(1, SGE{Region: r, Offset: 15, Length: 5}, SGE{}, SGE{Region: r, Offset: 10, Length: 1},
		SGE{Region: r, Offset: 0, Length: 6})
	b := []byte("abcdefghijk")
	p.send(send(1, b[4:8]).at(4).more(), send(1, b[0:4]).more(), send(1, nil).at(3).more(), send(1, b[8:]).at(8))
	p.completion(success(1, OpReceive, 11))
	if want := "ghijk\x00\x00\x00\x00\x00f\x00\x00\x00\x00abcde"; string(buf) != want {
		t.Errorf("%q, want %q", buf, want)
	}
	if got := p.Machine.Stats().Odd; got.Disorder != 3 || got.Empty != 1 {
		t.Errorf("%+v", got)
	}
}

// Tagged and untagged messages may interleave.
//
// Proves D24, D26, P43: a Send and a Write under way at the same time, and a Read
// Request between.
func TestInterleaved(t *testing.T) {
	p := responder(t)
	buf := make([]byte, 20)
	r := p.region(buf, remoteAll)
	p.receive(1, SGE{Region: r, Offset: 0, Length: 10})
	p.send(send(1, []byte("ab")).more(), write(r.STag(), 10, []byte("AB")).more(),
		request(1, rdmap.ReadRequest{SinkSTag: 5}),
		send(1, []byte("cd")).at(2).more(), write(r.STag(), 12, []byte("CD")), send(1, []byte("ef")).at(4))
	p.want(response(5, 0, nil))
	p.completion(success(1, OpReceive, 6))
	if !bytes.Equal(buf, []byte("abcdef\x00\x00\x00\x00ABCD\x00\x00\x00\x00\x00\x00")) {
		t.Errorf("%q", buf)
	}
}

// The memory of a receive is judged when bytes come: 0x0000 without headers, as
// the fault is the consumer's.
func TestReceiveMemory(t *testing.T) {
	for _, tt := range []struct {
		name string
		sge  func(c *regions) SGE
		want Status
	}{
		{"no local write", func(c *regions) SGE { return all(c.read, 10) }, StatusLocalAccess},
		{"another Protection Domain", func(c *regions) SGE { return all(c.other, 10) }, StatusLocalProtection},
		{"revoked", func(c *regions) SGE { return all(c.gone, 10) }, StatusLocalProtection},
		{"invalidated", func(c *regions) SGE { return all(c.void, 10) }, StatusLocalProtection},
		{"no region", func(*regions) SGE { return SGE{Length: 10} }, StatusLocalProtection},
		{"after the region", func(c *regions) SGE { return SGE{Region: c.r, Offset: 30, Length: 10} },
			StatusLocalProtection},
		{"before the region", func(c *regions) SGE { return SGE{Region: c.r, Offset: -1, Length: 10} },
			StatusLocalProtection},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newRegions(responder(t))
			c.receive(1, SGE{Region: c.r, Length: 0}, tt.sge(c))
			c.receive(2)
			c.send(send(1, []byte("abc")))
			c.wantTerminate(terminate(0x0000))
			c.completion(failed(1, OpReceive, tt.want), flushed(2, OpReceive))
			c.untouched()
		})
	}
}

// A source is a Shared Receive Queue.
type shared struct {
	work []RecvWork
	shut bool // nobody posts to it any more
}

func (s *shared) Take(dst *RecvWork) bool {
	if len(s.work) == 0 {
		return false
	}
	*dst, s.work = s.work[0], s.work[1:]
	return true
}

func (s *shared) Refusal() string { return "none is left" }

func (s *shared) Awaits() bool { return !s.shut }

// Without SendTimeout a Send may hold a shared receive for ever.
func TestNoSendTimeout(t *testing.T) {
	source := &shared{}
	p := responder(t, func(s *setup) { s.Source = source })
	r := p.region(make([]byte, 10), remoteAll)
	source.work = []RecvWork{{ID: 1, SGL: listOf(all(r, 10))}}
	p.send(send(1, []byte("abc")).more())
	if at := p.Machine.Deadline(); !at.IsZero() {
		t.Errorf("a deadline in %v", at.Sub(p.clock))
	}
	p.send(send(1, []byte("de")).at(3))
	p.completion(success(1, OpReceive, 5))
}

// A Send that holds a shared receive has to be complete in time: SendTimeout, and a
// second for each 64 KiB of it. Where the QP has receives of its own it may take as long
// as it likes.
//
// Proves Z21, Z32.
func TestSendTimeout(t *testing.T) {
	const timeout = 10 * time.Second
	begin := func(own bool) *peer {
		srq := &shared{}
		p := responder(t, func(s *setup) {
			s.SendTimeout = timeout
			if !own {
				s.Source = srq
			}
		})
		r := p.region(make([]byte, 256<<10), memory.LocalWrite)
		for id := range uint64(2) {
			w := RecvWork{ID: id + 1, SGL: listOf(all(r, 256<<10))}
			if srq.work = append(srq.work, w); own {
				p.receive(w.ID, w.SGL.Elements()[0])
			}
		}
		p.send(send(1, []byte("a")).more())
		return p
	}
	p := begin(false)
	p.advance(timeout - 1)
	p.send(send(1, []byte("b")).at(1).more()) // a byte in time does not help
	p.advance(time.Millisecond)
	p.wantTerminate(terminate(rdmap.CodeCatastrophicStream))
	p.completion(flushed(1, OpReceive))
	if !errors.Is(p.Machine.Cause(), ErrTimeout) || !strings.Contains(p.Machine.Cause().Error(), "2 bytes") {
		t.Error(p.Machine.Cause())
	}

	p = begin(false)
	p.send(send(1, make([]byte, 64000)).at(1).more(), send(1, make([]byte, 64000)).at(64001).more(),
		send(1, make([]byte, 3071)).at(128001).more())
	p.advance(timeout + 2*time.Second - 1)
	p.wantState(RTS)
	p.send(send(1, nil).at(131072))
	p.completion(success(1, OpReceive, 131072))
	p.advance(time.Hour)
	p.send(send(2, []byte("a")).more()) // the next has its own time
	p.advance(timeout - 1)
	p.wantState(RTS)
	p.advance(time.Millisecond)
	p.wantState(Terminate)

	p = begin(false)
	p.advance(timeout - 1)
	ends := p.w.Append(nil, send(1, nil).at(1).ulpdu())
	p.sendBytes(append(ends, p.w.Append(nil, send(2, []byte("a")).more().ulpdu())...)) // the next begins at once
	p.completion(success(1, OpReceive, 1))
	p.advance(timeout - 1)
	p.wantState(RTS)
	p.advance(time.Millisecond)
	p.wantState(Terminate)

	p = begin(true)
	p.advance(time.Hour)
	p.wantState(RTS)
}

// Receives of a Shared Receive Queue: one taken for a message under way is flushed
// with the connection, those not taken stay, and a segment of another message
// takes none.
func TestSharedReceives(t *testing.T) {
	for _, tt := range []struct {
		name string
		bad  fpdu
		code rdmap.Code
		left int
		done []Completion
	}{
		{"in the middle of a message", send(2, nil).at(7), 0x1204, 1, []Completion{flushed(2, OpReceive)}},
		{"another message", send(3, nil), 0x1203, 2, nil},
		{"too long", send(2, numbered(5)), 0x1205, 1, []Completion{failed(2, OpReceive, StatusLocalLength)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srq := &shared{}
			p := responder(t, func(s *setup) { s.Source = srq })
			r := p.region(make([]byte, 4), memory.LocalWrite)
			for id := range uint64(3) {
				srq.work = append(srq.work, RecvWork{ID: id + 1, SGL: listOf(all(r, 4))})
			}
			if err := p.Machine.PostReceive(&RecvWork{}); err == nil {
				t.Error("posted beside the Shared Receive Queue")
			}
			p.send(send(1, numbered(4)))
			p.completion(success(1, OpReceive, 4))
			p.send(tt.bad)
			p.wantTerminate(terminateFor(tt.code, tt.bad))
			p.completion(tt.done...)
			p.noCompletion()
			if len(srq.work) != tt.left {
				t.Errorf("%d receives are left, want %d", len(srq.work), tt.left)
			}
		})
	}
}

// A message whose segments overlap, and leave a gap as long as that, is not delivered:
// in the gap there is still what another peer has sent to that memory.
//
// Proves D27, Z12.
func TestSendWithGap(t *testing.T) {
	p := responder(t)
	buf := numbered(128)
	p.receive(1, all(p.region(buf, memory.LocalWrite), 128))
	again, last := send(1, make([]byte, 32)).more(), send(1, make([]byte, 64)).at(64)
	p.send(again, again, last)
	p.wantTerminate(terminateFor(0x1204, last))
	p.completion(flushed(1, OpReceive))
	p.noCompletion()
}
