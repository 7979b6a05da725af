//go:build linux && (amd64 || arm64)

package verbs

import (
	"encoding/binary"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/programs/datagram"
)

const testQKey = 0x1234

// An address is a struct ibv_ah.
type address struct {
	_      [16]byte
	Handle uint32
}

// datagrams is a queue whose QP is of datagrams, in RTS, and an address of loopback.
type datagrams struct {
	*queue
	ah *address
}

func newDatagrams(t *testing.T) *datagrams {
	t.Helper()
	return newProgramWith(t, Config{RoCE: true}).datagrams()
}

func (p *program) datagrams() *datagrams {
	p.t.Helper()
	q := p.unready()
	must(p.t, p.d.ModifyUD(q.qp, StateInit))
	must(p.t, p.d.SetQKey(q.qp, testQKey))
	must(p.t, p.d.ModifyUD(q.qp, StateRTR))
	must(p.t, p.d.ModifyUD(q.qp, StateRTS))
	return q
}

// unready is one in the state RESET.
func (p *program) unready() *datagrams {
	p.t.Helper()
	q := &datagrams{queue: &queue{program: p, fd: eventfd(p.t)}}
	var errno syscall.Errno
	q.completions, errno = p.d.OpenChannel(q.fd, nil)
	must(p.t, errno)
	p.t.Cleanup(func() { must(p.t, p.d.CloseChannel(q.completions)) })
	q.cq, errno = p.d.CreateCQ(p.context, q.completions, 64, 77)
	must(p.t, errno)
	q.qp, q.number, errno = p.d.CreateUD(QPAttr{
		Context: p.context, PD: p.pd, SendCQ: q.cq, RecvCQ: q.cq, SendDepth: 16, RecvDepth: 8, SendSGEs: 3, RecvSGEs: 1,
		MaxInline: 64, SignalAll: true,
	})
	must(p.t, errno)
	q.ah = p.address(loopback, loopback)
	return q
}

func (p *program) address(local, peer GID) *address {
	p.t.Helper()
	h, errno := p.d.CreateAH(p.pd, local, peer)
	must(p.t, errno)
	return &address{Handle: uint32(h)}
}

// to returns a Send to a QP.
func (q *datagrams) to(number uint32, list ...SGE) *SendWR {
	wr := &SendWR{ID: 1, SGL: unsafe.SliceData(list), SGEs: int32(len(list)), Opcode: wrSend}
	args := wr.datagram()
	*(**address)(unsafe.Pointer(&args.AH)) = q.ah
	args.Number, args.QKey = number, testQKey
	return wr
}

func (q *datagrams) post(wr *SendWR) syscall.Errno {
	_, errno := q.d.SendDatagrams(q.qp, wr)
	return errno
}

// room posts a receive of n bytes, after those of the addresses, and returns its memory.
func (q *datagrams) room(id uint64, n int) *region {
	q.t.Helper()
	r := q.region(strings.Repeat(".", datagram.RouteLen+n), accessLocalWrite)
	_, errno := q.d.RecvDatagrams(q.qp, &RecvWR{ID: id, SGL: r.sge(), SGEs: 1})
	must(q.t, errno)
	return r
}

// received waits for the completion of a receive, and of what was sent before or after that.
func (q *datagrams) received(id uint64) (wc WC) {
	q.t.Helper()
	for range 2 {
		if got := q.completion(); got.ID == id {
			wc = got
		}
	}
	want(q.t, "receive", wc.ID, id)
	return wc
}

// TestDatagram: a datagram comes where a receive was posted, with where it is from. The answer goes there.
func TestDatagram(t *testing.T) {
	a, b := newDatagrams(t), newDatagrams(t)
	room := b.room(2, 8)
	text := a.region("question", 0)
	must(t, a.post(a.to(b.number, SGE{text.at(), 5, text.key}, SGE{}, SGE{text.at() + 5, 3, text.key})))
	want(t, "of the sender", a.completion(), WC{ID: 1, QPNum: a.number})
	want(t, "of the receiver", b.completion(), WC{
		ID: 2, Opcode: wcRecv, ByteLen: datagram.RouteLen + 8, QPNum: b.number, SrcQP: a.number,
		Flags: wcWithRoute, SL: overIPv4,
	})
	want(t, "bytes", string(room.memory[datagram.RouteLen:]), "question")
	local, peer, errno := b.d.AnswerAH((*datagram.Route)(room.memory))
	must(t, errno)
	want(t, "addresses", [2]GID{local, peer}, [2]GID{loopback, loopback})
	b.ah = b.address(local, peer)
	a.room(3, 0)
	answer := b.to(a.number)
	answer.Opcode, answer.Flags = wrSendImm, sendInline
	binary.BigEndian.PutUint32((*[4]byte)(unsafe.Pointer(&answer.Imm))[:], 0xfeedface)
	must(t, b.post(answer))
	b.completion()
	want(t, "of the answer", a.completion(), WC{
		ID: 3, Opcode: wcRecv, ByteLen: datagram.RouteLen, QPNum: a.number, SrcQP: b.number,
		Flags: wcWithRoute | wcWithImm, Invalidated: answer.Imm, SL: overIPv4,
	})
}

// TestDatagramInline takes the data of a request at once, up to what was asked for, and whatever its keys are.
func TestDatagramInline(t *testing.T) {
	a := newDatagrams(t)
	room := a.room(2, 64)
	text := []byte(strings.Repeat("i", 64))
	wr := a.to(a.number, SGE{uint64(uintptr(unsafe.Pointer(&text[0]))), 64, 4711})
	wr.Flags = sendInline
	must(t, a.post(wr))
	want(t, "length", a.received(2).ByteLen, datagram.RouteLen+64)
	want(t, "bytes", string(room.memory[datagram.RouteLen:]), string(text))
	wr.SGL.Length++
	want(t, "more", a.post(wr), syscall.EINVAL)
}

