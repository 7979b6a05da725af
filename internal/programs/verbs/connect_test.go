//go:build linux && (amd64 || arm64)

package verbs

import (
	"encoding/binary"
	"math"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/goiwarp/iwarp"
)

// TestConnection goes the way of rdma_cm from an address to a connection and to its end, and has each event once, with
// what the peer said.
func TestConnection(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	listener, at := s.listen(1)
	client, server := c.queue(), s.queue()
	id := c.resolve(2, at)
	local, peer, errno := c.d.AddressesOf(id)
	must(t, errno)
	want(t, "the peer's address", peer, at)
	want(t, "our address", local.Addr(), netip.MustParseAddr("127.0.0.1"))
	other := s.id(4)
	must(t, s.d.BindAddr(other, local))
	want(t, "somebody else at our port", s.d.Listen(other), syscall.EADDRINUSE)
	must(t, s.d.DestroyID(other))
	want(t, "a Send before the connection", posted(client, 0), syscall.EINVAL)

	must(t, c.d.Connect(id, client.qp, ConnParam{PrivateData: []byte("hello"),
		ResponderResources: 3, InitiatorDepth: 5}))
	request := s.event(ConnectRequest)
	want(t, "whose request", request.Token, 1)
	want(t, "who connects", request.Peer, local)
	want(t, "private data", strings.TrimRight(string(request.PrivateData), "\x00"), "hello")
	want(t, "Reads that the peer wants to do", request.ResponderResources, 5)
	want(t, "Reads that the peer takes", request.InitiatorDepth, 3)
	must(t, s.d.NameID(request.Child, 3))
	must(t, s.d.Accept(request.Child, server.qp, ConnParam{PrivateData: []byte("welcome"),
		ResponderResources: 5, InitiatorDepth: 3}))

	up := c.event(Established)
	want(t, "whose connection", up.Token, 2)
	want(t, "private data", strings.TrimRight(string(up.PrivateData), "\x00"), "welcome")
	want(t, "whose connection", s.event(Established).Token, 3)
	state, ird, ord, errno := c.d.QueryQP(client.qp)
	must(t, errno)
	want(t, "state", state, StateRTS)
	want(t, "outbound Reads", ord, 5)
	if ird < 3 {
		t.Errorf("%d inbound Reads, of 3", ird)
	}

	must(t, c.d.Disconnect(id))
	want(t, "whose end", s.event(Disconnected).Token, 3)
	want(t, "whose end", c.event(Disconnected).Token, 2)
	must(t, c.d.Disconnect(id))
	must(t, s.d.Disconnect(request.Child))
	for _, q := range []*queue{client, server} {
		must(t, q.d.DestroyQP(q.qp))
		if readable(t, q.events) {
			t.Error("another event")
		}
	}
	must(t, s.d.DestroyID(request.Child))
	must(t, s.d.DestroyID(listener))
	want(t, "destroyed twice", s.d.DestroyID(listener), syscall.EINVAL)
	must(t, c.d.DestroyID(id))
}

// TestData moves bytes in all ways, and the completions have what a program expects in them.
func TestData(t *testing.T) {
	client, server, _, _ := connect(t)
	inbox, message := server.region("...............", accessLocalWrite), client.region("hello, receiver", 0)
	server.recv(8, inbox)
	client.send(9, wrSend, message, nil)
	want(t, "completion", client.completion(), WC{ID: 9, Opcode: wcSend, ByteLen: 15, QPNum: client.number})
	want(t, "completion", server.completion(), WC{ID: 8, Opcode: wcRecv, ByteLen: 15, QPNum: server.number})
	want(t, "received", string(inbox.memory), "hello, receiver")

	offered := server.region("these can be read", accessLocalWrite|accessRemoteRead|accessRemoteWrite|accessHugeTLB|1<<20)
	sink := client.region(".................", accessLocalWrite)
	client.send(10, wrRead, sink, offered)
	want(t, "completion", client.completion(), WC{ID: 10, Opcode: wcRead, ByteLen: 17, QPNum: client.number})
	want(t, "read", string(sink.memory), "these can be read")
	copy(sink.memory, "and it is written")
	client.send(11, wrWrite, sink, offered)
	client.send(12, wrRead, client.region(".................", accessLocalWrite), offered)
	want(t, "completion", client.completion().Opcode, wcWrite)
	want(t, "completion", client.completion().ID, 12)
	want(t, "written", string(offered.memory), "and it is written")
}

