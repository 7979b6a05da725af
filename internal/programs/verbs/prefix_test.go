//go:build linux && (amd64 || arm64)

package verbs

import (
	"encoding/binary"
	"net"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// met are two queues with a connection. The receives of the second may be those of a Shared Receive Queue.
func met(t *testing.T) (a, b *queue) {
	t.Helper()
	a, b = roce(t), roce(t)
	a.meet(b.number)
	b.meet(a.number)
	return a, b
}

// sendImm posts a Send with Immediate Data of a region's bytes, in elements of so many.
func (q *queue) sendImm(id uint64, r *region, each, flags, imm uint32) syscall.Errno {
	var sgl []SGE
	for at := uint32(0); at < uint32(len(r.memory)); at += each {
		sgl = append(sgl, SGE{Addr: r.at() + uint64(at), Length: min(each, uint32(len(r.memory))-at), LKey: r.key})
	}
	wr := &SendWR{ID: id, SGEs: int32(len(sgl)), Opcode: wrSendImm, Flags: flags, Imm: imm}
	if len(sgl) > 0 {
		wr.SGL = &sgl[0]
	}
	_, errno := q.d.PostSend(q.qp, wr)
	return errno
}

// immediate is Immediate Data as it lies in memory.
func immediate(network uint32) uint32 {
	return binary.NativeEndian.Uint32(binary.BigEndian.AppendUint32(nil, network))
}

// wantRecv waits for the completion of a receive.
func (q *queue) wantRecv(id uint64, length int, opcode, flags, imm uint32) {
	q.t.Helper()
	want(q.t, "receive", q.completion(), received(q, id, length, opcode, flags, imm))
}

// received is the completion of a receive of q.
func received(q *queue, id uint64, length int, opcode, flags, imm uint32) WC {
	return WC{ID: id, Opcode: opcode, ByteLen: uint32(length), QPNum: q.number, Flags: flags, Invalidated: imm}
}

// TestSendImmediate has Sends with immediate data in both directions, of several elements, inline, of nothing, and
// between Sends and Writes that have some of their own and none: the payload is in the receive, and its length and the
// data are in the completion.
func TestSendImmediate(t *testing.T) {
	a, b := met(t)
	for _, way := range [][2]*queue{{a, b}, {b, a}} {
		from, to := way[0], way[1]
		got := to.region("....................", accessLocalWrite|accessRemoteWrite)
		for id := range uint64(6) {
			_, errno := to.d.PostRecv(to.qp, &RecvWR{ID: id,
				SGL: &SGE{Addr: got.at() + 3*id, Length: 3, LKey: got.key}, SGEs: 1})
			must(t, errno)
		}
		r := from.region("abc", 0)
		must(t, from.sendImm(10, r, 2, 0, immediate(0x01020304)))
		from.send(11, wrSend, from.region("def", 0), nil)
		must(t, from.sendImm(12, from.region("gh", 0), 1, sendInline, immediate(5)))
		must(t, from.sendImm(13, &region{}, 1, sendSolicited, 0))
		_, errno := from.d.PostSend(from.qp, &SendWR{ID: 14, SGL: r.sge(), SGEs: 1, Opcode: wrWriteImm,
			Imm: immediate(6), RemoteAddr: got.at() + 15, RKey: got.key})
		must(t, errno)
		must(t, from.sendImm(15, from.region("jkl", 0), 3, sendFence, immediate(7)))
		for id := range uint64(6) {
			wc := from.completion()
			want(t, "request", [2]uint32{uint32(wc.ID), wc.Status}, [2]uint32{uint32(id) + 10, 0})
		}
		to.wantRecv(0, 3, wcRecv, wcWithImm, immediate(0x01020304))
		to.wantRecv(1, 3, wcRecv, 0, 0)
		to.wantRecv(2, 2, wcRecv, wcWithImm, immediate(5))
		to.wantRecv(3, 0, wcRecv, wcWithImm, 0)
		to.wantRecv(4, 3, wcRecvImm, wcWithImm, immediate(6))
		to.wantRecv(5, 3, wcRecv, wcWithImm, immediate(7))
		want(t, "bytes", string(got.memory), "abcdefgh......."+"jkl..")
	}
}

// TestSendImmediateRNR: one that finds no receive waits, and so does one that was posted before there was a connection.
// Receives may be those of a Shared Receive Queue.
func TestSendImmediateRNR(t *testing.T) {
	p, a := newProgramWith(t, Config{RoCE: true}), roce(t)
	srq, errno := p.d.CreateSRQ(p.context, p.pd, 10, 1, 1)
	must(t, errno)
	b := p.queueOf(srq)
	a.meet(b.number)
	must(t, a.sendImm(1, a.region("early", 0), 9, 0, immediate(1)))
	b.meet(a.number)
	must(t, a.sendImm(2, a.region("late", 0), 9, 0, immediate(2)))
	back := a.region("....", accessLocalWrite)
	b.send(3, wrRead, b.region("....", accessLocalWrite|accessRemoteWrite), a.region("read", accessRemoteRead))
	b.completion()
	got := b.region("........", accessLocalWrite)
	for id := range uint64(2) {
		_, errno := p.d.PostSRQ(srq, &RecvWR{ID: id, SGL: &SGE{Addr: got.at(), Length: 5, LKey: got.key}, SGEs: 1})
		must(t, errno)
		b.wantRecv(id, []int{5, 4}[id], wcRecv, wcWithImm, immediate(uint32(id)+1))
		want(t, "bytes", string(got.memory), []string{"early...", "latey..."}[id])
	}
	a.recv(4, back)
	must(t, b.sendImm(5, b.region("tell", 0), 4, 0, immediate(3)))
	// What b sent may overtake that b received: the two queues have no order between them.
	completed := map[uint64]WC{}
	for range 3 {
		wc := a.completion()
		completed[wc.ID] = wc
	}
	want(t, "the first Send", completed[1].Status, 0)
	want(t, "the second Send", completed[2].Status, 0)
	want(t, "the receive", completed[4], received(a, 4, 4, wcRecv, wcWithImm, immediate(3)))
}

// TestSendImmediateTooLong: a receive has to be as long as the payload, and no longer.
func TestSendImmediateTooLong(t *testing.T) {
	a, b := met(t)
	b.recv(1, b.region("...", accessLocalWrite))
	must(t, a.sendImm(2, a.region("four", 0), 4, 0, 0))
	want(t, "the receive", b.completion().Status, statusOf(iwarp.StatusLocalLength))
	want(t, "the Send", a.completion().Status, wcRemoteOperation)
}

// earlier is an end of version 1, which knows no prefixes: an RNIC, and a QP that has a receive.
func earlier(t *testing.T) (*iwarp.RNIC, *iwarp.QP) {
	t.Helper()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	t.Cleanup(func() { _ = rnic.Close() })
	pd, err := rnic.AllocPD()
	if err != nil {
		t.Fatal(err)
	}
	qp, err := pd.CreateQP(iwarp.QPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	mr, err := pd.Register([]byte("........"), iwarp.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mr.Slice(0, 8)}}); err != nil {
		t.Fatal(err)
	}
	return rnic, qp
}

