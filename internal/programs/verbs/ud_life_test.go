//go:build linux && (amd64 || arm64)

package verbs

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/programs/datagram"
	"github.com/goiwarp/iwarp/internal/ulpdata"
)

// TestDatagramStates: receives from INIT on, Sends from RTS on, and no step left out.
func TestDatagramStates(t *testing.T) {
	q := newProgramWith(t, Config{RoCE: true}).unready()
	modify := func(to uint32, expected syscall.Errno) {
		t.Helper()
		want(t, "modify", q.d.ModifyUD(q.qp, to), expected)
	}
	recv := func() syscall.Errno {
		_, errno := q.d.RecvDatagrams(q.qp, &RecvWR{})
		return errno
	}
	want(t, "a receive in RESET", recv(), syscall.EINVAL)
	modify(StateRTR, syscall.EINVAL)
	modify(StateInit, fine)
	modify(StateInit, fine)
	want(t, "a receive in INIT", recv(), fine)
	modify(StateRTS, syscall.EINVAL)
	modify(StateRTR, fine)
	want(t, "a Send in RTR", q.post(q.to(q.number)), syscall.EINVAL)
	modify(StateRTS, fine)
	modify(StateRTS, fine)
	modify(StateSQD, syscall.EOPNOTSUPP)
	modify(StateSQE, syscall.EINVAL)
	for range 7 {
		want(t, "a receive in RTS", recv(), fine)
	}
	want(t, "one more", recv(), syscall.ENOMEM)
	modify(StateErr, fine)
	for range 8 {
		want(t, "of ERR", q.completion().Status, statusOf(iwarp.StatusFlushed))
	}
	want(t, "a receive in ERR", recv(), fine)
	modify(StateReset, fine)
	var none [1]WC
	want(t, "of RESET", q.d.Poll(q.cq, none[:]), 0)
	modify(StateInit, fine)
}

// TestDatagramFull: a request is outstanding until its completion is polled, and one more than the Send Queue has room
// for is ENOMEM. What needs no completion is not outstanding.
func TestDatagramFull(t *testing.T) {
	p := newProgramWith(t, Config{RoCE: true})
	u := p.few(64)
	var wcs [64]WC
	for range 2 {
		for i := range uint64(100) {
			must(t, u.post(u.wr(i, 0)))
		}
		for i := range uint64(4) {
			must(t, u.post(u.wr(i, sendSignaled)))
		}
		want(t, "a fifth", u.post(u.wr(5, sendSignaled)), syscall.ENOMEM)
		want(t, "one", p.d.Poll(u.cq, wcs[:1]), 1)
		must(t, u.post(u.wr(6, sendSignaled)))
		want(t, "one more", u.post(u.wr(7, 0)), syscall.ENOMEM)
		want(t, "the rest", p.d.Poll(u.cq, wcs[:]), 4)
		want(t, "the last", wcs[3].ID, 6)
	}
	for i := range uint64(4) {
		must(t, u.post(u.wr(i, sendSignaled)))
	}
	u.steps(StateReset, StateInit, StateRTR, StateRTS)
	must(t, u.post(u.wr(8, sendSignaled)))
	u.steps(StateErr)
	must(t, u.post(u.wr(9, 0)))
	want(t, "of both", p.d.Poll(u.cq, wcs[:]), 2)
	want(t, "flushed", wcs[1].Status, statusOf(iwarp.StatusFlushed))
}

// TestDatagramOverflow: completions for which a CQ has no room are lost, and an event says so.
func TestDatagramOverflow(t *testing.T) {
	p := newProgramWith(t, Config{RoCE: true})
	u := p.few(2)
	for i := range uint64(2) {
		must(t, u.post(u.wr(i, sendSignaled)))
	}
	_, errno := p.d.NextAsync(p.context)
	want(t, "an event", errno, syscall.EAGAIN)
	must(t, u.post(u.wr(3, sendSignaled)))
	e, errno := p.d.NextAsync(p.context)
	must(t, errno)
	want(t, "event", e, AsyncEvent{asyncCQError, 78})
}

// few is a QP with room for four requests to send, in RTS, and a CQ for so many completions.
func (p *program) few(depth int) *datagrams {
	p.t.Helper()
	u := &datagrams{queue: &queue{program: p}, ah: p.address(loopback, loopback)}
	var errno syscall.Errno
	u.cq, errno = p.d.CreateCQ(p.context, 0, depth, 78)
	must(p.t, errno)
	u.qp, u.number, errno = p.d.CreateUD(QPAttr{Context: p.context, PD: p.pd, SendCQ: u.cq, RecvCQ: u.cq,
		SendDepth: 4, RecvDepth: 1})
	must(p.t, errno)
	u.steps(StateInit, StateRTR, StateRTS)
	return u
}

func (q *datagrams) steps(states ...uint32) {
	q.t.Helper()
	for _, s := range states {
		must(q.t, q.d.ModifyUD(q.qp, s))
	}
}

