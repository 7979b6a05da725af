package usertcp

import (
	"net/netip"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// TestConfig refuses what cannot be.
func TestConfig(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(c *Config)
	}{
		{"no address", func(c *Config) { c.Addresses = nil }},
		{"no link", func(c *Config) { c.Link = nil }},
		{"negative buffer", func(c *Config) { c.SendBuffer = -1 }},
		{"negative ChallengeACKs", func(c *Config) { c.ChallengeACKs = -1 }},
		{"negative ChallengePeriod", func(c *Config) { c.ChallengePeriod = -1 }},
		{"small MTU", func(c *Config) { c.MTU = MinMTU - 1 }},
		{"MTU that the link does not carry", func(c *Config) { c.MTU = 1501 }},
		{"short MaxRTO", func(c *Config) { c.MaxRTO = time.Millisecond }},
		{"no such congestion control", func(c *Config) { c.CongestionControl = "vegas" }},
		{"the same address twice", func(c *Config) { c.Addresses = append(c.Addresses, c.Addresses[0]) }},
	} {
		link, _ := Pipe(1500, Path{}, Path{})
		cfg := Config{Link: link, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
			MaxRTO: time.Second, KeepAlive: time.Minute}
		c.spoil(&cfg)
		if s, err := New(cfg); err == nil {
			t.Errorf("%s is not refused", c.name)
			must(t, s.Close())
		}
	}
}

// TestSettings has connections with all settings.
func TestSettings(t *testing.T) {
	cfg := Config{SendBuffer: 1 << 16, ReceiveBuffer: 1 << 16, CongestionControl: "cubic",
		MaxRTO: time.Second, KeepAlive: time.Minute}
	c, s := connection(t, cfg, Path{}, Path{})
	_, err := c.Write([]byte("x"))
	must(t, err)
	_, err = s.Read(make([]byte, 1))
	must(t, err)
	if so := s.ep.SocketOptions(); !so.GetKeepAlive() || so.GetSendBufferSize() != 1<<16 ||
		so.GetReceiveBufferSize() != 1<<16 {
		t.Errorf("keepalive %t, buffers %d and %d",
			so.GetKeepAlive(), so.GetSendBufferSize(), so.GetReceiveBufferSize())
	}
}

// TestPatienceOfTCP: with a bound of the time-out, a peer is given up no sooner than after the 100 s of RFC 9293.
func TestPatienceOfTCP(t *testing.T) {
	for rto, want := range map[time.Duration]tcpip.TCPMaxRetriesOption{0: 15, 200 * time.Millisecond: 500,
		3 * time.Second: 34, time.Minute: 15} {
		a, _ := stacks(t, Config{MaxRTO: rto}, Path{}, Path{})
		var got tcpip.TCPMaxRetriesOption
		if err := a.net.TransportProtocolOption(tcp.ProtocolNumber, &got); err != nil || got != want {
			t.Errorf("with %v: %d, %v, want %d", rto, got, err, want)
		}
	}
}
