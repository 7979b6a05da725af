//go:build linux && (amd64 || arm64)

package verbs

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/ulpdata"
	"github.com/goiwarp/iwarp/mpa"
)

// greetedBy brings up a connection of IDs. It wants each program to see the private data of the other as they were given.
func greetedBy(t *testing.T, ours, theirs Config) (client, server *queue) {
	t.Helper()
	s, c := newProgramWith(t, theirs), newProgramWith(t, ours)
	_, at := s.listen(1)
	client, server = c.queue(), s.queue()
	must(t, c.d.Connect(c.resolve(2, at), client.qp, ConnParam{PrivateData: []byte("hello")}))
	request := s.event(ConnectRequest)
	want(t, "private data of the request", string(request.PrivateData), "hello")
	must(t, s.d.Accept(request.Child, server.qp, ConnParam{PrivateData: []byte("welcome")}))
	want(t, "private data of the answer", string(c.event(Established).PrivateData), "welcome")
	s.event(Established)
	return client, server
}

// TestSendImmediateOfID: between two IDs in the guise of RoCE, Sends have Immediate Data.
func TestSendImmediateOfID(t *testing.T) {
	client, server := greetedBy(t, Config{RoCE: true}, Config{RoCE: true})
	for _, way := range [][2]*queue{{client, server}, {server, client}} {
		from, to := way[0], way[1]
		r := to.region("....", accessLocalWrite)
		to.recv(1, r)
		must(t, from.sendImm(2, from.region("text", 0), 4, 0, immediate(3)))
		to.wantRecv(1, 4, wcRecv, wcWithImm, immediate(3))
		want(t, "bytes", string(r.memory), "text")
		want(t, "status of the Send", from.completion().Status, 0)
	}
	exchange(t, client, server)
}

// TestSendImmediateOfOneID: if only one end is in the guise of RoCE, or has named its peer, no Send has Immediate Data,
// and the log says why.
func TestSendImmediateOfOneID(t *testing.T) {
	siw, err := iwarp.LookupPreset("siw")
	testrig.Must(t, err)
	for _, c := range []struct {
		ours, theirs        Config
		client, server, why string
	}{
		{Config{}, Config{}, "iWARP has no Send", "iWARP has no Send", "both iWARP"},
		{Config{RoCE: true}, Config{}, "has not agreed", "iWARP has no Send", "an iWARP server"},
		{Config{}, Config{RoCE: true}, "iWARP has no Send", "has not agreed", "an iWARP client"},
		{Config{RoCE: true, Preset: &siw}, Config{RoCE: true}, "IWARP_PEER", "has not agreed", "a server that is named"},
		{Config{RoCE: true}, Config{RoCE: true, Preset: &siw}, "has not agreed", "IWARP_PEER", "a client that is named"},
	} {
		t.Run(c.why, func(t *testing.T) {
			ours, oursLog := logged()
			theirs, theirsLog := logged()
			c.ours.RNIC, c.theirs.RNIC = ours.RNIC, theirs.RNIC
			client, server := greetedBy(t, c.ours, c.theirs)
			for _, q := range []*queue{client, server} {
				want(t, "with Immediate Data", q.sendImm(1, q.region("text", 0), 4, 0, 0), syscall.EOPNOTSUPP)
			}
			wantLine(t, oursLog, "call refused", "ibv_post_send", c.client, "advice=")
			wantLine(t, theirsLog, "call refused", "ibv_post_send", c.server, "advice=")
			exchange(t, client, server)
		})
	}
}

// TestSendImmediateToForeign: a server that does not know the tag finds it behind the private data, and gets Sends as
// they are. One with Immediate Data that was posted before that was known fails.
func TestSendImmediateToForeign(t *testing.T) {
	rnic, qp := earlier(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	l := (&iwarp.ListenConfig{RNIC: rnic}).NewListener(ln)
	t.Cleanup(func() { _ = l.Close() })
	c := newProgramWith(t, Config{RoCE: true})
	client := c.queue()
	must(t, c.d.Connect(c.resolve(2, addrPort(ln.Addr())), client.qp,
		ConnParam{PrivateData: []byte("hello"), ResponderResources: 4, InitiatorDepth: 4}))
	must(t, client.sendImm(9, client.region("early", 0), 5, 0, 0))
	r, err := l.Accept(t.Context())
	testrig.Must(t, err)
	want(t, "private data", string(r.PrivateData()), string(ulpdata.AppendPrefixTag([]byte("hello"))))
	testrig.Must(t, r.AcceptQP(t.Context(), qp, iwarp.AcceptConfig{MPA: mpa.Answer{IRD: 4, ORD: 4}}))
	c.event(Established)
	want(t, "what nobody knew of", client.completion().Status, statusOf(iwarp.StatusUnsupported))
}

// TestSendImmediateFromForeign: a client that does not show the tag gets no byte more than the program's.
func TestSendImmediateFromForeign(t *testing.T) {
	_, qp := earlier(t)
	s := newProgramWith(t, Config{RoCE: true})
	_, at := s.listen(1)
	server := s.queue()
	up := make(chan error, 1)
	go func() {
		d := iwarp.Dialer{MPA: mpa.Offer{IRD: 4, ORD: 4, PrivateData: []byte("hello")}}
		up <- d.DialQP(t.Context(), qp, "tcp", at.String())
	}()
	request := s.event(ConnectRequest)
	want(t, "private data", string(request.PrivateData), "hello")
	must(t, s.d.Accept(request.Child, server.qp, ConnParam{PrivateData: []byte("welcome")}))
	testrig.Must(t, <-up)
	s.event(Established)
	want(t, "private data", strings.TrimRight(string(qp.Negotiated().PrivateData), "\x00"), "welcome")
	server.plainly(qp)
}
