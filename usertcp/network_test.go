package usertcp

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestNetworks: which of IPv4 and IPv6 a Listener without an address serves, by its network and the first address of
// its stack.
func TestNetworks(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::2")
	for _, c := range []struct {
		network   string
		addresses []netip.Addr
		four, six bool
	}{
		{"tcp", []netip.Addr{four, six}, true, false},
		{"tcp", []netip.Addr{six, four}, true, true},
		{"tcp4", []netip.Addr{six, four}, true, false},
		{"tcp6", []netip.Addr{four, six}, true, true},
	} {
		one, other := Pipe(1500, Path{}, Path{})
		a, err := pairEnd(Config{}, one, "192.0.2.1", "2001:db8::1")
		must(t, err)
		defer a.Close()
		b, err := New(Config{Link: other, Addresses: c.addresses})
		must(t, err)
		defer b.Close()
		l, err := b.Listen(t.Context(), c.network, ":7174")
		must(t, err)
		for address, want := range map[string]bool{"192.0.2.2:7174": c.four, "[2001:db8::2]:7174": c.six} {
			if _, err := a.DialContext(testrig.Within(t), "tcp", address); (err == nil) != want {
				t.Errorf("%s, first %v: dial %s: %v", c.network, c.addresses[0], address, err)
			}
		}
		must(t, l.Close())
		l, err = b.Listen(t.Context(), c.network, ":7174") // the port is free again
		must(t, err)
		must(t, l.Close())
		b.mu.Lock()
		if n := len(b.listeners); n > 0 {
			t.Errorf("the stack knows of %d Listeners", n)
		}
		b.mu.Unlock()
	}
}

// TestNetworkOfAddress refuses an address that is none of the network.
func TestNetworkOfAddress(t *testing.T) {
	a, _ := stacks(t, Config{}, Path{}, Path{})
	for _, c := range []struct {
		network, address string
		fits             bool
	}{
		{"tcp4", "192.0.2.1:0", true}, {"tcp6", "[2001:db8::1]:0", true}, {"tcp4", "[2001:db8::1]:0", false},
		{"tcp6", "192.0.2.1:0", false},
	} {
		l, err := a.Listen(t.Context(), c.network, c.address)
		if fits := !errors.As(err, new(*net.AddrError)); fits != c.fits || fits != (err == nil) {
			t.Errorf("%s %s: %v", c.network, c.address, err)
		}
		if err == nil {
			must(t, l.Close())
		}
	}
}

// TestDialGivenUp: a dial that is given up leaves nothing in the stack.
func TestDialGivenUp(t *testing.T) {
	a, _ := stacks(t, Config{}, Path{Loss: 1}, Path{})
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error)
	go func() {
		_, err := a.DialContext(ctx, "tcp", "192.0.2.2:1")
		given <- err
	}()
	for over := testrig.Within(t); len(a.net.RegisteredEndpoints()) == 0; {
		must(t, over.Err())
	}
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for over := testrig.Within(t); len(a.net.RegisteredEndpoints()) > 0; {
		must(t, over.Err())
	}
}

// TestAcceptPassesOver: Accept passes over a connection that its peer has reset meanwhile.
func TestAcceptPassesOver(t *testing.T) {
	a, b := stacks(t, Config{}, Path{}, Path{})
	l, err := b.Listen(t.Context(), "tcp", "192.0.2.2:7174")
	must(t, err)
	defer l.Close()
	gone, err := a.DialContext(t.Context(), "tcp", l.Addr().String())
	must(t, err)
	must(t, gone.(*Conn).Reset())
	for over := testrig.Within(t); len(b.net.RegisteredEndpoints()) > 1; { // but for the Listener's
		must(t, over.Err())
	}
	c, s := dialed(t, a, l)
	if c.LocalAddr().String() != s.RemoteAddr().String() {
		t.Errorf("the connection of %v was accepted, not that of %v", s.RemoteAddr(), c.LocalAddr())
	}
}

// TestEarlyPacket: what a link brings before the stack is attached is dropped, and so is a packet of nothing.
func TestEarlyPacket(t *testing.T) {
	link, _ := Pipe(1500, Path{}, Path{})
	newNIC(link, 1500, newTaps(link, 1500)).deliver([]byte{0x45, 0}, true)
	a, _ := stacks(t, Config{}, Path{}, Path{})
	a.nic.deliver(nil, true)
}

// TestPairRefuses: a Path out of range, by name.
func TestPairRefuses(t *testing.T) {
	for want, p := range map[string]Path{
		"Loss": {Loss: 3}, "Duplicate": {Duplicate: -1}, "Reorder": {Reorder: math.NaN()}, "negative": {Delay: -1},
	} {
		for _, paths := range [][2]Path{{p, {}}, {{}, p}} {
			if _, _, err := Pair(Config{}, paths[0], paths[1]); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v", p, err)
			}
		}
	}
	if _, _, err := Pair(Config{CongestionControl: "bbr"}, Path{}, Path{}); err == nil ||
		!strings.Contains(err.Error(), `"cubic"`) {
		t.Errorf("bbr: %v", err)
	}
}

// TestDialItself: a connection to the Stack itself cannot be, and is refused at once.
func TestDialItself(t *testing.T) {
	a, b, err := Pair(Config{}, Path{}, Path{})
	must(t, err)
	defer b.Close()
	defer a.Close()
	for _, to := range []string{"192.0.2.1:7", "[2001:db8::1]:7", "[::ffff:192.0.2.1]:7", "0.0.0.0:7", "127.0.0.1:7"} {
		if _, err := a.DialContext(t.Context(), "tcp", to); !errors.Is(err, syscall.EHOSTUNREACH) ||
			!strings.Contains(err.Error(), "itself") {
			t.Errorf("%s: %v", to, err)
		}
	}
}
