package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// diskCmd offers disks to NVMe hosts, or is the host of another's.
type diskCmd struct {
	Disk []string `arg:"" optional:"" placeholder:"FILE|SIZE" help:"A file or block device to offer, or a size such as 64M or 1G for a disk in memory, which is lost at the end. Several are namespaces 1, 2 and so on."`

	Listen    string        `placeholder:"HOST:PORT" default:":${disk_port}" help:"Wait for hosts at this address (default: ${default}). With port 0 a free one is taken."`
	NQN       string        `name:"nqn" placeholder:"NAME" help:"Name of the subsystem, such as nqn.2026-11.org.example:disk (default: made from the name of this host and the path of the first disk, and random for a disk in memory; it has to be the same after a restart)."`
	Host      []string      `placeholder:"NQN" help:"Let only hosts of this name connect. A host can say any name, so that this keeps nobody out who knows one."`
	BlockSize int           `enum:"512,4096" default:"512" help:"Bytes of a block (${enum})."`
	ReadOnly  bool          `help:"Refuse what writes."`
	Create    *octets       `placeholder:"SIZE" help:"Create missing files with this size."`
	UUID      []string      `name:"uuid" placeholder:"UUID" help:"UUIDs of the disks, in their order (default: made from NQN and path, so that they stay the same, and random for a disk in memory)."`
	Address   []string      `placeholder:"HOST:PORT" help:"Address that discovery tells of (default: the one at which the host has asked)."`
	Queues    int           `placeholder:"N" default:"${disk_queues}" help:"I/O queues that a host may have (default: ${default})."`
	Multipath bool          `help:"Let a host have several connections at a time between the same two addresses, as Linux's duplicate_connect makes them. Without it, a host that connects again has its older ones ended."`
	Drain     time.Duration `placeholder:"TIME" default:"10s" help:"How long commands that are under way may take when the command is interrupted (default: ${default})."`
	Verbose   bool          `short:"v" help:"Print hosts that come and go, on standard error."`
	CRC       string        `name:"crc" enum:"on,off" default:"on" help:"on: ask for CRCs. off: do without, if the peer wants none either."`

	diskHostFlags
	networkFlag
	tlsFlags

	ids [][16]byte // of the disks; zero: made from names
}

// diskVars are the numbers in the help.
func diskVars() kong.Vars {
	return kong.Vars{"disk_port": strconv.Itoa(target.DefaultPort), "disk_queues": strconv.Itoa(target.DefaultQueues)}
}

// Help is what --help adds.
func (*diskCmd) Help() string {
	return `Offers disks by NVMe over RDMA (NVMe/RDMA), to Linux over siw or an RNIC, and to any other NVMe host. It prints the command by which
Linux connects. The disks stay the same to hosts after a restart: they connect again by themselves, and send again what was under way. An
interrupt ends in order: what is under way is carried out and made durable first.

For example: "iwarp disk --create 1G disk.img", and on the host, with siw over eth0: "rdma link add siw0 type siw netdev eth0",
"modprobe nvme-rdma", and the nvme connect that was printed.

With --tls-cert only hosts of iwarp disk can connect: no other has TLS over RDMA.

With --read, --write or --list it is the host, of its own kind of target or of another, such as Linux's nvmet: "iwarp disk --list
nvme://HOST", "iwarp disk --read nvme://HOST/NQN --out copy.img", "iwarp disk disk.img --write nvme://HOST/NQN". It prints how much was copied, and
the SHA-256 of that; a copy that is interrupted has failed. Lost connections are made again, which is told.

JSON of --list: {subsystems: [{transport, address, kind, nqn}]}, or of one subsystem {nqn, model, firmware, serial, disks: [{namespace, octets, block,
uuid}]}, where uuid is left out if there is none.`
}

// Run serves until it is interrupted.
func (c *diskCmd) Run(ctx context.Context, std streams) (err error) {
	if err := c.checkOptions(); err != nil {
		return err
	}
	if c.asHost() {
		return c.runHost(ctx, std)
	}
	cfg, err := c.config(std)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDisks(cfg.Namespaces)) }()
	if cfg.Namespaces, err = c.namespaces(); err != nil {
		return &namedError{"disk", err}
	}
	if c.NQN == "" {
		cfg.NQN = defaultNQN(cfg.Namespaces[0], c.Disk[0])
	}
	t, err := target.New(cfg)
	if err != nil {
		return &namedError{"disk", err}
	}
	over := c.over()
	defer over.Close()
	warn(std, "disk", over)
	ln, err := c.listenOver(ctx, "disk", c.Listen, over, &iwarp.ListenConfig{})
	if err != nil {
		return err
	}
	c.announce(std, ln, cfg)
	return c.serve(ctx, t, ln)
}

