//go:build linux && (amd64 || arm64)

package verbs

import "testing"

// depths are those of a struct rdma_conn_param.
type depths struct{ responderResources, initiatorDepth uint8 }

// TestAccepted: each end's Established has the depths that the other has given, and private data is in that of the end
// which has connected. What one grants bounds what the other may do.
func TestAccepted(t *testing.T) {
	for _, c := range []struct {
		name                       string
		connects, accepts          depths
		clientIs, serverIs         depths // by their events
		clientReads, serverReads   int    // at most, in the end
		clientTakes, serverAnswers int
	}{
		{"the server grants less than is wanted", depths{7, 5}, depths{3, 2}, depths{2, 3}, depths{5, 7}, 3, 2, 7, 3},
		{"the server grants more", depths{7, 5}, depths{9, 9}, depths{7, 9}, depths{5, 7}, 5, 7, 7, 9},
		{"the server grants none, and reads", depths{4, 5}, depths{0, 2}, depths{2, 0}, depths{5, 4}, 0, 2, 4, 0},
		{"nobody reads", depths{}, depths{}, depths{}, depths{}, 0, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p := newProgram(t), newProgram(t)
			_, at := s.listen(1)
			client, server := p.queue(), s.queue()
			must(t, p.d.Connect(p.resolve(2, at), client.qp,
				c.connects.with("hello")))
			must(t, s.d.Accept(s.event(ConnectRequest).Child, server.qp,
				c.accepts.with("reply")))
			up := p.event(Established)
			want(t, "the client's private data", string(up.PrivateData), "reply")
			want(t, "the client's depths", depths{up.ResponderResources, up.InitiatorDepth}, c.clientIs)
			up = s.event(Established)
			want(t, "the server's private data", len(up.PrivateData), 0)
			want(t, "the server's depths", depths{up.ResponderResources, up.InitiatorDepth}, c.serverIs)
			client.wantDepths(c.clientTakes, c.clientReads)
			server.wantDepths(c.serverAnswers, c.serverReads)
		})
	}
}

func (d depths) with(privateData string) ConnParam {
	return ConnParam{PrivateData: []byte(privateData), ResponderResources: d.responderResources,
		InitiatorDepth: d.initiatorDepth}
}

// wantDepths compares the depths of Reads in effect.
func (q *queue) wantDepths(inbound, outbound int) {
	q.t.Helper()
	_, ird, ord, errno := q.d.QueryQP(q.qp)
	must(q.t, errno)
	want(q.t, "inbound Reads", ird, inbound)
	want(q.t, "outbound Reads", ord, outbound)
}
