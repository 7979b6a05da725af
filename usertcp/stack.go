package usertcp

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// Sizes of a [Stack], in octets.
const (
	// MinMTU is the least that a Stack may have: RFC 8200's for IPv6, which leaves room for FPDUs as MPA wants it, too.
	MinMTU = 1280
	// MaxMTU is what an IP packet can be.
	MaxMTU = 65535
	// MaxReceiveBuffer is the largest receive buffer of a connection whose Stack has no size of its own. Nothing is ever shown
	// further ahead than the receive buffer is large.
	MaxReceiveBuffer = 4 << 20
	// minBuffer is the least send buffer, in packets of the MTU.
	minBuffer = 8
)

// Config says what a [Stack] is.
type Config struct {
	// Addresses are the stack's own: at least one. Everything else is sent over the Link.
	Addresses []netip.Addr
	// Link carries the packets. The Stack closes it.
	Link Link
	// MTU is the largest packet that is sent, in octets, from [MinMTU] up to what the Link carries. If zero, it is what the Link carries.
	MTU int
	// SendBuffer is how many octets a connection holds that the peer has not acknowledged. If zero, it begins with 1 MiB
	// and grows up to 4 MiB. Eight packets are the least.
	SendBuffer int
	// ReceiveBuffer is how many octets a connection holds that are not read. If zero, it begins with
	// 1 MiB and grows up to [MaxReceiveBuffer].
	ReceiveBuffer int
	// CongestionControl is "reno" or "cubic". If empty, it is reno.
	CongestionControl string
	// MaxRTO bounds the time after which TCP sends again what is not acknowledged, from 200 ms on. If zero, it is 120 s, as
	// RFC 6298 has it. A smaller one suits a short path that stands still at times, as it does on a busy machine.
	MaxRTO time.Duration
	// CloseTimeout is how long, give or take a quarter, a connection after its Close keeps and sends what was written, while the
	// peer acknowledges nothing more of it. Then the connection is reset: nobody else would notice it, or count its memory.
	// If zero, it is a minute.
	CloseTimeout time.Duration
	// KeepAlive is the time after which a silent peer is asked whether it is there. If zero, it is not asked.
	KeepAlive time.Duration
}

// A Stack is a TCP/IP of its own. It is safe for concurrent use.
type Stack struct {
	cfg  Config
	net  *stack.Stack
	nic  *nic
	taps *taps

	closing sync.Once
	closed  chan struct{}

	mu        sync.Mutex // innermost, as the locks of the taps
	leaving   bool       // Shutdown or Close was called
	listeners map[*listener]struct{}
	conns     map[*Conn]struct{} // that are not over
}

// nicID is that of the only NIC.
const nicID = 1

// New returns a running Stack; Close stops it.
func New(cfg Config) (*Stack, error) {
	if err := cfg.resolve(); err != nil {
		return nil, fmt.Errorf("usertcp: %w", err)
	}
	quiet()
	s := &Stack{
		cfg: cfg, taps: newTaps(cfg.Link, cfg.MTU), closed: make(chan struct{}),
		listeners: make(map[*listener]struct{}), conns: make(map[*Conn]struct{}),
	}
	s.nic = newNIC(cfg.Link, cfg.MTU, s.taps)
	s.net = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocolProbe(s.taps.probe)},
	})
	go s.nic.receive()
	if err := s.configure(); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("usertcp: %w", err)
	}
	return s, nil
}

// resolve checks a Config, and fills in what follows from the rest.
func (c *Config) resolve() error {
	switch {
	case len(c.Addresses) == 0:
		return errors.New("no Address")
	case c.Link == nil:
		return errors.New("no Link")
	case c.SendBuffer < 0 || c.ReceiveBuffer < 0 || c.KeepAlive < 0 || c.CloseTimeout < 0:
		return errors.New("a negative buffer, KeepAlive or CloseTimeout")
	case c.CongestionControl != "" && c.CongestionControl != "reno" && c.CongestionControl != "cubic":
		return fmt.Errorf("a CongestionControl %q: there are \"reno\" and \"cubic\"", c.CongestionControl)
	case c.MaxRTO != 0 && c.MaxRTO < tcp.MinRTO:
		return fmt.Errorf("a MaxRTO of %v: %v is the least", c.MaxRTO, tcp.MinRTO)
	}
	if c.MTU == 0 {
		c.MTU = min(c.Link.MTU(), MaxMTU)
	}
	if c.MTU < MinMTU || c.MTU > min(c.Link.MTU(), MaxMTU) {
		return fmt.Errorf("an MTU of %d octets: the link carries %d, and %d are the least", c.MTU, c.Link.MTU(), MinMTU)
	}
	if c.SendBuffer > 0 {
		c.SendBuffer = max(c.SendBuffer, minBuffer*c.MTU)
	}
	return nil
}

// configure gives gVisor's stack its NIC, addresses, routes and options.
func (s *Stack) configure() error {
	if err := s.net.CreateNIC(nicID, s.nic); err != nil {
		return errors.New(err.String())
	}
	for _, a := range s.cfg.Addresses {
		own := tcpip.ProtocolAddress{Protocol: protocolOf(a), AddressWithPrefix: tcpip.AddrFromSlice(a.Unmap().AsSlice()).WithPrefix()}
		if err := s.net.AddProtocolAddress(nicID, own, stack.AddressProperties{}); err != nil {
			return fmt.Errorf("address %s: %s", a, err)
		}
	}
	s.net.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nicID}, {Destination: header.IPv6EmptySubnet, NIC: nicID}})
	for _, o := range s.options() {
		if err := s.net.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return fmt.Errorf("%T: %s", o, err)
		}
	}
	return nil
}

// options are those of all connections.
func (s *Stack) options() []tcpip.SettableTransportProtocolOption {
	const least = 4096
	sack := tcpip.TCPSACKEnabled(true)
	send := tcpip.TCPSendBufferSizeRangeOption{Min: least, Default: 1 << 20, Max: 4 << 20}
	if n := s.cfg.SendBuffer; n > 0 {
		send.Default, send.Max = n, n
	}
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: least, Default: 1 << 20, Max: MaxReceiveBuffer}
	grows := tcpip.TCPModerateReceiveBufferOption(s.cfg.ReceiveBuffer == 0)
	if n := max(s.cfg.ReceiveBuffer, least); s.cfg.ReceiveBuffer > 0 {
		receive.Default, receive.Max = n, n
	}
	all := []tcpip.SettableTransportProtocolOption{&sack, &send, &receive, &grows}
	if s.cfg.MaxRTO > 0 {
		rto, retries := tcpip.TCPMaxRTOOption(s.cfg.MaxRTO), retriesWithin(s.cfg.MaxRTO)
		all = append(all, &rto, &retries)
	}
	if s.cfg.CongestionControl != "" {
		cc := tcpip.CongestionControlOption(s.cfg.CongestionControl)
		all = append(all, &cc)
	}
	return all
}

// retriesWithin returns how often TCP sends the same again before it gives a peer up, if it waits for rto each time.
//
// RFC 9293, section 3.8.3, SHLD-11: "The value of R2 SHOULD correspond to at least 100 seconds."
func retriesWithin(rto time.Duration) tcpip.TCPMaxRetriesOption {
	const r2 = 100 * time.Second
	return tcpip.TCPMaxRetriesOption(max(tcp.MaxRetries, (r2+rto-1)/rto))
}

func protocolOf(a netip.Addr) tcpip.NetworkProtocolNumber {
	if a.Unmap().Is4() {
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}
