// Package network has the lower layers that the tools run over, by name. A further one that perf,
// rping and matrix run over gets its name and its ways here.
package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/script"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/sctp"
	"github.com/goiwarp/iwarp/usertcp"
)

// The names.
const (
	TCP     = "tcp"     // MPA over the TCP of the operating system
	SCTP    = "sctp"    // SCTP in UDP, in user space
	UserTCP = "usertcp" // MPA over a TCP in user space that is aware of it

	KernelSCTP = "sctp:kernel" // SCTP by the kernel, where it has that
	SCTPInUDP  = "sctp:udp"    // another name of SCTP, as for an iwarpsctp.Network
)

// A Network is a lower layer, with what both ends of a connection within one process need of it.
type Network struct {
	// Name is that of the command line.
	Name string
	// Text says what it is.
	Text string
	// Streams tells that connections are streams of bytes with MPA: there are markers, CRCs and dialects.
	Streams bool
	// Sockets tells that they are TCP sockets of the operating system.
	Sockets bool
	// Unordered tells that segments arrive in any order, and are placed as they do: over TCP, where there are markers.
	Unordered bool
	// Taps tells that what passes below connections passes through the process, where a Tap records it.
	Taps bool
	// Inside tells that there is no way out of the process: both ends are in it, and use the same Network.
	Inside bool
	// Here is an address to listen on, with a port that is free, that the other end in the same process reaches.
	Here string

	stacks *stacks
	sctp   *iwarpsctp.Network // nil: it is TCP
}

// A Tap records what passes below connections, where that passes through the process. What it has for other networks is
// not used.
type Tap struct {
	UDP  func(iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket, error) // SCTP in UDP: see iwarpsctp.Network.WrapUDP
	Link func(usertcp.Link) usertcp.Link                        // a TCP in user space: what its Link is replaced by
}

// Tap has Dial and Listen use a Tap. Where both ends are in the process, and have a link between them, it is at the end
// of who dials. It is called before the first connection.
func (n *Network) Tap(t Tap) {
	if n.Name == SCTP {
		n.sctp.WrapUDP = t.UDP
	}
	if n.stacks != nil {
		n.stacks.tap = t.Link
	}
}

// Untapped returns the same network for the other end in the same process, which is not recorded, too.
func (n *Network) Untapped() *Network {
	other := *n
	if n.sctp != nil {
		other.sctp = new(iwarpsctp.Network)
	}
	return &other
}

// Stats are what SCTP has counted: nothing over TCP.
func (n *Network) Stats() sctp.Stats {
	if n.sctp == nil {
		return sctp.Stats{}
	}
	return n.sctp.Stats()
}

// stacks are two TCPs in user space, with a link in memory between them: one for who dials, and one for who listens; or
// one for both, at a TUN device. They are made when they are first asked for.
type stacks struct {
	once         sync.Once
	at           *tun    // nil: in memory
	late         float64 // share of packets
	tap          func(usertcp.Link) usertcp.Link
	dial, listen *usertcp.Stack
	err          error
}

// lateBy is by how much a packet is late at most. In a burst, it comes after a few others.
const lateBy = 200 * time.Microsecond

func (s *stacks) make() error {
	s.once.Do(func() {
		if s.at != nil {
			s.dial, s.err = s.at.stack(s.tapped)
			s.listen = s.dial
			return
		}
		s.err = s.pair()
	})
	return s.err
}