// TestAtomics adds to a word of the peer's and swaps it, and gets what was there before, as integers of this machine.
func TestAtomics(t *testing.T) {
	client, server, _, _ := connect(t)
	words := []uint64{41}
	_, rkey, errno := server.d.RegisterMR(server.pd, unsafe.Pointer(&words[0]), 8, 0x1000,
		accessLocalWrite|accessRemoteAtomic)
	must(t, errno)
	sink := client.region("........", accessLocalWrite)
	for i, c := range []struct {
		opcode                 uint32
		compareAdd, swap, then uint64
	}{{wrFetchAdd, 1, 0, 42}, {wrCompareSwap, 42, 7, 7}, {wrCompareSwap, 42, 8, 7}} {
		before := words[0]
		wr := &SendWR{ID: uint64(i), SGL: sink.sge(), SGEs: 1, Opcode: c.opcode}
		*wr.atomic() = atomicArgs{RemoteAddr: 0x1000, CompareAdd: c.compareAdd, Swap: c.swap, RKey: rkey}
		_, errno := client.d.PostSend(client.qp, wr)
		must(t, errno)
		want(t, "opcode", client.completion().Opcode, c.opcode-wrCompareSwap+wcCompareSwap)
		want(t, "what was there", binary.NativeEndian.Uint64(sink.memory), before)
		want(t, "what is there", words[0], c.then)
	}
}

// TestImmediate completes a receive by a Write, with its length and the four bytes as they lay in the sender's memory.
func TestImmediate(t *testing.T) {
	client, server, _, _ := connect(t)
	offered := server.region("............", accessLocalWrite|accessRemoteWrite)
	server.recv(6, server.region("-", accessLocalWrite))
	source := client.region("by a Write", 0)
	_, errno := client.d.PostSend(client.qp, &SendWR{
		SGL: source.sge(), SGEs: 1, Opcode: wrWriteImm, Imm: 0x01020304,
		RemoteAddr: offered.at() + 2, RKey: offered.key,
	})
	must(t, errno)
	want(t, "completion", server.completion(),
		WC{ID: 6, Opcode: wcRecvImm, ByteLen: 10, Invalidated: 0x01020304, Flags: wcWithImm, QPNum: server.number})
	want(t, "written", string(offered.memory), "..by a Write")
	want(t, "completion", client.completion().Opcode, wcWrite)
}

// TestInline sends what is in several places, with keys that nobody has.
func TestInline(t *testing.T) {
	client, server, _, _ := connect(t)
	inbox := server.region("......", accessLocalWrite)
	server.recv(1, inbox)
	a, b := client.region("abc", 0), client.region("def", 0)
	list := []SGE{*a.sge(), *b.sge()}
	list[0].LKey, list[1].LKey = 1, 0
	_, errno := client.d.PostSend(client.qp, &SendWR{SGL: &list[0], SGEs: 2, Opcode: wrSend, Flags: sendInline})
	must(t, errno)
	server.completion()
	want(t, "received", string(inbox.memory), "abcdef")

	long := client.region(strings.Repeat("x", 65), 0)
	_, errno = client.d.PostSend(client.qp, &SendWR{SGL: long.sge(), SGEs: 1, Opcode: wrSend, Flags: sendInline})
	want(t, "more than the QP has room for", errno, syscall.EINVAL)

	for what, spoil := range map[string]func(*SGE){
		"no address":               func(s *SGE) { s.Addr = 0 },
		"an address near the last": func(s *SGE) { s.Addr = math.MaxUint64 - 1 },
	} {
		for n := range int32(2) {
			bad := []SGE{*a.sge(), *b.sge()}
			spoil(&bad[n])
			_, errno = client.d.PostSend(client.qp, &SendWR{SGL: &bad[0], SGEs: n + 1, Opcode: wrSend, Flags: sendInline})
			want(t, what, errno, syscall.EFAULT)
		}
	}
}

// TestRejected gives the client the reason of the server, and flushes what it has posted. The server has no event.
func TestRejected(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	_, at := s.listen(1)
	id, client := c.resolve(2, at), c.queue()
	client.recv(7, client.region("...", accessLocalWrite))
	must(t, c.d.Connect(id, client.qp, ConnParam{}))
	request := s.event(ConnectRequest)
	must(t, s.d.Reject(request.Child, []byte("no")))
	e := c.event(Rejected)
	want(t, "state", client.state(), StateErr)
	want(t, "status of the receive", client.completion().Status, statusOf(iwarp.StatusFlushed))
	want(t, "status", e.Status, -int32(syscall.ECONNRESET))
	want(t, "private data", strings.TrimRight(string(e.PrivateData), "\x00"), "no")
	want(t, "an answer to what was rejected", s.d.Reject(request.Child, nil), syscall.EINVAL)
	must(t, s.d.DestroyID(request.Child))
}

