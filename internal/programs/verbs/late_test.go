//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
)

// Numbers of enum ibv_wc_status.
const (
	wcLocalProtection = 4
	wcRemoteOperation = 11
)

// TestWrongMemoryLate: in the guise of RoCE a completion tells of a key of nothing, and of a region that the QP must
// not use, as with devices of it; and the peer's tells that there was something.
func TestWrongMemoryLate(t *testing.T) {
	for what, wrong := range map[string]func(q *queue) *SGE{
		"a key of nothing": func(q *queue) *SGE {
			s := q.region("....",
				accessLocalWrite).sge()
			s.LKey += 256
			return s
		},
		"beyond the region": func(q *queue) *SGE {
			s := q.region("........", accessLocalWrite).sge()
			s.Addr += 5
			return s
		},
		"before the region":  func(q *queue) *SGE { s := q.region("....", accessLocalWrite).sge(); s.Addr--; return s },
		"not there any more": func(q *queue) *SGE { return q.vanished().sge() },
		"another PD": func(q *queue) *SGE {
			r := q.region("....", accessLocalWrite)
			other, errno := q.d.AllocPD()
			must(t, errno)
			must(t, q.d.ReregisterMR(r.mr, changePD, other, nil, 0, 0))
			return r.sge()
		},
	} {
		t.Run(what, func(t *testing.T) {
			a, b := roce(t), roce(t)
			a.meet(b.number)
			b.meet(a.number)
			_, errno := b.d.PostRecv(b.qp, &RecvWR{ID: 1, SGL: wrong(b), SGEs: 1})
			must(t, errno)
			a.send(2, wrSend, a.region("good", 0), nil)
			want(t, "the receive", b.completion().Status, wcLocalProtection)
			want(t, "its Send", a.completion().Status, wcRemoteOperation)

			for _, q := range []*queue{a, b} { // once more, while the Terminate may be on its way
				must(t, q.d.ModifyQP(q.qp, StateReset))
				must(t, q.d.ModifyQP(q.qp, StateInit))
			}
			a.meet(b.number)
			b.meet(a.number)
			b.recv(3, b.region("....", accessLocalWrite))
			_, errno = a.d.PostSend(a.qp, &SendWR{ID: 4, SGL: wrong(a), SGEs: 1, Opcode: wrSend})
			must(t, errno)
			want(t, "a Send", a.completion().Status, wcLocalProtection)
		})
	}
}

// TestReceiveTooSmall: in the guise of RoCE a receive that is too small has the QP go to ERR, with the receives after
// it flushed, and one more that is posted then.
func TestReceiveTooSmall(t *testing.T) {
	a, b := met(t)
	b.recv(1, b.region("....", accessLocalWrite))
	b.recv(2, b.region("....", accessLocalWrite))
	a.send(3, wrSend, a.region("good", 0), nil)
	want(t, "a Send that fits", a.completion().Status, 0)
	b.wantRecv(1, 4, wcRecv, 0, 0)
	b.recv(4, b.region("....", accessLocalWrite))
	a.send(5, wrSend, a.region("longer", 0), nil)
	want(t, "the receive", b.completion().Status, statusOf(iwarp.StatusLocalLength))
	want(t, "its Send", a.completion().Status, wcRemoteOperation)
	wc := b.completion()
	want(t, "the one after", [2]uint32{uint32(wc.ID), wc.Status}, [2]uint32{4, statusOf(iwarp.StatusFlushed)})
	state, _, _, errno := b.d.QueryQP(b.qp)
	must(t, errno)
	want(t, "state", state, StateErr)
	b.recv(6, b.region("....", accessLocalWrite))
	want(t, "one more", b.completion().Status, statusOf(iwarp.StatusFlushed))
}

// TestEstablish: a program that brings a QP of its own to librdmacm in the guise of RoCE hears of the connection by a
// ConnectResponse, leads the QP to RTS, and says so, once. It hears of the end in two events.
func TestEstablish(t *testing.T) {
	s, c := newProgramWith(t, Config{RoCE: true}), newProgramWith(t, Config{RoCE: true})
	s.d.timewait, c.d.timewait = 0, 0
	_, at := s.listen(1)
	client, server := c.queue(), s.queue()
	active := c.resolve(2, at)
	want(t, "before there is a connection", c.d.Establish(active), syscall.EINVAL)
	must(t, c.d.Connect(active, client.qp, ConnParam{ResponderResources: 4, InitiatorDepth: 4, Responds: true,
		PrivateData: []byte("hello")}))
	request := s.event(ConnectRequest)
	must(t, s.d.NameID(request.Child, 3))
	must(t, s.d.ModifyQP(server.qp, StateInit))
	must(t, s.d.ModifyQP(server.qp, StateRTR))
	must(t, s.d.Accept(request.Child, server.qp, ConnParam{ResponderResources: 4, InitiatorDepth: 4,
		PrivateData: []byte("yes")}))
	want(t, "private data", string(c.event(ConnectResponse).PrivateData), "yes")
	for _, state := range []uint32{StateInit, StateRTR, StateRTS} {
		must(t, c.d.ModifyQP(client.qp, state))
	}
	must(t, c.d.Establish(active))
	want(t, "once more", c.d.Establish(active), syscall.EINVAL)
	want(t, "INIT when it is established", c.d.ModifyQP(client.qp, StateInit), syscall.EINVAL)
	s.event(Established)
	exchange(t, client, server)
	must(t, c.d.Disconnect(active))
	for _, p := range []*program{c, s} {
		p.event(Disconnected)
		p.event(TimewaitExit)
	}
}
