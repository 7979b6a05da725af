//go:build linux && (amd64 || arm64)

package verbs

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// loopback is the GID of 127.0.0.1.
var loopback = GID(netip.MustParseAddr("127.0.0.1").As16())

// roce returns a queue of a program whose device passes for one of RoCE.
func roce(t *testing.T) *queue {
	t.Helper()
	return newProgramWith(t, Config{RoCE: true}).queue()
}

// TestConfirms: siw is not asked what it has carried out, as its answer may be wrong.
func TestConfirms(t *testing.T) {
	for peer, want := range map[string]bool{"": true, "cxgb4": true, "siw": false} {
		cfg := Config{RoCE: true}
		if peer != "" {
			preset, err := iwarp.LookupPreset(peer)
			must(t, errnoOf(err))
			cfg.Preset = &preset
		}
		q := newProgramWith(t, cfg).queue()
		if got := q.inner().config.Confirm; got != want {
			t.Errorf("%q: %v", peer, got)
		}
	}
}

// meet leads a queue to RTS, with the other as its peer.
func (q *queue) meet(number uint32) {
	q.t.Helper()
	must(q.t, q.d.Meet(q.qp, q.path(number)))
	must(q.t, q.d.ModifyQP(q.qp, StateRTS))
}

func (q *queue) path(number uint32) Path {
	return Path{Local: loopback, Peer: loopback, Number: number, IRD: 4}
}

// byNumber orders two queues.
func byNumber(a, b *queue) (low, high *queue) {
	if a.number > b.number {
		a, b = b, a
	}
	return a, b
}

// exchange has a Send go each way.
func exchange(t *testing.T, a, b *queue) {
	t.Helper()
	for _, way := range [][2]*queue{{a, b}, {b, a}} {
		from, to := way[0], way[1]
		to.recv(1, to.region("........", accessLocalWrite))
		from.send(2, wrSend, from.region("and back", 0), nil)
		wc := from.completion()
		want(t, "status of the Send", [2]uint32{uint32(wc.ID), wc.Status}, [2]uint32{2, 0})
		wc = to.completion()
		want(t, "status of the receive", [3]uint32{uint32(wc.ID), wc.Status, wc.QPNum}, [3]uint32{1, 0, to.number})
	}
}

// TestMeet connects two QPs of different processes, and two of one, by what their numbers and GIDs say, whoever comes
// first. Nobody waits for the other, and what is posted before that has come is sent then.
func TestMeet(t *testing.T) {
	for _, lowFirst := range []bool{true, false} {
		a := roce(t)
		for _, b := range []*queue{roce(t), a.program.queue()} {
			a := a.program.queue()
			first, second := byNumber(a, b)
			if !lowFirst {
				first, second = second, first
			}
			_, errno := first.d.PostSend(first.qp, &SendWR{})
			want(t, "a Send in INIT", errno, syscall.EINVAL)
			must(t, first.d.Meet(first.qp, first.path(second.number)))
			_, errno = first.d.PostSend(first.qp, &SendWR{})
			want(t, "a Send in RTR", errno, syscall.EINVAL)
			must(t, first.d.ModifyQP(first.qp, StateRTS))
			first.send(3, wrSend, first.region("early", 0), nil)
			second.recv(4, second.region(".....", accessLocalWrite))
			second.meet(first.number)
			wc := second.completion()
			want(t, "length", wc.ByteLen, 5)
			first.completion()
			exchange(t, a, b)
		}
	}
}

// TestMeetRNR: a Send that finds no receive waits for one, and a Read after it for the Send. Meanwhile the other end
// reads.
func TestMeetRNR(t *testing.T) {
	a, b := roce(t), roce(t)
	a.meet(b.number)
	b.meet(a.number)
	to, from := a.region("....", accessLocalWrite|accessRemoteWrite), b.region("read", accessRemoteRead)
	a.send(1, wrSend, a.region("wait", 0), nil)
	a.send(2, wrRead, to, from)
	back := b.region("....", accessLocalWrite|accessRemoteWrite)
	b.send(4, wrRead, back, a.region("back", accessRemoteRead))
	b.completion()
	want(t, "bytes", string(back.memory), "back")
	got := b.region("....", accessLocalWrite)
	b.recv(3, got)
	b.completion()
	want(t, "bytes", string(got.memory), "wait")
	a.completion() // of the Send, which has now been received
	wc := a.completion()
	want(t, "Read", [2]uint32{wc.Status, wc.ByteLen}, [2]uint32{0, 4})
	want(t, "bytes", string(to.memory), "read")
}

