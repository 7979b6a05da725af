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
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/monitor"
	"github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// diskCmd offers disks to NVMe hosts, or is the host of another's.
type diskCmd struct {
	Disk []string `arg:"" optional:"" placeholder:"FILE|SIZE" help:"A file or block device to offer, or a size such as 64M or 1G for a disk in memory, which is lost at the end. Several are namespaces 1, 2 and so on."`

	Listen    string        `placeholder:"[HOST][:PORT]" default:":${disk_port}" help:"Wait for hosts at this address (default: ${default}). With port 0 a free one is taken."`
	NQN       string        `name:"nqn" placeholder:"NAME" help:"Name of the subsystem, such as nqn.2026-11.org.example:disk (default: made from the host's name and the path of the first disk; random for a disk in memory). It must stay the same after a restart."`
	Host      []string      `placeholder:"NQN" help:"Accept only hosts of this name. Not access control: a host can claim any name."`
	BlockSize int           `enum:"512,4096" default:"512" help:"Bytes in a block (${enum})."`
	ReadOnly  bool          `help:"Refuse writes."`
	Create    *byteCount    `placeholder:"SIZE" help:"Create missing files with this size."`
	UUID      []string      `name:"uuid" placeholder:"UUID" help:"UUIDs of the disks, in their order (default: made from NQN and path; random for a disk in memory)."`
	Address   []string      `placeholder:"HOST:PORT" help:"Address that discovery reports (default: the one that the host asked)."`
	Queues    int           `placeholder:"N" default:"${disk_queues}" help:"I/O queues that a host may have (default: ${default})."`
	Multipath bool          `help:"Allow a host several connections between the same two addresses (Linux: duplicate_connect). Otherwise a new one ends the older ones."`
	Drain     time.Duration `placeholder:"TIME" default:"10s" help:"After an interrupt, time limit for the commands that are under way (default: ${default})."`
	Verbose   bool          `short:"v" help:"Print hosts that come and go, on standard error."`
	CRC       string        `name:"crc" enum:"on,off" default:"on" help:"on: ask for CRCs. off: do without, if the peer wants none either."`

	serviceFlags
	diskHostFlags
	networkFlag
	tlsFlags

	ids [][16]byte // of the disks; zero: made from names
}

// maxDiskQueues is how many I/O queues a target may have.
const maxDiskQueues = 1024

// diskVars are the numbers in the help.
func diskVars() kong.Vars {
	return kong.Vars{"disk_port": strconv.Itoa(target.DefaultPort), "disk_queues": strconv.Itoa(target.DefaultQueues)}
}

// Help is what --help adds.
func (*diskCmd) Help() string {
	return `Offers disks by NVMe over RDMA (NVMe/RDMA), to Linux over siw or an RNIC, and to any other NVMe host. It prints the command for the
host. After a restart, hosts reconnect and resend what was under way. An interrupt completes and flushes what is under way first.

On the host, with siw over eth0: "rdma link add siw0 type siw netdev eth0", "modprobe nvme-rdma", and the nvme connect that was printed.

With --tls-cert only iwarp disk can connect: no other host has TLS over RDMA.

With --read, --write or --list it is the host, and uses the disks of iwarp disk or another target, such as Linux's nvmet: "iwarp disk --list
nvme://HOST", "iwarp disk --read nvme://HOST/NQN --out copy.img", "iwarp disk disk.img --write nvme://HOST/NQN". A copy prints its
size and SHA-256. An interrupted copy fails. Lost connections are made again, and reported.

JSON of --list: {subsystems: [{transport, address, kind, nqn}]}, or of one subsystem {nqn, model, firmware, serial, disks: [{namespace, bytes, block,
uuid}]}, where uuid is left out if there is none.`
}

// Run serves until it is interrupted, or does what a host is to do.
func (c *diskCmd) Run(ctx context.Context, std streams) error {
	if !c.asHost() {
		return c.logged(ctx, std, "disk", c.run(ctx, std))
	}
	if err := c.checkOptions(); err != nil {
		return err
	}
	return c.runHost(ctx, std)
}