// TestDatagramDropped: what has another Q_Key, another number or no receive is lost, and what comes next is not.
func TestDatagramDropped(t *testing.T) {
	a, b := newDatagrams(t), newDatagrams(t)
	text := a.region("text", 0)
	send := func(number, qkey uint32) {
		wr := a.to(number, *text.sge())
		wr.datagram().QKey = qkey
		must(t, a.post(wr))
		want(t, "of the sender", a.completion().Status, 0)
	}
	early := b.program.datagrams()
	send(early.number, testQKey) // it has no receive
	b.room(1, 4)
	b.room(2, 4)
	send(b.number, testQKey+1)
	send(b.number+1, testQKey)
	send(b.number^1<<20, testQKey) // of another port
	must(t, a.d.SetQKey(a.qp, testQKey))
	send(b.number, ownQKey|5) // that of a itself
	wc := b.completion()
	want(t, "of the receiver", [3]uint32{uint32(wc.ID), wc.Status, wc.ByteLen}, [3]uint32{1, 0, datagram.RouteLen + 4})
	early.room(3, 4)
	send(early.number, testQKey)
	want(t, "receive", early.completion().ID, 3)
	var none [1]WC
	want(t, "more", early.d.Poll(early.cq, none[:])+b.d.Poll(b.cq, none[:]), 0)
}

// TestDatagramTooLong: for a receive that is too small it is dropped, and the receive is there for the next. More than
// the MTU is refused.
func TestDatagramTooLong(t *testing.T) {
	a, b := newDatagrams(t), newDatagrams(t)
	text := a.region(strings.Repeat("x", datagram.MTU+1), 0)
	want(t, "more than the MTU", a.post(a.to(b.number, *text.sge())), syscall.EINVAL)
	b.room(1, datagram.MTU)
	small := b.room(2, 15)
	for _, n := range []uint32{datagram.MTU, 16, 15} {
		must(t, a.post(a.to(b.number, SGE{text.at(), n, text.key})))
	}
	for _, expected := range []WC{{ID: 1, ByteLen: datagram.RouteLen + datagram.MTU},
		{ID: 2, ByteLen: datagram.RouteLen + 15}} {
		wc := b.completion()
		want(t, "receive", WC{ID: wc.ID, Status: wc.Status, ByteLen: wc.ByteLen}, expected)
	}
	want(t, "bytes", string(small.memory[datagram.RouteLen:]), strings.Repeat("x", 15))
	state, errno := b.d.QueryUD(b.qp)
	must(t, errno)
	want(t, "state", state, StateRTS)
	must(t, b.d.ModifyUD(b.qp, StateErr))
	b.room(4, 0)
	must(t, b.post(b.to(a.number)))
	for _, id := range []uint64{4, 1} {
		want(t, "after ERR", b.completion(), WC{ID: id, Status: statusOf(iwarp.StatusFlushed), QPNum: b.number})
	}
}

// TestDatagramRights: memory has to be of a region of the same Protection Domain, in its bounds, and writable to
// receive.
func TestDatagramRights(t *testing.T) {
	for what, spoil := range map[string]func(p *program, r *region, s *SGE){
		"no key":       func(_ *program, _ *region, s *SGE) { s.LKey++ },
		"before it":    func(_ *program, _ *region, s *SGE) { s.Addr-- },
		"after it":     func(_ *program, _ *region, s *SGE) { s.Addr++ },
		"the end":      func(_ *program, _ *region, s *SGE) { s.Addr = ^uint64(0) },
		"deregistered": func(p *program, r *region, _ *SGE) { must(t, p.d.DeregisterMR(r.mr)) },
		"another PD": func(p *program, r *region, _ *SGE) {
			other, errno := p.d.AllocPD()
			must(t, errno)
			must(t, p.d.ReregisterMR(r.mr, changePD, other, nil, 0, 0))
		},
	} {
		a := newDatagrams(t)
		text := a.region(strings.Repeat("x", 64), 0)
		s := *text.sge()
		spoil(a.program, text, &s)
		must(t, a.post(a.to(a.number, s)))
		want(t, what, a.completion().Status, statusOf(iwarp.StatusLocalProtection))
		state, errno := a.d.QueryUD(a.qp)
		must(t, errno)
		want(t, what, state, StateErr)
	}
	a := newDatagrams(t)
	fixed := a.region(strings.Repeat("x", 64), 0)
	_, errno := a.d.RecvDatagrams(a.qp, &RecvWR{ID: 5, SGL: fixed.sge(), SGEs: 1})
	must(t, errno)
	must(t, a.post(a.to(a.number)))
	want(t, "not writable", a.received(5).Status, statusOf(iwarp.StatusLocalProtection))
	want(t, "bytes", string(fixed.memory), strings.Repeat("x", 64))
	b := newDatagrams(t)
	short := b.region(strings.Repeat("x", 8+datagram.RouteLen), accessLocalWrite)
	long := SGE{short.at() + 8, datagram.RouteLen + 1, short.key}
	_, errno = b.d.RecvDatagrams(b.qp, &RecvWR{ID: 6, SGL: &long, SGEs: 1})
	must(t, errno)
	must(t, b.post(b.to(b.number)))
	want(t, "longer than its region", b.received(6).Status, statusOf(iwarp.StatusLocalProtection))
}
