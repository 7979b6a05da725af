//go:build linux && (amd64 || arm64)

package verbs

import "testing"

// A dialed connection is that of a client's QP, whose ID is active, with one of a server's.
type dialed struct {
	server          *queue
	active, passive Handle
}

// dial connects the client's QP by an ID of its own, and another QP of the server's.
func (client *queue) dial(s *program, token uint64) dialed {
	client.t.Helper()
	t, c := client.t, client.program
	_, at := s.listen(100 + token)
	d := dialed{server: s.queue(), active: c.resolve(token, at)}
	must(t, c.d.Connect(d.active, client.qp, ConnParam{ResponderResources: 4, InitiatorDepth: 4}))
	d.passive = s.event(ConnectRequest).Child
	must(t, s.d.Accept(d.passive, d.server.qp, ConnParam{ResponderResources: 4, InitiatorDepth: 4}))
	want(t, "whose connection", c.event(Established).Token, token)
	s.event(Established)
	return d
}

// TestResetConnected: RESET of a QP whose connection is up, or is over as the peer wants it. Both ends hear of the end,
// the QP stays in RESET, and another ID connects it.
func TestResetConnected(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	client := c.queue()
	for i := range uint64(40) {
		d := client.dial(s, i)
		exchange(t, client, d.server)
		if i%2 == 0 {
			must(t, s.d.Disconnect(d.passive))
			c.event(Disconnected)
		}
		must(t, c.d.ModifyQP(client.qp, StateReset))
		if i%2 == 1 {
			c.event(Disconnected)
		}
		s.event(Disconnected)
		must(t, c.d.DestroyID(d.active))
		want(t, "state", client.state(), StateReset)
		must(t, c.d.ModifyQP(client.qp, StateInit))
		must(t, s.d.DestroyQP(d.server.qp))
	}
}

// TestResetOrphan: so it does where the program has destroyed the ID.
func TestResetOrphan(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	client := c.queue()
	for i := range uint64(20) {
		d := client.dial(s, i)
		must(t, c.d.DestroyID(d.active))
		exchange(t, client, d.server)
		client.again()
		s.event(Disconnected)
		must(t, s.d.DestroyQP(d.server.qp))
	}
	d := client.dial(s, 99)
	exchange(t, client, d.server)
	want(t, "state", client.state(), StateRTS)
}

// TestResetConnecting: a connection that is on its way comes to nothing, and another ID connects the QP.
func TestResetConnecting(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	client := c.queue()
	_, at := s.listen(1)
	must(t, c.d.Connect(c.resolve(2, at), client.qp, ConnParam{}))
	request := s.event(ConnectRequest).Child
	client.again()
	want(t, "whose connection", c.event(ConnectError).Token, 2)
	must(t, s.d.Reject(request, nil))
	d := client.dial(s, 3)
	exchange(t, client, d.server)
}

// TestOldID: rdma_disconnect of an ID whose connection is over does nothing to the one that the QP has by another.
func TestOldID(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	client := c.queue()
	first := client.dial(s, 1)
	must(t, s.d.Disconnect(first.passive))
	c.event(Disconnected)
	s.event(Disconnected)
	client.again()
	second := client.dial(s, 2)
	must(t, c.d.Disconnect(first.active))
	exchange(t, client, second.server)
	want(t, "state", client.state(), StateRTS)
	want(t, "an event", readable(t, c.events), false)
	must(t, c.d.Disconnect(second.active))
	want(t, "whose end", c.event(Disconnected).Token, 2)
	want(t, "state", client.state(), StateErr)
}

// TestOldGivenUp: an ID that was given up, and comes to nothing when the QP has the connection of another, does not end
// that.
func TestOldGivenUp(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	client := c.queue()
	d := client.dial(s, 1)
	old := &ID{device: c.d, channel: c.d.cmChannels.get(c.channel), stage: stageConnecting, givenUp: true}
	old.attempt.Add(1)
	old.comesToNothing(client.inner(), CMEvent{Type: Rejected})
	c.event(Rejected)
	exchange(t, client, d.server)
	want(t, "state", client.state(), StateRTS)
}
