//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"testing"
)

// TestDestroyedCQ: events of a completion channel that nobody has fetched go with their CQ, whose pointer the program
// frees next. One of another CQ stays.
func TestDestroyedCQ(t *testing.T) {
	a, b := met(t)
	const other = 90
	cq, errno := a.d.CreateCQ(a.context, a.completions, 4, other)
	must(t, errno)
	must(t, a.d.Arm(a.cq, false))
	b.recv(1, b.region("....", accessLocalWrite))
	a.send(2, wrSend, a.region("text", 0), nil)
	wait(t, a.fd)
	must(t, a.d.Arm(cq, false))
	a.d.cqs.get(cq).complete(added{}, true)
	must(t, a.d.DestroyQP(a.qp))
	must(t, a.d.DestroyCQ(a.cq))
	token, errno := a.d.NextCQ(a.completions)
	must(t, errno)
	want(t, "the event of the CQ that is left", token, other)
	must(t, a.d.Arm(cq, false))
	a.d.cqs.get(cq).complete(added{}, true)
	must(t, a.d.DestroyCQ(cq))
	_, errno = a.d.NextCQ(a.completions)
	want(t, "an event when both are destroyed", errno, syscall.EAGAIN)
	want(t, "readable", readable(t, a.fd), false)
}

// TestDestroyedQP: so do asynchronous events with their QP, and none comes any more.
func TestDestroyedQP(t *testing.T) {
	a, _ := met(t)
	q := a.inner()
	q.raise(asyncQPFatal)
	want(t, "readable", readable(t, a.async), true)
	must(t, a.d.DestroyQP(a.qp))
	q.raise(asyncLastWQE)
	_, errno := a.d.NextAsync(a.context)
	want(t, "an event when it is destroyed", errno, syscall.EAGAIN)
	want(t, "readable", readable(t, a.async), false)
}

// TestCompletionsOfDestroyedQP: completions that nobody has polled go with their QP, as programs look for the QP of
// each. Those of another QP in the same CQ stay.
func TestCompletionsOfDestroyedQP(t *testing.T) {
	a, b, leaves, stays := twoOnOneCQ(t)
	a.recv(10, a.region("....", accessLocalWrite))
	leaves.send(11, wrSend, leaves.region("text", 0), nil)
	want(t, "the Send", leaves.completion().Status, 0)
	a.recv(12, a.region("....", accessLocalWrite)) // which is flushed
	stays.recv(13, stays.region("....", accessLocalWrite))
	b.send(14, wrSend, b.region("next", 0), nil)
	until(t, "the completions", func() bool {
		return a.inner().qp.Query().UnpolledReceives == 1 && b.inner().sender().Query().UnpolledSends == 1
	})
	must(t, a.d.DestroyQP(a.qp))
	var wc [4]WC
	want(t, "completions", a.d.Poll(a.cq, wc[:]), 1)
	want(t, "the other's", [2]uint64{wc[0].ID, uint64(wc[0].QPNum)}, [2]uint64{14, uint64(b.number)})
}

// TestPlacesOfOthers: when a QP goes to RESET, or is destroyed, a request of another in the same CQ keeps its place until
// the program has its completion.
func TestPlacesOfOthers(t *testing.T) {
	a, b := met(t)
	got, text := b.region("....", accessLocalWrite), a.region("text", 0)
	for id := range uint64(16) {
		b.recv(id, got)
		a.send(id, wrSend, text, nil)
	}
	until(t, "the completions", func() bool { return a.inner().sender().Query().UnpolledSends == 16 })
	other := a.beside()
	full := func() {
		t.Helper()
		_, errno := a.d.PostSend(a.qp, &SendWR{SGL: text.sge(), SGEs: 1, Opcode: wrSend})
		want(t, "one more", errno, syscall.ENOMEM)
	}
	must(t, a.d.ModifyQP(other.qp, StateReset))
	full()
	must(t, a.d.DestroyQP(other.qp))
	full()
	want(t, "completions", len(a.polledAll()), 16)
}

// TestReceivesOfDestroyedQP: what is posted to a QP that is destroyed does not complete. It takes no room in the
// CQ, which would overflow and end the connections of others.
func TestReceivesOfDestroyedQP(t *testing.T) {
	a, b := met(t)
	exchange(t, a, b)
	other := a.beside()
	for id := range uint64(16) {
		other.recv(id, a.region("....", accessLocalWrite))
	}
	must(t, a.d.ResizeCQ(a.cq, 8))
	must(t, a.d.DestroyQP(other.qp))
	must(t, a.d.ResizeCQ(a.cq, 9)) // which a CQ that has overflowed refuses
	exchange(t, a, b)
	want(t, "an asynchronous event", readable(t, a.async), false)
}

// TestDeregistered: the STag of a region that is deregistered names nothing any more, and nothing of it is kept:
// programs register and deregister for ever.
func TestDeregistered(t *testing.T) {
	a, _ := met(t)
	r := a.region("text", accessLocalWrite)
	must(t, a.d.DeregisterMR(r.mr))
	_, errno := a.d.PostSend(a.qp, &SendWR{ID: 1, Opcode: wrLocalInv, Imm: r.key})
	want(t, "an invalidation", errno, syscall.EINVAL)
	want(t, "kept", a.d.mrs.all.Len(), 0)
}

// TestEventsOfDestroyedQP: an event names the QP that it is about as long as that is there, also if it has come before,
// and is fetched after that.
func TestEventsOfDestroyedQP(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	_, at := s.listen(1)
	server, client := s.queue(), c.queue()
	active := c.resolve(2, at)
	must(t, c.d.Connect(active, client.qp, ConnParam{}))
	request := s.event(ConnectRequest)
	want(t, "the QP of a request", request.QP, 0)
	must(t, s.d.Accept(request.Child, server.qp, ConnParam{}))
	want(t, "the QP that is connected", s.event(Established).QP, 78)
	wait(t, c.events)
	must(t, c.d.DestroyQP(client.qp))
	want(t, "the QP that was destroyed", c.event(Established).QP, 0)
	want(t, "the QP that was destroyed", c.event(Disconnected).QP, 0)
	want(t, "the QP whose peer's was destroyed", s.event(Disconnected).QP, 78)
}

// TestEventsOfReset: nor is the end of a connection about the QP that RESET has led on, which may have another.
func TestEventsOfReset(t *testing.T) {
	client, server, _, _ := connect(t)
	must(t, client.d.ModifyQP(client.qp, StateReset))
	want(t, "the QP that has gone on", client.event(Disconnected).QP, 0)
	want(t, "the QP that has not", server.event(Disconnected).QP, 78)
}