// TestDropped rejects requests that the server destroys without an answer: the ID itself, and the listener
// with a request that was not fetched.
func TestDropped(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	listener, at := s.listen(1)
	first, second := c.resolve(2, at), c.resolve(3, at)
	must(t, c.d.Connect(first, c.queue().qp, ConnParam{}))
	must(t, s.d.DestroyID(s.event(ConnectRequest).Child))
	want(t, "whose", c.event(Rejected).Token, 2)
	must(t, c.d.Connect(second, c.queue().qp, ConnParam{}))
	wait(t, s.events)
	must(t, s.d.DestroyID(listener))
	want(t, "whose", c.event(Rejected).Token, 3)
	if readable(t, s.events) {
		t.Error("an event of an ID that is gone")
	}
}

// TestChannelClosed rejects requests whose program has destroyed the channel on which they were to come, before or
// after that.
func TestChannelClosed(t *testing.T) {
	s, c := newProgram(t), newProgram(t)
	channel, fd := s.other()
	listener, at := s.listen(1)
	must(t, s.d.MigrateID(listener, channel))
	must(t, c.d.Connect(c.resolve(2, at), c.queue().qp, ConnParam{}))
	wait(t, fd)
	must(t, s.d.CloseCMChannel(channel))
	want(t, "whose", c.event(Rejected).Token, 2)
	for token := range uint64(unfetchedAtMost + 2) {
		must(t, c.d.Connect(c.resolve(token, at), c.queue().qp, ConnParam{}))
		want(t, "whose", c.event(Rejected).Token, token)
	}
	must(t, s.d.DestroyID(listener))
}

// TestNobodyListens is a rejection, too.
func TestNobodyListens(t *testing.T) {
	c := newProgram(t)
	id := c.id(1)
	must(t, c.d.BindAddr(id, netip.MustParseAddrPort("127.0.0.1:0")))
	taken, _, errno := c.d.AddressesOf(id)
	must(t, errno)
	refused := c.resolve(2, taken)
	must(t, c.d.Connect(refused, c.queue().qp, ConnParam{}))
	want(t, "status", c.event(Rejected).Status, -int32(syscall.ECONNREFUSED))
	must(t, c.d.Disconnect(refused))
}

// TestMigrate takes along the events that nobody has fetched.
func TestMigrate(t *testing.T) {
	c := newProgram(t)
	to, other := c.other()
	stays, goes := c.id(1), c.id(2)
	peer := netip.MustParseAddrPort("127.0.0.1:7174")
	must(t, c.d.ResolveAddr(goes, netip.AddrPort{}, peer))
	must(t, c.d.ResolveAddr(stays, netip.AddrPort{}, peer))
	must(t, c.d.MigrateID(goes, to))
	want(t, "what has stayed", c.event(AddrResolved).Token, 1)
	if readable(t, c.events) || !readable(t, other) {
		t.Error("the event is on the wrong channel")
	}
	must(t, c.d.ResolveRoute(goes))
	for _, kind := range []uint32{AddrResolved, RouteResolved} {
		e, errno := c.d.NextCM(to)
		must(t, errno)
		want(t, "event", e.Type, kind)
	}
}

// TestDestroyEnding destroys QPs whose orderly end is under way, and their CQs at once: nothing is busy.
func TestDestroyEnding(t *testing.T) {
	for range 100 {
		client, server, active, passive := connect(t)
		must(t, client.d.Disconnect(active))
		must(t, server.d.Disconnect(passive))
		for _, q := range []*queue{client, server} {
			must(t, q.d.DestroyQP(q.qp))
			must(t, q.d.DestroyCQ(q.cq))
		}
	}
}

// TestPostAfterEnd flushes what is posted when the connection is over, after what was posted before.
func TestPostAfterEnd(t *testing.T) {
	client, server, active, _ := connect(t)
	r := server.region("...", accessLocalWrite)
	server.recv(1, r)
	must(t, client.d.Disconnect(active))
	server.event(Disconnected)
	server.recv(2, r)
	server.send(3, wrSend, r, nil)
	for _, id := range []uint64{1, 2, 3} {
		wc := server.completion()
		want(t, "request", wc.ID, id)
		want(t, "status", wc.Status, 5)
	}
	client.event(Disconnected)
}

// TestKilled has the peer of a connection that is cut off told of it: DISCONNECTED, and its receives flushed.
func TestKilled(t *testing.T) {
	client, server, _, _ := connect(t)
	server.recv(5, server.region("...", accessLocalWrite))
	must(t, client.d.ModifyQP(client.qp, StateErr))
	server.event(Disconnected)
	client.event(Disconnected)
	want(t, "status of the receive", server.completion().Status, 5)
	state, _, _, _ := server.d.QueryQP(server.qp)
	want(t, "state", state, StateErr)
	wait(t, server.async)
	e, errno := server.d.NextAsync(server.context)
	must(t, errno)
	want(t, "event", e, AsyncEvent{asyncQPFatal, 78})
}
