//go:build linux && (amd64 || arm64)

package verbs

import "testing"

// TestEventsOfDestroyedQP: an event names the QP that it is about as long as that is there, also if it has come before, and is fetched after that.
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
