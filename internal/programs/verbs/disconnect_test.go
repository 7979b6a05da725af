//go:build linux && (amd64 || arm64)

package verbs

import (
	"syscall"
	"testing"
)

// TestGivenUp: rdma_disconnect between rdma_connect and the answer. The connection does not come up, what is posted is
// flushed, and the peer's answer, which comes late, leads to an end as well.
func TestGivenUp(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	_, at := s.listen(1)
	id, client, server := c.resolve(2, at), c.queue(), s.queue()
	client.recv(7, client.region("...", accessLocalWrite))
	must(t, c.d.Connect(id, client.qp, ConnParam{}))
	child := s.event(ConnectRequest).Child
	must(t, c.d.Disconnect(id))
	want(t, "status", c.event(Rejected).Status, -int32(syscall.ECONNRESET))
	want(t, "status of the receive", client.completion().Status, 5)
	want(t, "state", client.state(), StateErr)
	must(t, c.d.Disconnect(id))
	must(t, s.d.Accept(child, server.qp, ConnParam{}))
	wait(t, s.events)
	if e, errno := s.d.NextCM(s.channel); errno != fine || e.Type != ConnectError {
		want(t, "event", e.Type, Established)
		s.event(Disconnected)
	}
	want(t, "another event", readable(t, c.events), false)
}

// TestGivenUpLate: where the answer has come first the connection is up, and ends.
func TestGivenUpLate(t *testing.T) {
	client, _, active, _ := connect(t)
	id := client.d.ids.get(active)
	id.mu.Lock()
	id.stage, id.givenUp = stageConnecting, true
	id.mu.Unlock()
	id.attempt.Add(1)
	id.established(client.inner())
	client.event(Established)
	client.event(Disconnected)
}

// TestAcceptGivenUp: rdma_disconnect directly after rdma_accept, before that has answered. The peer is rejected, and
// does not take the end of its connection for that of one who does not know its dialect: it would connect once more.
func TestAcceptGivenUp(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	_, at := s.listen(1)
	id, client, server := c.resolve(2, at), c.queue(), s.queue()
	must(t, c.d.Connect(id, client.qp, ConnParam{}))
	child := s.event(ConnectRequest).Child
	must(t, s.d.startConnect(child, server.qp, stageRequested, func(id *ID, q *QP) {
		must(t, s.d.Disconnect(child))
		want(t, "the end of an answer that might be on its way", id.ctx.Err(), nil)
		id.accept(q, ConnParam{})
	}))
	c.event(Rejected)
	s.event(ConnectError)
	want(t, "state", server.state(), StateErr)
	want(t, "another event", readable(t, c.events) || readable(t, s.events), false)
}

// TestDisconnectWithoutConnection is fine where the peer has refused, and where it has asked and waits: its request can
// still be answered.
func TestDisconnectWithoutConnection(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	listener, at := s.listen(1)
	want(t, "of one that listens", s.d.Disconnect(listener), syscall.EINVAL)
	id, client, server := c.resolve(2, at), c.queue(), s.queue()
	want(t, "of one that is not connected yet", c.d.Disconnect(id), syscall.EINVAL)
	must(t, c.d.Connect(id, client.qp, ConnParam{}))
	child := s.event(ConnectRequest).Child
	must(t, s.d.Disconnect(child))
	must(t, s.d.Accept(child, server.qp, ConnParam{}))
	c.event(Established)
	s.event(Established)

	refused := c.resolve(3, at)
	must(t, c.d.Connect(refused, c.queue().qp, ConnParam{}))
	child = s.event(ConnectRequest).Child
	must(t, s.d.Reject(child, nil))
	c.event(Rejected)
	for range 2 {
		must(t, c.d.Disconnect(refused))
		must(t, s.d.Disconnect(child))
	}
	want(t, "an event", readable(t, c.events) || readable(t, s.events), false)
}