// TestMeetByLID has no GIDs: then both are on this host.
func TestMeetByLID(t *testing.T) {
	a, b := roce(t), roce(t)
	for _, q := range [][2]*queue{{a, b}, {b, a}} {
		must(t, q[0].d.Meet(q[0].qp, Path{Number: q[1].number}))
		must(t, q[0].d.ModifyQP(q[0].qp, StateRTS))
	}
	exchange(t, a, b)
}

// TestMeetNobody: a peer that is not there fails the first request as one that was tried too often, and what is posted
// after it. Receives come after that.
func TestMeetNobody(t *testing.T) {
	a := roce(t)
	a.recv(1, a.region("....", accessLocalWrite))
	a.meet(ulpdata.QPNumberMask) // port 65535
	r := a.region("gone", 0)
	a.send(2, wrSend, r, nil)
	a.send(3, wrSend, r, nil)
	for _, expected := range [][2]uint32{{2, statusRetryExceeded}, {3, 5}, {1, 5}} {
		wc := a.completion()
		want(t, "completion", [2]uint32{uint32(wc.ID), wc.Status}, expected)
	}
	a.send(4, wrSend, r, nil)
	wc := a.completion()
	want(t, "completion", [2]uint32{uint32(wc.ID), wc.Status}, [2]uint32{4, 5})
}

// TestMeetPeerLeaves: receives are not flushed when the peer goes, but when the program itself has its QP go to ERR,
// and those posted after the peer's end too. What is sent to a peer that has left fails.
func TestMeetPeerLeaves(t *testing.T) {
	a, b := roce(t), roce(t)
	a.meet(b.number)
	b.meet(a.number)
	exchange(t, a, b)
	r := a.region("....", accessLocalWrite)
	a.recv(5, r)
	must(t, b.d.DestroyQP(b.qp))
	peer := a.d.qps.get(a.qp)
	<-peer.qp.Done()
	var wc [1]WC
	want(t, "completions", a.d.Poll(a.cq, wc[:]), 0)
	a.recv(6, r)
	want(t, "completions", a.d.Poll(a.cq, wc[:]), 0)
	state, _, _, errno := a.d.QueryQP(a.qp)
	must(t, errno)
	want(t, "state", state, StateRTS)
	a.send(7, wrSend, r, nil)
	for _, expected := range [][2]uint32{{7, statusRetryExceeded}, {5, 5}, {6, 5}} {
		wc := a.completion()
		want(t, "completion", [2]uint32{uint32(wc.ID), wc.Status}, expected)
	}
}

// TestMeetAgain: ERR at one end loses nothing that was completed before, and after RESET a QP meets another.
func TestMeetAgain(t *testing.T) {
	a, b, c := roce(t), roce(t), roce(t)
	a.meet(b.number)
	b.meet(a.number)
	got := b.region("....", accessLocalWrite)
	b.recv(1, got)
	a.send(2, wrSend, a.region("last", 0), nil)
	a.completion()
	must(t, a.d.ModifyQP(a.qp, StateErr))
	b.completion()
	want(t, "bytes", string(got.memory), "last")
	must(t, a.d.ModifyQP(a.qp, StateReset))
	must(t, a.d.ModifyQP(a.qp, StateInit))
	a.meet(c.number)
	c.meet(a.number)
	exchange(t, a, c)
}

// TestMeetReset: RESET drops what a QP has completed before, and nothing of another with the same CQ.
func TestMeetReset(t *testing.T) {
	a, b, c := roce(t), roce(t), roce(t)
	other := &queue{program: a.program, cq: a.cq, completions: a.completions, fd: a.fd}
	var errno syscall.Errno
	other.qp, other.number, errno = a.d.CreateQP(QPAttr{
		Context: a.context, PD: a.pd, SendCQ: a.cq, RecvCQ: a.cq, SendDepth: 16, RecvDepth: 16, SendSGEs: 1,
		RecvSGEs: 1, MaxInline: 64, SignalAll: true, Token: 78,
	})
	must(t, errno)
	must(t, a.d.ModifyQP(other.qp, StateInit))
	for _, pair := range [][2]*queue{{a, b}, {other, c}} {
		pair[0].meet(pair[1].number)
		pair[1].meet(pair[0].number)
	}
	r := a.region("....", accessLocalWrite)
	for id := range uint64(3) {
		for _, pair := range [][2]*queue{{a, b}, {other, c}} {
			pair[1].recv(id, pair[1].region("....", accessLocalWrite))
			pair[0].send(id, wrSend, r, nil)
			pair[1].completion()
		}
	}
	a.recv(9, r)
	other.send(3, wrRead, r, c.region("read", accessRemoteRead)) // its completion comes after those of its Sends
	must(t, a.d.ModifyQP(a.qp, StateErr))
	must(t, a.d.ModifyQP(a.qp, StateReset))
	for id := range uint64(4) {
		wc := a.completion()
		want(t, "completion", [2]uint32{uint32(wc.ID), wc.QPNum}, [2]uint32{uint32(id), other.number})
	}
	var wc [1]WC
	want(t, "completions", a.d.Poll(a.cq, wc[:]), 0)
}