// serve ends in order when the context ends.
func (c *diskCmd) serve(ctx context.Context, t *target.Target, ln *iwarp.Listener) error {
	err := t.Serve(ctx, ln)
	_ = ln.Close()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Drain)
	defer cancel()
	if failed := t.Shutdown(drain); failed != nil {
		return findings("disk: not everything was carried out: %w", failed)
	}
	return err
}

func (c *diskCmd) checkOptions() error {
	if err := c.check("disk", ""); err != nil {
		return err
	}
	if err := c.checkHost(); err != nil {
		return err
	}
	switch {
	case len(c.Disk) == 0 && !c.asHost():
		if c.Create != nil {
			return usage("disk: --create: name the file to make, such as: iwarp disk --create 1G disk.img")
		}
		return usage("disk: name a file, a block device or a size, such as 64M for a disk in memory; --list, --read and --write use disks of others")
	case c.Create != nil && (*c.Create <= 0 || int64(*c.Create)%int64(c.BlockSize) != 0):
		return usage("disk: --create: %d bytes is no size of a disk: use a multiple of %d, such as 1G",
			int64(*c.Create), c.BlockSize)
	case len(c.UUID) > len(c.Disk):
		return usage("disk: --uuid: %d for %d disks", len(c.UUID), len(c.Disk))
	case c.Drain <= 0:
		return usage("disk: --drain: %v is no time", c.Drain)
	}
	return cmp.Or(c.checkTLS("disk", !c.asHost(), c.over()), c.apart("disk", "there is no other one"),
		wantListen("disk: --listen", c.Listen))
}

// config is what the options say, except for the disks.
func (c *diskCmd) config(std streams) (cfg target.Config, err error) {
	cfg = target.Config{NQN: c.NQN, Hosts: c.Host, Queues: c.Queues, Multipath: c.Multipath}
	cfg.RDMA.MPA.NoCRC = c.CRC == "off"
	level := slog.LevelWarn
	if c.Verbose {
		level = slog.LevelInfo
	}
	cfg.Logger = slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: level}))
	for _, text := range c.Address {
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			return cfg, usage("disk: --address: %w", err)
		}
		cfg.Addresses = append(cfg.Addresses, at)
	}
	c.ids = make([][16]byte, len(c.Disk))
	for i, text := range c.UUID {
		if c.ids[i], err = parseUUID(text); err != nil {
			return cfg, usage("disk: --uuid: %w", err)
		}
	}
	return cfg, nil
}

// namespaces opens the disks. Those that were opened are there with an error, too.
func (c *diskCmd) namespaces() (all []target.Namespace, err error) {
	var files []diskFile
	for i, name := range c.Disk {
		if err := twice(files, name); err != nil {
			return all, err
		}
		n, err := c.namespace(name)
		if err != nil {
			return all, err
		}
		if info, err := os.Stat(name); err == nil {
			files = append(files, diskFile{name, info})
		}
		n.UUID = c.ids[i]
		all = append(all, n)
	}
	return all, nil
}

// A diskFile is the file of a disk.
type diskFile struct {
	name string
	info os.FileInfo
}

// twice refuses a file that is a disk already, maybe by another name: to a host two disks have different data.
func twice(files []diskFile, name string) error {
	info, err := os.Stat(name)
	for _, f := range files {
		if err == nil && os.SameFile(f.info, info) {
			return usage("%s and %s are one file, which can be one disk", f.name, name)
		}
	}
	return nil
}

// defaultNQN is made from the name of this host, and the last name and a digest of the path of a disk. To a host, disks
// of one NQN are ways to the same data: so files of one name in two directories have two, and a disk in memory has
// another each time.
func defaultNQN(disk target.Namespace, path string) string {
	here, _ := os.Hostname() // else it has no name
	digest := sha256.Sum256([]byte(disk.Name))
	return "nqn.2026-11.io.github.goiwarp:" + plain(here) + ":" + plain(filepath.Base(path)) + "-" +
		hex.EncodeToString(digest[:6])
}

// plain is a part of a name without what would have to be quoted.
func plain(name string) string {
	letters := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, name)
	return letters[:min(len(letters), 64)]
}