func (c *diskCmd) run(ctx context.Context, std streams) (err error) {
	if err := c.checkOptions(); err != nil {
		return err
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
	return c.offer(ctx, std, t, cfg)
}

// offer waits for hosts until the context ends.
func (c *diskCmd) offer(ctx context.Context, std streams, t *target.Target, cfg target.Config) error {
	over := c.over()
	defer over.Close()
	c.warn(std, "disk", over)
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	ln, err := c.listenOver(ctx, "disk", c.listen(), over, &iwarp.ListenConfig{RNIC: rnic})
	if err != nil {
		return err
	}
	defer ln.Close()
	stop, err := c.monitor(ctx, std, monitor.Sources{Name: "disk", State: func() serve.State { return stateOf(ctx) },
		Disks: t, RNIC: rnic, SCTP: over, Device: "iwarp0"}, cfg.Logger)
	if err != nil {
		return err
	}
	defer stop()
	c.announce(std, ln, cfg)
	tell := notify(cfg.Logger)
	tell(serve.Serving)
	defer context.AfterFunc(ctx, func() { tell(serve.Draining) })()
	return c.serve(ctx, t, ln)
}

// stateOf is what a server does that takes connections until a context ends.
func stateOf(ctx context.Context) serve.State {
	if ctx.Err() != nil {
		return serve.Draining
	}
	return serve.Serving
}

// listen is where hosts connect to.
func (c *diskCmd) listen() string { return withPort(c.Listen, target.DefaultPort) }

// serve ends in order when the context ends.
func (c *diskCmd) serve(ctx context.Context, t *target.Target, ln *iwarp.Listener) error {
	err := t.Serve(ctx, ln)
	_ = ln.Close()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Drain)
	defer cancel()
	if failed := t.Shutdown(drain); failed != nil {
		return findings("disk: not everything was completed: %w", failed)
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
		return usage("disk: --create: %d bytes cannot be the size of a disk: use a multiple of %d, such as 1G",
			int64(*c.Create), c.BlockSize)
	case len(c.UUID) > len(c.Disk):
		return usage("disk: --uuid: there are %d UUIDs for %d disks", len(c.UUID), len(c.Disk))
	case c.Queues < 1 || c.Queues > maxDiskQueues:
		return usage("disk: --queues: 1 to %d, not %d", maxDiskQueues, c.Queues)
	case c.NQN != "" && (!strings.HasPrefix(c.NQN, "nqn.") || len(c.NQN) > capsule.MaxNQN || c.NQN == capsule.DiscoveryNQN):
		return usage("disk: --nqn: %.60q: a name such as nqn.2026-11.org.example:disk, of up to %d bytes", c.NQN, capsule.MaxNQN)
	case c.Drain <= 0:
		return usage("disk: --drain: must be more than 0, not %v", c.Drain)
	}
	return cmp.Or(c.checkService("disk"), c.checkTLS("disk", !c.asHost(), c.over()), c.apart("disk", "there is no other one"),
		wantListen("disk: --listen", c.listen()))
}

// config is what the options say, except for the disks.
func (c *diskCmd) config(std streams) (cfg target.Config, err error) {
	cfg = target.Config{NQN: c.NQN, Hosts: c.Host, Queues: c.Queues, Multipath: c.Multipath}
	cfg.RDMA.MPA.NoCRC = c.CRC == "off"
	level := slog.LevelWarn
	if c.Verbose {
		level = slog.LevelInfo
	}
	cfg.Logger = c.logger(std, level)
	for _, text := range c.Address {
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			return cfg, usage("disk: --address: %.60q is not IP:PORT, such as 192.0.2.1:4420", text)
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
			return usage("%s and %s are the same file: offer it once", f.name, name)
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
			if errors.Is(err, fs.ErrNotExist) {
				return n, fmt.Errorf("%w: make the directory first", err)
			}
			return n, withRemedy(name, err)
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
	case errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%w: the file system, or a limit of the shell (ulimit -f), has no file of that size: use a smaller one", err)
	case errors.Is(err, fs.ErrNotExist) && name[0] >= '0' && name[0] <= '9':
		return fmt.Errorf("%w: for a disk in memory, give its size, such as 65536, 64M or 1T", err)
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
	switch {
	case errors.Is(err, wording.ErrTooLarge):
		return nil, usage("%w", err)
	case err != nil:
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
		return id, fmt.Errorf("%q does not have 32 hex digits: use a UUID such as 01234567-89ab-cdef-0123-456789abcdef", text)
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