// pair makes two stacks with a link in memory.
func (s *stacks) pair() (err error) {
	there := usertcp.Path{Reorder: s.late, Late: lateBy}
	back := there
	back.Seed = 1
	one, other := usertcp.Pipe(1500, there, back)
	if s.dial, err = usertcp.New(usertcp.Config{Link: s.tapped(one),
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}); err != nil {
		return err
	}
	s.listen, err = usertcp.New(usertcp.Config{Link: other, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.2")}})
	return err
}

// makeToDial makes the stacks for who would wait for an answer in vain if the network were Unready.
func (n *Network) makeToDial() error {
	if err := n.Unready(); err != nil {
		return err
	}
	return n.stacks.make()
}

// tapped is a link as the Tap has it.
func (s *stacks) tapped(l usertcp.Link) usertcp.Link {
	if s.tap == nil {
		return l
	}
	return s.tap(l)
}

var networks = []Network{
	{Name: TCP, Text: "TCP", Streams: true, Sockets: true, Here: "127.0.0.1:0"},
	{Name: SCTP, Text: "SCTP in UDP (RFC 5043, RFC 6951)", Unordered: true, Taps: true, Here: "127.0.0.1:0"},
	{Name: KernelSCTP, Text: "SCTP of the kernel (RFC 5043)", Unordered: true, Here: "127.0.0.1:0"},
	{Name: UserTCP, Text: "TCP in user space, both ends in one process", Streams: true, Unordered: true, Taps: true,
		Inside: true, Here: "192.0.2.2:0"},
}

// Names returns all names.
func Names() []string {
	names := make([]string, len(networks))
	for i, n := range networks {
		names[i] = n.Name
	}
	return names
}

// Open returns the network of a name; an empty one is TCP's, and SCTPInUDP is SCTP. What [OnTUN] returns is a name,
// too. Close ends what it has come to need.
func Open(name string) (*Network, error) {
	switch name {
	case "":
		name = TCP
	case SCTPInUDP:
		name = SCTP
	}
	if name, device := SplitTUN(name); name == UserTCP && device != "" {
		return onTUN(device)
	}
	i := slices.IndexFunc(networks, func(n Network) bool { return n.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("no network %.40q: there are %s", name, strings.Join(Names(), ", "))
	}
	n := networks[i]
	switch {
	case n.Inside:
		n.stacks = new(stacks)
	case !n.Streams:
		n.sctp = new(iwarpsctp.Network)
	}
	return &n, nil
}

// Reorder stands in front of an address with a link that changes the order of packets: it delivers so many in a hundred
// late. It is to be closed. It is for SCTP in UDP; ReorderInside is for networks within the process.
func (n *Network) Reorder(addr string, percent int) (link Link, err error) {
	relay, err := script.RelaySCTP(addr, script.Permute(percent, 1))
	if err != nil {
		return nil, err
	}
	return relay, nil
}

// ReorderInside has so many packets in a hundred, in both directions, delivered late. It is for a network within the
// process, before the first connection.
func (n *Network) ReorderInside(percent int) { n.stacks.late = float64(percent) / 100 }

// A Link is what Reorder returns.
type Link interface {
	Addr() string // to dial in place of the address
	Close() error
}

// Close ends what connections of the network run on, and the connections with it.
func (n *Network) Close() error {
	if n.stacks == nil {
		return nil
	}
	n.stacks.once.Do(func() { n.stacks.err = errors.New("the network is closed") })
	if n.stacks.dial == nil {
		return nil
	}
	if n.stacks.at != nil { // there is nobody in this process who waits for the other end
		ctx, cancel := context.WithTimeout(context.Background(), lastWords)
		defer cancel()
		if err := n.stacks.dial.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return nil
	}
	return errors.Join(n.stacks.dial.Close(), n.stacks.listen.Close())
}

// DialStream opens a connection of TCP, or of the TCP in user space. It is for networks of streams. Where the network
// is Unready, the error says so at once.
func (n *Network) DialStream(ctx context.Context, addr string) (net.Conn, error) {
	if n.stacks == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	if err := n.makeToDial(); err != nil {
		return nil, err
	}
	return n.stacks.dial.DialContext(ctx, "tcp", addr)
}

// ListenStream listens for such connections.
func (n *Network) ListenStream(ctx context.Context, addr string) (net.Listener, error) {
	if n.stacks == nil {
		return new(net.ListenConfig).Listen(ctx, "tcp", addr)
	}
	if err := n.stacks.make(); err != nil {
		return nil, err
	}
	return n.stacks.listen.Listen(ctx, "tcp", addr)
}

// Dial connects as a Dialer says. Where the network is Unready, the error says so at once.
func (n *Network) Dial(ctx context.Context, d *iwarp.Dialer, addr string) (*iwarp.QP, error) {
	over, name, err := n.Dialer(d)
	if err != nil {
		return nil, err
	}
	return over.Dial(ctx, name, addr)
}

// Dialer returns a Dialer that connects over the network, and the name that it takes for that. Its error is that of
// Dial where the network is Unready.
func (n *Network) Dialer(d *iwarp.Dialer) (over iwarp.Dialer, name string, err error) {
	over, name = *d, n.Name
	if n.stacks != nil {
		err = n.makeToDial()
		over.Stack, name = n.stacks.dial, "tcp"
	}
	if n.sctp != nil {
		over.Network = n.sctp
	}
	return over, name, err
}

// Listen listens as a ListenConfig says.
func (n *Network) Listen(ctx context.Context, addr string, cfg *iwarp.ListenConfig) (*iwarp.Listener, error) {
	if n.stacks != nil {
		if err := n.stacks.make(); err != nil {
			return nil, err
		}
		over := *cfg
		over.Stack = n.stacks.listen
		return over.Listen(ctx, "tcp", addr)
	}
	if n.sctp != nil {
		over := *cfg
		over.Network = n.sctp
		cfg = &over
	}
	return cfg.Listen(ctx, n.Name, addr)
}

// A Refused is an option of the startup that a network does not have.
type Refused struct {
	Option string // as on the command line, without dashes
	Reason string
}

func (e *Refused) Error() string { return "--" + e.Option + ": " + e.Reason }

// options are those that set the fields of an Offer.
var options = map[string]string{"Markers": "markers", "NoCRC": "crc", "Kind": "kind", "Dialect": "dialect"}

// Check refuses what a network without MPA does not have of an Offer. The error is a *Refused.
func (n *Network) Check(o mpa.Offer) error {
	if n.Streams {
		return nil
	}
	var only *sctp.OfferError
	if errors.As(sctp.CheckOffer(o), &only) {
		return &Refused{options[only.Field], only.Reason}
	}
	return nil
}

// CloseWith closes a connection when a context ends, unless the function that it returns is called before.
func CloseWith(ctx context.Context, c io.Closer) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.Close() })
}