// namespace opens a disk. A file has its path for a name, so that it stays the same; one in memory, which will not have
// the same data again, has another name each time.
func (c *diskCmd) namespace(name string) (n target.Namespace, err error) {
	n.ReadOnly = c.ReadOnly
	if n.Backend, err = c.memory(name); n.Backend != nil || err != nil {
		n.Name = "memory " + rand.Text()
		return n, err
	}
	if n.Name, err = filepath.Abs(name); err != nil {
		return n, err
	}
	if c.Create != nil {
		if err := target.Create(name, int64(*c.Create), c.BlockSize); err != nil && !errors.Is(err, os.ErrExist) {
			return n, err
		}
	}
	f, err := target.OpenFile(name, c.BlockSize, c.ReadOnly)
	if err != nil {
		return n, withRemedy(name, err)
	}
	n.Backend = f
	return n, nil
}

// withRemedy adds to the error of a file what to do.
func withRemedy(name string, err error) error {
	info, _ := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && name[0] >= '0' && name[0] <= '9':
		return fmt.Errorf("%w: for a disk in memory, write its size in bytes, or with K, M or G, such as 1G", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: --create SIZE makes the file", err)
	case info != nil && info.IsDir():
		return usage("%s is a directory: name a file in it, a block device or a size", name)
	case info != nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeDevice == 0, info != nil &&
		info.Mode()&fs.ModeCharDevice != 0:
		return usage("%s is neither a file nor a block device: name one, or a size", name)
	}
	return err
}

// memory returns a disk in memory, if the name is a size, and no file.
func (c *diskCmd) memory(name string) (target.Backend, error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, nil
	}
	size, err := wording.ParseBytes(name)
	if err != nil {
		return nil, nil
	}
	m, err := target.NewMemory(size, c.BlockSize)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// parseUUID takes 32 digits, with the usual dashes or without.
func parseUUID(text string) (id [16]byte, err error) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q has not 32 digits in hex, such as 01234567-89ab-cdef-0123-456789abcdef", text)
	}
	return [16]byte(b), nil
}

func closeDisks(all []target.Namespace) (err error) {
	for _, n := range all {
		if f, ok := n.Backend.(*target.File); ok {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// announce says what there is, and what to type on a host.
func (c *diskCmd) announce(std streams, ln *iwarp.Listener, cfg target.Config) {
	for i, n := range cfg.Namespaces {
		fmt.Fprintf(std.out, "disk %d: %s, %d bytes in blocks of %d\n",
			i+1, c.Disk[i], n.Backend.Size(), n.Backend.BlockSize())
	}
	fmt.Fprintf(std.out, "listening on %v\n", ln.Addr())
	for _, at := range c.reachable(ln, cfg) {
		if c.TLSCert != "" { // which no host has but our own
			fmt.Fprintf(std.out, "iwarp disk --list nvme://%v/%s --tls\n", at, cfg.NQN)
			continue
		}
		fmt.Fprintf(std.out, "nvme connect -t rdma -a %s -s %d -n %s\n", at.Addr(), at.Port(), cfg.NQN)
	}
}

// reachable are the addresses by which hosts come: those that were named, or the one that is listened on, or of the
// host's if that is any.
func (c *diskCmd) reachable(ln *iwarp.Listener, cfg target.Config) []netip.AddrPort {
	at, err := netip.ParseAddrPort(ln.Addr().String())
	switch {
	case len(cfg.Addresses) > 0 || err != nil:
		return cfg.Addresses
	case !at.Addr().IsUnspecified():
		return []netip.AddrPort{netip.AddrPortFrom(at.Addr().Unmap(), at.Port())}
	}
	ports, _ := hostPorts() // else it is this host, at least
	return []netip.AddrPort{netip.AddrPortFrom(ownAddress(ports), at.Port())}
}

// A hostPort is a network interface of the host, with its IP addresses.
type hostPort struct {
	net.Flags
	addrs []netip.Addr
}

// hostPorts returns the interfaces of the host. The error is the system's.
func hostPorts() (ports []hostPort, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for i := range all {
		p := hostPort{Flags: all[i].Flags}
		addrs, err := all[i].Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil { // others are no IP addresses
				p.addrs = append(p.addrs, prefix.Addr())
			}
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// ownAddress is one at which other hosts reach this one, of IPv4 if it has any, or else that of loopback.
func ownAddress(ports []hostPort) netip.Addr {
	own := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for _, p := range ports {
		for _, at := range p.addrs {
			switch {
			case p.Flags&net.FlagUp == 0 || p.Flags&net.FlagLoopback != 0:
			case at.Is4():
				return at
			case own.IsLoopback() && !at.IsLinkLocalUnicast():
				own = at
			}
		}
	}
	return own
}