// wr is a Send to the QP itself.
func (q *datagrams) wr(id uint64, flags uint32) *SendWR {
	wr := q.to(q.number)
	wr.ID, wr.Flags = id, flags
	return wr
}

// TestDatagramWrong refuses requests that make no sense, and what the device does not have.
func TestDatagramWrong(t *testing.T) {
	p := newProgramWith(t, Config{RoCE: true})
	q := p.datagrams()
	for what, spoil := range map[string]func(wr *SendWR){
		"a Write":    func(wr *SendWR) { wr.Opcode = wrWrite },
		"no address": func(wr *SendWR) { wr.datagram().AH = nil },
		"elements":   func(wr *SendWR) { wr.SGEs = 4 },
		"none less":  func(wr *SendWR) { wr.SGEs = -1 },
		"nowhere":    func(wr *SendWR) { wr.SGEs = 1 },
	} {
		wr := q.to(q.number)
		spoil(wr)
		want(t, what, q.post(wr), syscall.EINVAL)
	}
	_, errno := q.d.RecvDatagrams(q.qp, &RecvWR{SGEs: -1})
	want(t, "a receive of less than no elements", errno, syscall.EINVAL)
	_, errno = q.d.RecvDatagrams(q.qp, &RecvWR{SGEs: 1})
	want(t, "a receive of elements that are nowhere", errno, syscall.EINVAL)
	_, errno = q.d.RecvDatagrams(q.qp, &RecvWR{SGEs: 2})
	want(t, "elements of a receive", errno, syscall.EINVAL)
	inline := q.to(q.number, SGE{Length: 8})
	inline.Flags = sendInline
	want(t, "inline data of nowhere", q.post(inline), syscall.EFAULT)
	must(t, p.d.DestroyAH(kindAH|Handle(q.ah.Handle)))
	want(t, "destroyed twice", p.d.DestroyAH(kindAH|Handle(q.ah.Handle)), syscall.EINVAL)
	want(t, "an address that was destroyed", q.post(q.to(q.number)), syscall.EINVAL)
	other, errno := p.d.AllocPD()
	must(t, errno)
	h, errno := p.d.CreateAH(other, loopback, loopback)
	must(t, errno)
	q.ah.Handle = uint32(h)
	want(t, "an address of another PD", q.post(q.to(q.number)), syscall.EINVAL)
	want(t, "a PD with an address", p.d.DeallocPD(other), syscall.EBUSY)
	must(t, p.d.DestroyAH(h))
	must(t, p.d.DeallocPD(other))
	for _, gid := range []string{"::", "0.0.0.0", "255.255.255.255", "224.0.0.1", "ff02::1"} {
		_, errno = p.d.CreateAH(p.pd, loopback, netip.MustParseAddr(gid).As16())
		want(t, gid, errno, syscall.EINVAL)
	}
	_, _, errno = p.d.AnswerAH(new(datagram.Route))
	want(t, "an answer to nothing", errno, syscall.EINVAL)
	wrongUD(t, p, q)
}

func wrongUD(t *testing.T, p *program, q *datagrams) {
	t.Helper()
	good := QPAttr{Context: p.context, PD: p.pd, SendCQ: q.cq, RecvCQ: q.cq, SendDepth: 1, RecvDepth: 1}
	for what, tt := range map[string]struct {
		spoil func(a *QPAttr)
		errno syscall.Errno
	}{
		"an SRQ":    {func(a *QPAttr) { a.SRQ = 1 }, syscall.EOPNOTSUPP},
		"no PD":     {func(a *QPAttr) { a.PD = 0 }, syscall.EINVAL},
		"no CQ":     {func(a *QPAttr) { a.RecvCQ = 0 }, syscall.EINVAL},
		"a depth":   {func(a *QPAttr) { a.RecvDepth = iwarp.MaxQueueDepth + 1 }, syscall.EINVAL},
		"below 0":   {func(a *QPAttr) { a.SendDepth = -1 }, syscall.EINVAL},
		"to inline": {func(a *QPAttr) { a.MaxInline = datagram.MTU + 1 }, syscall.EINVAL},
	} {
		a := good
		tt.spoil(&a)
		_, _, errno := p.d.CreateUD(a)
		want(t, what, errno, tt.errno)
	}
	plain := newProgram(t)
	_, _, errno := plain.d.CreateUD(good)
	want(t, "as an iWARP device", errno, syscall.EOPNOTSUPP)
	_, errno = plain.d.CreateAH(plain.pd, loopback, loopback)
	want(t, "an address there", errno, syscall.EINVAL)
}

