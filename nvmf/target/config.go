package target

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
)

// Defaults of a Config.
const (
	DefaultPort        = capsule.Port
	DefaultQueueDepth  = 128
	DefaultQueues      = 8
	DefaultControllers = 32
	DefaultInCapsule   = 4096
	DefaultMaxData     = 1 << 20
	DefaultQueueMemory = 4 << 20
	DefaultReadTimeout = 30 * time.Second
)

const (
	maxDepth      = 1024 // entries of a queue, except for an Admin Queue, which has capsule.AdminEntries
	maxQueues     = 1024
	maxNamespaces = capsule.MaxList
	minMaxData    = 2 * capsule.MaxDataUnit // as Identify's MDTS has it: 0 is no bound
	maxMaxData    = 8 << 20                 // which a keyed descriptor has room for
	maxInCapsule  = 64 << 10
)

// A Config says what a Target offers, and what hosts may take. Beside disks, a Target holds at most
//
//	Controllers × (Queues + 1) × (QueueMemory + (QueueDepth + 8) × (InCapsule + 64))
//
// bytes of memory for its hosts, of which it takes QueueMemory only as commands need it. The 8 are receives beyond the
// entries of a queue. Beside these connections there may be a third as many that have sent no Connect: they take no
// QueueMemory, and one that has been there for a second may have to give way.
type Config struct {
	// NQN is the name of the subsystem: "nqn.yyyy-mm.reverse.domain:name", of up to 223 bytes.
	NQN string
	// Namespaces are the disks, the first with number (NSID) 1.
	Namespaces []Namespace
	// Hosts are the NQNs of the hosts that may connect. If empty, all may.
	Hosts []string
	// Addresses are what discovery returns. If empty, discovery returns the address to which the host that asks has
	// connected.
	Addresses []netip.AddrPort
	// Queues is how many I/O queues a controller may have, 1 to 1024, and QueueDepth how many entries each, 2 to 1024.
	// If zero, DefaultQueues and DefaultQueueDepth.
	Queues, QueueDepth int
	// Multipath lets a host have several controllers between the same two addresses (Linux: duplicate_connect).
	// Otherwise, when a host connects again between two addresses, its older controllers between these two are ended
	// before it is answered: what still arrived on them would be carried out after what the host does now. Controllers
	// between other addresses go on, with Multipath or without.
	Multipath bool
	// Controllers is how many there may be at a time, each made by one connect of a host; those of discovery count,
	// too. If zero, DefaultControllers.
	Controllers int
	// InCapsule is how many bytes a host may send together with a command, a multiple of 16 from 1024 to 64 KiB. If
	// zero, DefaultInCapsule.
	InCapsule int
	// MaxData bounds the data of a command: a power of two from 8 KiB to 8 MiB. If zero, DefaultMaxData.
	MaxData int
	// QueueMemory bounds the data of all commands of a queue together; further ones wait. It is at least twice MaxData.
	// If zero, DefaultQueueMemory.
	QueueMemory int
	// ReadTimeout bounds how long a host may take to answer an RDMA Read, after which it loses its connection. If zero,
	// DefaultReadTimeout.
	ReadTimeout time.Duration
	// RDMA says how connections are accepted, except for depths, receives and private data. The zero value is usable.
	// Unless its QP.KeepAlive is enabled, TCP probes silent hosts, and gives up one that has been gone for 45 s.
	RDMA iwarp.AcceptConfig
	// Logger is told of hosts that come and go (Info), and of what a Backend could not do (Warn), once for each
	// connection. If nil, nothing is logged.
	Logger *slog.Logger
}

// fill puts numbers where there are none.
func (c *Config) fill() {
	c.Queues = cmp.Or(c.Queues, DefaultQueues)
	c.QueueDepth = cmp.Or(c.QueueDepth, DefaultQueueDepth)
	c.Controllers = cmp.Or(c.Controllers, DefaultControllers)
	c.InCapsule = cmp.Or(c.InCapsule, DefaultInCapsule)
	c.MaxData = cmp.Or(c.MaxData, DefaultMaxData)
	c.QueueMemory = max(cmp.Or(c.QueueMemory, DefaultQueueMemory), 2*c.MaxData)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, DefaultReadTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if !c.RDMA.QP.KeepAlive.Enable {
		c.RDMA.QP.KeepAlive.Enable = true
		c.RDMA.QP.KeepAlive.Idle, c.RDMA.QP.KeepAlive.Interval,
			c.RDMA.QP.KeepAlive.Count = 15*time.Second, 5*time.Second, 6
	}
}

// check refuses numbers that cannot be.
func (c *Config) check() error {
	for _, v := range []struct {
		name          string
		is, low, high int
		step          int
	}{
		{"Queues", c.Queues, 1, maxQueues, 1},
		{"QueueDepth", c.QueueDepth, 2, maxDepth, 1},
		{"Controllers", c.Controllers, 1, lastController, 1},
		{"InCapsule", c.InCapsule, capsule.ConnectDataLen, maxInCapsule, capsule.CapsuleUnit},
		{"MaxData", c.MaxData, minMaxData, maxMaxData, 1},
		{"Namespaces", len(c.Namespaces), 0, maxNamespaces, 1},
	} {
		if v.is < v.low || v.is > v.high || v.is%v.step != 0 {
			return fmt.Errorf("%w: Config.%s %d: %d to %d, in steps of %d",
				iwarp.ErrInvalid, v.name, v.is, v.low, v.high, v.step)
		}
	}
	if bits.OnesCount(uint(c.MaxData)) != 1 {
		return fmt.Errorf("%w: Config.MaxData %d is no power of two", iwarp.ErrInvalid, c.MaxData)
	}
	if c.ReadTimeout < 0 {
		return fmt.Errorf("%w: Config.ReadTimeout %v is negative", iwarp.ErrInvalid, c.ReadTimeout)
	}
	if err := checkNQN(c.NQN); err != nil {
		return err
	}
	return c.checkNamespaces()
}

func checkNQN(name string) error {
	if len(name) > capsule.MaxNQN || !strings.HasPrefix(name, "nqn.") || name == capsule.DiscoveryNQN {
		return fmt.Errorf("%w: NQN %q: a name such as nqn.2026-11.org.example:disk, of up to %d bytes",
			iwarp.ErrInvalid, name, capsule.MaxNQN)
	}
	return nil
}

func (c *Config) checkNamespaces() error {
	for i, n := range c.Namespaces {
		if n.Backend == nil {
			return fmt.Errorf("%w: namespace %d has no Backend", iwarp.ErrInvalid, i+1)
		}
		if err := checkSize(n.Backend.Size(), n.Backend.BlockSize()); err != nil {
			return fmt.Errorf("namespace %d: %w", i+1, err)
		}
	}
	return nil
}

// allows reports whether a host may connect.
func (c *Config) allows(host string) bool { return len(c.Hosts) == 0 || slices.Contains(c.Hosts, host) }
