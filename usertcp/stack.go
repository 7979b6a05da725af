package usertcp

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// Sizes of a [Stack], in bytes.
const (
	// MinMTU is the least that a Stack may have: RFC 8200's for IPv6, which leaves room for FPDUs as MPA wants it, too.
	MinMTU = 1280
	// MaxMTU is what an IP packet can be.
	MaxMTU = 65535
	// MaxReceiveBuffer is the largest receive buffer of a connection whose Stack has no size of its own. Nothing is
	// ever shown further ahead than the receive buffer is large.
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
	// MTU is the largest packet that is sent, in bytes, from [MinMTU] up to what the Link carries. If zero, it is what
	// the Link carries.
	MTU int
	// SendBuffer is how many bytes a connection holds that the peer has not acknowledged. If zero, it begins with 1
	// MiB and grows up to 4 MiB. Eight packets are the least.
	SendBuffer int
	// ReceiveBuffer is how many bytes a connection holds that are not read. If zero, it begins with
	// 1 MiB and grows up to [MaxReceiveBuffer].
	ReceiveBuffer int
	// CongestionControl is "reno" or "cubic". If empty, it is reno.
	CongestionControl string
	// MaxRTO bounds the time after which TCP sends again what is not acknowledged, from 200 ms on. If zero, it is 120
	// s, as RFC 6298 has it. A smaller one suits a short path that stands still at times, as it does on a busy machine.
	MaxRTO time.Duration
	// CloseTimeout is how long, give or take a quarter, a connection after its Close keeps and sends what was written,
	// while the peer acknowledges nothing more of it. Then the connection is reset: nobody else would notice it, or
	// count its memory. If zero, it is a minute.
	CloseTimeout time.Duration
	// KeepAlive is the time after which a silent peer is asked whether it is there. If zero, it is not asked.
	KeepAlive time.Duration
	// ChallengeACKs and ChallengePeriod bound how often a connection asks its peer about a RST, a SYN or an ACK that
	// somebody else may have made up: as many times in any such period. Zeros are 10 and 5 s, as RFC 5961, section 7,
	// has it. More of them end connections sooner whose peers have forgotten them while somebody else makes up
	// segments.
	ChallengeACKs   int
	ChallengePeriod time.Duration

	clock tcpip.Clock // of TCP's; nil: the machine's
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
	silenceLog()
	s := &Stack{
		cfg: cfg, taps: newTaps(cfg.Link, cfg.MTU), closed: make(chan struct{}),
		listeners: make(map[*listener]struct{}), conns: make(map[*Conn]struct{}),
	}
	s.nic = newNIC(cfg.Link, cfg.MTU, s.taps)
	s.taps.deliver, s.taps.state, s.taps.throttle = s.nic.deliver, s.state,
		throttle{cfg.ChallengeACKs, cfg.ChallengePeriod}
	s.net = stack.New(stack.Options{
		Clock:              cfg.clock,
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{s.taps.guarded(tcp.NewProtocolProbe(s.taps.probe))},
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
	case c.ChallengeACKs < 0 || c.ChallengePeriod < 0:
		return errors.New("a negative ChallengeACKs or ChallengePeriod: at least 1 and 1ns, or 0 for 10 and 5s")
	case c.CongestionControl != "" && c.CongestionControl != "reno" && c.CongestionControl != "cubic":
		return fmt.Errorf("a CongestionControl %q: there are \"reno\" and \"cubic\"", c.CongestionControl)
	case c.MaxRTO != 0 && c.MaxRTO < tcp.MinRTO:
		return fmt.Errorf("a MaxRTO of %v: %v is the least", c.MaxRTO, tcp.MinRTO)
	}
	if c.MTU == 0 {
		c.MTU = min(c.Link.MTU(), MaxMTU)
	}
	if c.MTU < MinMTU || c.MTU > min(c.Link.MTU(), MaxMTU) {
		return fmt.Errorf("an MTU of %d bytes: the link carries %d, and %d are the least", c.MTU, c.Link.MTU(), MinMTU)
	}
	c.ChallengeACKs = cmp.Or(c.ChallengeACKs, challengeACKs)
	c.ChallengePeriod = cmp.Or(c.ChallengePeriod, challengePeriod)
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
		own := tcpip.ProtocolAddress{Protocol: protocolOf(a),
			AddressWithPrefix: tcpip.AddrFromSlice(a.Unmap().AsSlice()).WithPrefix()}
		if err := s.net.AddProtocolAddress(nicID, own, stack.AddressProperties{}); err != nil {
			return fmt.Errorf("address %s: %s", a, err)
		}
	}
	s.net.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nicID},
		{Destination: header.IPv6EmptySubnet, NIC: nicID}})
	for _, o := range s.options() {
		if err := s.net.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return fmt.Errorf("%T: %s", o, err)
		}
	}
	return nil
}

// state returns that of the connection that TCP has between two ends, or of a Listener that waits for one.
func (s *Stack) state(e ends) tcp.EndpointState {
	ep := s.net.FindTransportEndpoint(protocolOf(e.remote.Addr()), tcp.ProtocolNumber, stack.TransportEndpointID{
		LocalPort: e.local.Port(), LocalAddress: tcpip.AddrFromSlice(e.local.Addr().AsSlice()),
		RemotePort: e.remote.Port(), RemoteAddress: tcpip.AddrFromSlice(e.remote.Addr().AsSlice()),
	}, nicID)
	if ep, ok := ep.(*tcp.Endpoint); ok {
		return ep.EndpointState()
	}
	return tcp.StateClose
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
// gVisor counts what it sends again without a time-out, too: a path that loses one segment for ever, and lets those
// beside it through, brings the end sooner.
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

// silenceLog has gVisor say nothing on standard error, where it warns of segments that peers send, as many as they
// like. Its log is one for the whole program: who has set another target keeps that.
func silenceLog() {
	if e, ok := log.Log().Emitter.(log.GoogleEmitter); ok && e.Writer != nil && e.Writer.Next == os.Stderr {
		log.SetTarget(&log.MultiEmitter{})
	}
}

// Pair returns two stacks that a [Pipe] joins: from a to b as ab says, and back as ba does. cfg is that of both, except
// for Addresses and Link. An MTU of zero is 1500. The addresses of a are 192.0.2.1 and 2001:db8::1, those of b end in
// 2.
func Pair(cfg Config, ab, ba Path) (a, b *Stack, err error) {
	for _, p := range []Path{ab, ba} {
		if err := p.check(); err != nil {
			return nil, nil, fmt.Errorf("usertcp: %w", err)
		}
	}
	if cfg.MTU == 0 {
		cfg.MTU = 1500
	}
	one, other := Pipe(cfg.MTU, ab, ba)
	a, err = pairEnd(cfg, one, "192.0.2.1", "2001:db8::1")
	if err != nil {
		return nil, nil, err
	}
	b, err = pairEnd(cfg, other, "192.0.2.2", "2001:db8::2")
	if err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	return a, b, nil
}

func pairEnd(cfg Config, l Link, addresses ...string) (*Stack, error) {
	cfg.Link, cfg.Addresses = l, nil
	for _, a := range addresses {
		cfg.Addresses = append(cfg.Addresses, netip.MustParseAddr(a))
	}
	return New(cfg)
}