// plainly has a Send go to an end of version 1 and one back, and none with Immediate Data.
func (q *queue) plainly(qp *iwarp.QP) {
	q.t.Helper()
	r := q.region("....", accessLocalWrite)
	q.recv(1, r)
	if err := qp.PostSend(&iwarp.SendWR{Inline: []byte("back")}); err != nil {
		q.t.Fatal(err)
	}
	q.wantRecv(1, 4, wcRecv, 0, 0)
	want(q.t, "bytes", string(r.memory), "back")
	want(q.t, "with Immediate Data", q.sendImm(2, r, 4, 0, 0), syscall.EOPNOTSUPP)
	q.send(3, wrSend, r, nil)
	want(q.t, "the Send", q.completion().Status, 0)
	var wc [1]iwarp.WC
	cq := qp.RecvCQ()
	for cq.Arm(false); cq.Poll(wc[:]) == 0; cq.Arm(false) {
		<-cq.Events()
	}
	want(q.t, "length", wc[0].Length, 4)
}

// TestEarlierCalled: a peer of version 1 refuses a call of version 2 without a word, and gets one of version 1.
func TestEarlierCalled(t *testing.T) {
	t.Run("early", func(t *testing.T) { earlierCalled(t, true) })
	t.Run("late", func(t *testing.T) { earlierCalled(t, false) })
}

func earlierCalled(t *testing.T, early bool) {
	rnic, qp := earlier(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := (&iwarp.ListenConfig{RNIC: rnic}).NewListener(ln)
	t.Cleanup(func() { _ = l.Close() })
	a := roce(t)
	a.number, a.d.qps.get(a.qp).number = 1, 1 // so that it is the one that calls
	a.meet(uint32(addrPort(ln.Addr()).Port()) << 8)
	if early {
		must(t, a.sendImm(9, a.region("early", 0), 5, 0, 0)) // nobody knows as yet
	}
	for _, prefix := range []bool{true, false} {
		r, err := l.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, err := ulpdata.ParseQPCall(r.PrivateData())
		if err != nil || c.Prefix != prefix || c.From != 1 {
			t.Fatalf("%v, %v", c, err)
		}
		if prefix {
			a.d.decline(r)
		} else if err := r.AcceptQP(t.Context(), qp, iwarp.AcceptConfig{MPA: mpa.Answer{IRD: 1, ORD: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if !early {
		a.plainly(qp)
		return
	}
	want(t, "what nobody knew of", a.completion().Status, statusOf(iwarp.StatusUnsupported))
}

// TestEarlierCalls: one of version 1 that calls is taken, and after RESET the next may be of another.
func TestEarlierCalls(t *testing.T) {
	_, qp := earlier(t)
	a, b := roce(t), roce(t)
	must(t, a.d.Meet(a.qp, a.path(1<<8)))
	must(t, a.d.ModifyQP(a.qp, StateRTS))
	c := ulpdata.QPCall{To: a.number, From: 1 << 8, GID: loopback}
	d := iwarp.Dialer{MPA: mpa.Offer{IRD: 1, ORD: 1, PrivateData: c.Append(nil)}}
	if err := d.DialQP(t.Context(), qp, "tcp", (&Path{Number: a.number}).address().String()); err != nil {
		t.Fatal(err)
	}
	a.plainly(qp)
	for _, state := range []uint32{StateErr, StateReset, StateInit} {
		must(t, a.d.ModifyQP(a.qp, state))
	}
	a.meet(b.number)
	b.meet(a.number)
	b.recv(1, b.region("....", accessLocalWrite))
	must(t, a.sendImm(2, a.region("text", 0), 4, 0, immediate(3)))
	b.wantRecv(1, 4, wcRecv, wcWithImm, immediate(3))
}
