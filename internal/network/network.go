// Package network has the lower layers that the tools run over, by name. A further one gets its name and its ways to
// dial and to listen here, and nowhere else.
package network

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/script"
)

// The names.
const (
	TCP  = "tcp"  // MPA over the TCP of the operating system
	SCTP = "sctp" // SCTP in UDP, in user space
)

// A Network is a lower layer, with what both ends of a connection within one process need of it.
type Network struct {
	// Name is that of the command line.
	Name string
	// Text says what it is.
	Text string
	// Streams tells that connections are streams of octets with MPA: there are markers, CRCs and dialects, and
	// a connection can be recorded or wrapped.
	Streams bool
	// Sockets tells that they are TCP sockets of the operating system.
	Sockets bool
	// Unordered tells that segments arrive in any order, and are placed as they do.
	Unordered bool
	// Here is an address to listen on, with a port that is free, that the other end in the same process reaches.
	Here string
}

var networks = []Network{
	{Name: TCP, Text: "TCP", Streams: true, Sockets: true, Here: "127.0.0.1:0"},
	{Name: SCTP, Text: "SCTP in UDP (RFC 5043, RFC 6951)", Unordered: true, Here: "127.0.0.1:0"},
}

// Names returns all names.
func Names() []string {
	names := make([]string, len(networks))
	for i, n := range networks {
		names[i] = n.Name
	}
	return names
}

// Open returns the network of a name; an empty one is TCP's.
func Open(name string) (*Network, error) {
	if name == "" {
		name = TCP
	}
	i := slices.IndexFunc(networks, func(n Network) bool { return n.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("no network %.40q: there are %s", name, strings.Join(Names(), ", "))
	}
	n := networks[i]
	return &n, nil
}

// Reorder stands in front of an address with a link that changes the order of packets: so many in a hundred come
// behind others. It is to be closed. Only Unordered networks have such links.
func (n *Network) Reorder(addr string, percent int) (link Link, err error) {
	return script.RelaySCTP(addr, script.Permute(percent, 1))
}

// A Link is what Reorder returns.
type Link interface {
	Addr() string // to dial in place of the address
	Close() error
}

// Dial connects as a Dialer says.
func (n *Network) Dial(ctx context.Context, d *iwarp.Dialer, addr string) (*iwarp.QP, error) {
	return d.Dial(ctx, n.Name, addr)
}

// Listen listens as a ListenConfig says.
func (n *Network) Listen(ctx context.Context, addr string, cfg *iwarp.ListenConfig) (*iwarp.Listener, error) {
	return iwarp.Listen(ctx, n.Name, addr, *cfg)
}
