//go:build linux && (amd64 || arm64)

package datagram

import (
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// arrived is what Serve has given out.
type arrived struct {
	h       Header
	from    netip.Addr
	payload string
}

// serving returns a Socket, and what comes to it.
func serving(t *testing.T) (*Socket, <-chan arrived) {
	t.Helper()
	s, err := Listen(nil)
	if err != nil {
		t.Fatal(err)
	}
	all, done := make(chan arrived, 16), make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(func(h *Header, from netip.Addr, payload []byte) { all <- arrived{*h, from, string(payload)} })
	}()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return s, all
}

// TestSocket: one end sends to the other what is taken, and between that what is not: of another port than it says, too
// long, or empty.
func TestSocket(t *testing.T) {
	a, _ := serving(t)
	b, all := serving(t)
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), b.Port())
	send := func(from uint16, payload string, extra int) {
		h := Header{Destination: uint32(b.Port())<<8 | 1, Source: uint32(from)<<8 | 2}
		if err := a.Send(to, append(h.Append(nil, len(payload)+extra), payload...)); err != nil {
			t.Fatal(err)
		}
	}
	send(a.Port(), "first", 0)
	send(a.Port()^1, "of another", 0)
	send(a.Port(), string(make([]byte, MTU+1)), 0)
	send(a.Port(), "cut short", 1)
	if err := a.Send(to, nil); err != nil {
		t.Fatal(err)
	}
	send(a.Port(), string(make([]byte, MTU)), 0)
	for _, want := range []string{"first", string(make([]byte, MTU))} {
		got := <-all
		if got.payload != want || got.from.Unmap() != to.Addr() || got.h.Source != uint32(a.Port())<<8|2 {
			t.Errorf("%d bytes from %v: %+v", len(got.payload), got.from, got.h)
		}
	}
}

// TestServeAllocates nothing, whatever comes.
func TestServeAllocatesNothing(t *testing.T) {
	a, _ := serving(t)
	b, err := Listen(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	came := make(chan struct{})
	go b.Serve(func(*Header, netip.Addr, []byte) { came <- struct{}{} })
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), b.Port())
	packet := (&Header{Source: uint32(a.Port()) << 8}).Append(nil, 0)
	if n := testing.AllocsPerRun(100, func() {
		_ = a.Send(to, packet)
		<-came
	}); n != 0 {
		t.Errorf("%v allocations for a datagram", n)
	}
}

// TestPoll: whoever polls takes what has come, one datagram at a time, also where Serve's goroutine does not run.
func TestPoll(t *testing.T) {
	a, _ := serving(t)
	b, err := Listen(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Poll() {
		t.Error("something was taken before Serve")
	}
	var got []string
	b.take = func(_ *Header, _ netip.Addr, payload []byte) { got = append(got, string(payload)) }
	for _, payload := range []string{"one", "two"} {
		h := Header{Source: uint32(a.Port()) << 8}
		if err := a.Send(netip.AddrPortFrom(netip.IPv6Loopback(), b.Port()), append(h.Append(nil, len(payload)), payload...)); err != nil {
			t.Skip(err) // without IPv6
		}
	}
	for _, want := range []struct {
		came bool
		all  string
	}{{true, "one"}, {true, "one two"}, {false, "one two"}} {
		if came := b.Poll(); came != want.came || strings.Join(got, " ") != want.all {
			t.Errorf("%t, and %q, want %v", came, got, want)
		}
	}
}

// TestStandsBack: while somebody polls, Serve leaves what comes to that. It comes back when nobody does, or somebody
// waits.
func TestStandsBack(t *testing.T) {
	a, _ := serving(t)
	b, all := serving(t)
	send := func(payload string) {
		h := Header{Source: uint32(a.Port()) << 8}
		to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), b.Port())
		if err := a.Send(to, append(h.Append(nil, len(payload)), payload...)); err != nil {
			t.Fatal(err)
		}
	}
	polls := func() {
		for !b.away.Load() {
			for range manyPolls {
				b.Poll()
			}
			send("") // which has Serve look
			<-all
			runtime.Gosched()
		}
	}
	for _, comes := range []func(){func() {}, b.Expect} {
		polls()
		send("there is nobody else")
		comes()
		if got := <-all; got.payload != "there is nobody else" {
			t.Errorf("%q", got.payload)
		}
	}
}

// TestZone has the kernel told which interface the zone of an address is.
func TestZone(t *testing.T) {
	s := &Socket{six: true}
	for range 2 {
		var a syscall.RawSockaddrAny
		s.address(&a, netip.MustParseAddrPort("[fe80::1%lo]:77"))
		in := (*syscall.RawSockaddrInet6)(unsafe.Pointer(&a))
		if in.Scope_id != 1 || port(&in.Port) != 77 || in.Addr[15] != 1 {
			t.Errorf("%+v", in)
		}
	}
	if s.scope("") != 0 || s.scope("nowhere") != 0 {
		t.Error("an interface that there is not")
	}
}

// TestWithoutIPv6: a socket of IPv4 sends to the addresses that GIDs have of it.
func TestWithoutIPv6(t *testing.T) {
	var a syscall.RawSockaddrAny
	n := (&Socket{}).address(&a, netip.MustParseAddrPort("[::ffff:127.0.0.2]:77"))
	if addrPort(&a) != netip.MustParseAddrPort("127.0.0.2:77") || n != syscall.SizeofSockaddrInet4 {
		t.Errorf("%v", addrPort(&a))
	}
}