// TestAllow: the flags of the QP say what the peer may do, whatever the region allows.
func TestAllow(t *testing.T) {
	a, b := roce(t), roce(t)
	must(t, b.d.AllowQP(b.qp, accessRemoteRead))
	want(t, "no QP", b.d.AllowQP(0, 0), syscall.EINVAL)
	a.meet(b.number)
	b.meet(a.number)
	to := b.region("text", accessLocalWrite|accessRemoteWrite|accessRemoteRead)
	r := a.region("....", accessLocalWrite)
	a.send(1, wrRead, r, to)
	a.completion()
	want(t, "bytes", string(r.memory), "text")
	a.send(2, wrWrite, a.region("more", 0), to)
	want(t, "status", a.completion().Status, statusOf(iwarp.StatusRemoteAccess))
	want(t, "bytes", string(to.memory), "text")
	a.send(3, wrWrite, r, to)
	want(t, "status", a.completion().Status, statusOf(iwarp.StatusFlushed))
}

// TestMeetStranger: a request of another QP than the one that is waited for is refused, and so is what is no call. The
// peer still gets through.
func TestMeetStranger(t *testing.T) {
	a, b := byNumber(roce(t), roce(t))
	stranger := roce(t)
	stranger.d.qps.get(stranger.qp).number = 1
	must(t, stranger.d.Meet(stranger.qp, stranger.path(b.number)))
	b.meet(a.number)
	a.meet(b.number)
	exchange(t, a, b)
	plain := newProgram(t).queue()
	want(t, "in another guise", plain.d.Meet(plain.qp, plain.path(a.number)), syscall.EINVAL)
	want(t, "twice", a.d.Meet(a.qp, a.path(b.number)), syscall.EINVAL)
	want(t, "no number", a.program.queue().meetNumber(0), syscall.EINVAL)
}

func (q *queue) meetNumber(n uint32) syscall.Errno { return q.d.Meet(q.qp, q.path(n)) }

// TestNumbers has more QPs than a port has numbers: there are several ports, and no number is given twice, nor soon
// again.
func TestNumbers(t *testing.T) {
	d := NewDevice(Config{RoCE: true})
	t.Cleanup(func() { _ = d.Close() })
	seen := make(map[uint32]bool)
	take := func() uint32 {
		n, err := d.ports.allocate(d)
		if err != nil || seen[n] || n > ulpdata.QPNumberMask {
			t.Fatalf("%#x: %v", n, err)
		}
		seen[n] = true
		return n
	}
	for range 3 * inUseAtMost {
		take()
	}
	want(t, "ports", len(d.ports.streams), 3)
	for range inUseAtMost {
		n := take()
		d.ports.give(n)
	}
	want(t, "ports", len(d.ports.streams), 4)
}

// TestMeetLastWQE: a program hears once that a QP takes no more of its Shared Receive Queue, and with ERR, not when the
// peer goes.
func TestMeetLastWQE(t *testing.T) {
	p, b := newProgramWith(t, Config{RoCE: true}), roce(t)
	srq, errno := p.d.CreateSRQ(p.context, p.pd, 10, 1, 1)
	must(t, errno)
	a := p.queueOf(srq)
	a.meet(b.number)
	b.meet(a.number)
	b.recv(1, b.region("....", accessLocalWrite))
	a.send(2, wrSend, a.region("last", 0), nil)
	a.completion()
	must(t, b.d.DestroyQP(b.qp))
	<-p.d.qps.get(a.qp).qp.Done()
	want(t, "readable", readable(t, p.async), false)
	for range 2 {
		must(t, p.d.ModifyQP(a.qp, StateErr))
	}
	wait(t, p.async)
	e, errno := p.d.NextAsync(p.context)
	must(t, errno)
	want(t, "event", e, AsyncEvent{asyncLastWQE, 78})
	must(t, p.d.ModifyQP(a.qp, StateReset))
	_, errno = p.d.NextAsync(p.context)
	want(t, "another", errno, syscall.EAGAIN)
}