// TestDatagramBusy: what a QP uses stays, and after its end its CQ has nothing of it.
func TestDatagramBusy(t *testing.T) {
	p := newProgramWith(t, Config{RoCE: true})
	q := p.datagrams()
	room := q.room(1, 0)
	must(t, q.post(q.to(q.number)))
	want(t, "CQ", p.d.DestroyCQ(q.cq), syscall.EBUSY)
	want(t, "a CQ that is made too small", p.d.ResizeCQ(q.cq, 0), syscall.EINVAL)
	must(t, p.d.DestroyUD(q.qp))
	want(t, "again", p.d.DestroyUD(q.qp), syscall.EINVAL)
	var none [1]WC
	want(t, "completions", p.d.Poll(q.cq, none[:]), 0)
	must(t, p.d.DestroyCQ(q.cq))
	must(t, p.d.DeregisterMR(room.mr))
	want(t, "PD", p.d.DeallocPD(p.pd), syscall.EBUSY)
	must(t, p.d.DestroyAH(kindAH|Handle(q.ah.Handle)))
	must(t, p.d.DeallocPD(p.pd))
}

// TestDatagramSolicited: who has asked for solicited completions only hears of those, and of errors.
func TestDatagramSolicited(t *testing.T) {
	q := newDatagrams(t)
	quiet := q.program.datagrams()
	q.room(1, 0)
	q.room(2, 0)
	q.room(3, 0)
	must(t, q.d.Arm(q.cq, true))
	must(t, quiet.post(quiet.to(q.number)))
	wr := quiet.to(q.number)
	wr.Flags = sendSolicited
	must(t, quiet.post(wr))
	wait(t, q.fd)
	token, errno := q.d.NextCQ(q.completions)
	must(t, errno)
	want(t, "token", token, 77)
	var all [3]WC
	want(t, "completions", q.d.Poll(q.cq, all[:]), 2) // the event was of the second
	want(t, "an event", readable(t, q.fd), false)
	must(t, q.d.Arm(q.cq, false))
	must(t, q.d.Arm(q.cq, true)) // which takes nothing back
	must(t, quiet.post(quiet.to(q.number)))
	wait(t, q.fd)
	_, errno = q.d.NextCQ(q.completions)
	must(t, errno)
	want(t, "completions", q.d.Poll(q.cq, all[:]), 1)
	must(t, q.d.Arm(q.cq, true))
	q.room(4, 0)
	must(t, q.d.ModifyUD(q.qp, StateErr)) // a completion in error is always one to hear of
	want(t, "an event", readable(t, q.fd), true)
}

// TestDatagramBeside has one CQ for datagrams and for a connection.
func TestDatagramBeside(t *testing.T) {
	a, b := roce(t), roce(t)
	a.meet(b.number)
	b.meet(a.number)
	q := a.program.datagrams()
	u, number, errno := a.d.CreateUD(QPAttr{Context: a.context, PD: a.pd, SendCQ: a.cq, RecvCQ: a.cq, SendDepth: 1,
		RecvDepth: 1, RecvSGEs: 1})
	must(t, errno)
	must(t, a.d.SetQKey(u, testQKey))
	for _, state := range []uint32{StateInit, StateRTR} {
		must(t, a.d.ModifyUD(u, state))
	}
	r := a.region(string(make([]byte, datagram.RouteLen)), accessLocalWrite)
	_, errno = a.d.RecvDatagrams(u, &RecvWR{ID: 9, SGL: r.sge(), SGEs: 1})
	must(t, errno)
	must(t, q.post(q.to(number)))
	want(t, "of the datagram", a.completion().ID, 9)
	exchange(t, a, b)
}

// TestDatagramNumbers: QPs have different numbers, and each its port.
func TestDatagramNumbers(t *testing.T) {
	p := newProgramWith(t, Config{RoCE: true})
	q, number := p.datagrams(), p.queue().number
	want(t, "of a connection", number>>8 == q.number>>8, false)
	seen := map[uint32]bool{q.number: true}
	for range 2 * inUseAtMost {
		h, n, errno := p.d.CreateUD(QPAttr{Context: p.context, PD: p.pd, SendCQ: q.cq, RecvCQ: q.cq})
		must(t, errno)
		if seen[n] || n > ulpdata.QPNumberMask {
			t.Errorf("%#x", n)
		}
		seen[n] = true
		if len(seen)%2 == 0 {
			must(t, p.d.DestroyUD(h))
		}
	}
	want(t, "ports", len(p.d.ports.datagrams), 2)
}

// TestDatagramStrange: a QP hears nothing of what others send to its port, and goes on.
func TestDatagramStrange(t *testing.T) {
	q := newDatagrams(t)
	room := q.room(2, 4)
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"),
		portOfNumber(q.number))))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	good := datagram.Header{Destination: q.number, Source: q.number, QKey: testQKey, To: datagram.GID(loopback)}
	packet := append(good.Append(nil, 4), "fake"...)
	for i := range packet {
		if _, err := conn.Write(packet[:i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Write(packet); err != nil { // not from the port that it says
		t.Fatal(err)
	}
	text := q.region("true", 0)
	must(t, q.post(q.to(q.number, *text.sge())))
	want(t, "length", q.received(2).ByteLen, datagram.RouteLen+4)
	want(t, "bytes", string(room.memory[datagram.RouteLen:]), "true")
}
