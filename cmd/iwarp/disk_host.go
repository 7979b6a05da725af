package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/nvmf/host"
)

// diskHostFlags have iwarp disk use the disks of others.
type diskHostFlags struct {
	Read  string `xor:"as-host" placeholder:"URL" help:"Copy a target's disk to --out or standard output: nvme://HOST[:PORT]/NQN[?ns=N], where N is the number of the namespace (default: 1)."`
	Write string `xor:"as-host" placeholder:"URL" help:"Copy FILE to the start of a target's disk, and flush it."`
	List  string `xor:"as-host" placeholder:"URL" help:"List the subsystems of nvme://HOST[:PORT], or the disks of nvme://HOST[:PORT]/NQN."`
	Out   string `short:"o" placeholder:"FILE" help:"With --read: the file to write. It must not exist, unless with --force."`
	Force bool   `short:"f" help:"With --read: replace the file of --out."`
	JSON  bool   `name:"json" help:"With --list: print JSON."`

	Peer     *string       `name:"peer" enum:"${presets}" placeholder:"NAME" help:"With --read, --write and --list: settings for this peer (${enum}): siw for Linux's target over siw."`
	Patience time.Duration `placeholder:"TIME" default:"1m" help:"With --read and --write: how long to try to reconnect when the connection is lost (default: ${default}; 0: do not). A silent target counts as lost after 15 s."`
}

func (f *diskHostFlags) asHost() bool { return f.Read != "" || f.Write != "" || f.List != "" }

// diskKeepAlive has a target that says nothing more noticed within one and a half times that, which the help tells.
const diskKeepAlive = 10 * time.Second

// A diskURL names a namespace.
type diskURL struct {
	at, nqn string
	ns      uint32
}

// parseDiskURL reads [nvme://]HOST[:PORT][/NQN[?ns=N]].
func parseDiskURL(option, text string) (d diskURL, err error) {
	if !strings.Contains(text, "://") {
		text = "nvme://" + text
	}
	u, err := url.Parse(text)
	if err != nil { // what a parser says of HOST:PORT helps nobody
		return d, noDiskURL(option, text)
	}
	if u.Scheme != "nvme" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return d, noDiskURL(option, text)
	}
	port := u.Port()
	if port == "" {
		port = strconv.Itoa(host.DefaultPort)
	}
	d = diskURL{at: net.JoinHostPort(u.Hostname(), port), nqn: strings.TrimPrefix(u.Path, "/"), ns: 1}
	for key, values := range u.Query() {
		n, err := strconv.ParseUint(values[0], 10, 32)
		if key != "ns" || len(values) > 1 || err != nil || n == 0 || n >= capsule.AllNamespaces {
			return d, usage("%s: ?%s: expected ?ns=N, the number of a namespace", option, key)
		}
		d.ns = uint32(n)
	}
	return d, wantPeer(option, d.at)
}

// noDiskURL is the error of what does not name a disk.
func noDiskURL(option, text string) error {
	if option == "disk: --list" {
		return usage("%s: %.80q: expected nvme://HOST[:PORT], or with /NQN for the disks of one subsystem", option, text)
	}
	return usage("%s: %.80q: expected nvme://HOST[:PORT]/NQN[?ns=N]; iwarp disk --list nvme://HOST prints the names (NQN)",
		option, text)
}

// checkHost refuses what makes no sense.
func (c *diskCmd) checkHost() error {
	switch {
	case c.Out != "" && c.Read == "":
		return usage("disk: --out: it is for --read")
	case c.Force && c.Out == "":
		return usage("disk: --force: it is for --read with --out")
	case c.JSON && c.List == "":
		return usage("disk: --json: it is for --list")
	case c.Peer != nil && !c.asHost():
		return usage("disk: --peer: it is for --read, --write and --list")
	case c.Metrics != "" && c.asHost():
		return usage("disk: --metrics: it is for disks that are offered, and not for --read, --write and --list")
	case c.Patience < 0:
		return usage("disk: --patience: %v is negative", c.Patience)
	case c.Write != "" && len(c.Disk) != 1:
		return usage("disk: --write: name one file to copy")
	case c.Write == "" && c.asHost() && len(c.Disk) > 0:
		return usage("disk: %s: --read and --list take no disk here", c.Disk[0])
	case c.Read != "" && c.Out == "" && term.IsTerminal(int(os.Stdout.Fd())):
		return usage("disk: --read: name a file with --out: standard output is a terminal")
	case c.Out != "":
		return c.mayReplace()
	case c.Write != "":
		return readable("disk: --write", c.Disk[0])
	}
	return nil
}

// readable looks at a file before anybody is connected for it.
func readable(option, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: check its name", option, err)
	}
	if err != nil || !info.Mode().IsRegular() {
		return err // a pipe would wait
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", option, err)
	}
	return f.Close()
}

// mayReplace refuses what --read would replace without --force. In a pipe or a terminal nothing is lost.
func (c *diskCmd) mayReplace() error {
	info, err := os.Lstat(c.Out)
	if err != nil || c.Force && !info.IsDir() {
		return nil // what is wrong shows when it is opened
	}
	if through, err := os.Stat(c.Out); err == nil {
		info = through
	}
	if info.Mode()&(fs.ModeCharDevice|fs.ModeNamedPipe) != 0 {
		return nil
	}
	if info.IsDir() {
		return usage("disk: --out: %s is a directory: name a file in it", c.Out)
	}
	return &ending{fmt.Errorf("disk: --out: %s exists: --force replaces it", c.Out), statusFailed}
}

// runHost does what a host is to do.
func (c *diskCmd) runHost(ctx context.Context, std streams) error {
	over := c.over()
	defer over.Close()
	switch {
	case c.List != "":
		return c.list(ctx, std, over)
	case c.Read != "":
		return c.useDisk(ctx, std, over, "disk: --read", c.Read,
			func(n *host.Namespace) error { return c.readDisk(ctx, std, n) })
	}
	return c.useDisk(ctx, std, over, "disk: --write", c.Write,
		func(n *host.Namespace) error { return c.writeDisk(ctx, std, n) })
}

// hostDialer returns the dialer for a network, and how iwarp calls that.
func (c *diskCmd) hostDialer(over *network.Network, at string) (d host.Dialer, name string, err error) {
	wrap, err := c.wrap("disk", at, over, nil)
	if err != nil {
		return d, "", err
	}
	d.KeepAlive, d.Patience = diskKeepAlive, c.Patience
	if c.Patience == 0 {
		d.Patience = -1 // which the Dialer takes for none
	}
	rdma := &iwarp.Dialer{MPA: mpa.Offer{NoCRC: c.CRC == "off"}, Wrap: wrap}
	if rdma.Preset, err = (&startupFlags{Peer: c.Peer}).preset(); err != nil {
		return d, "", err
	}
	d.RDMA, name, err = over.Dialer(rdma)
	return d, name, err
}

// controller connects to one, and has it told when the connection is lost and made again.
func (c *diskCmd) controller(ctx context.Context, std streams, over *network.Network, option string,
	at diskURL) (*host.Controller, error) {
	d, name, err := c.hostDialer(over, at.at)
	if err != nil {
		return nil, err
	}
	d.Lost = func(cause error) { c.tellLost(std, option, cause) }
	controller, err := d.Dial(ctx, name, at.at, at.nqn)
	if errors.As(err, new(*host.StatusError)) {
		return nil, &namedError{option, fmt.Errorf("%w: iwarp disk --list nvme://%s prints the names", err, at.at)}
	}
	if err != nil {
		return nil, &namedError{option, err}
	}
	return controller, nil
}

// tellLost says that the target is lost, for a cause, or is back.
func (c *diskCmd) tellLost(std streams, option string, cause error) {
	newProgressLine(std.err).wipe()
	if cause == nil {
		fmt.Fprintf(std.err, "iwarp: %s: connected again\n", option)
		return
	}
	lost := &namedError{fmt.Sprintf("%s: the target is lost, and is tried for %v", option, c.Patience), cause}
	fmt.Fprintln(std.err, printed(lost))
}

// useDisk connects to a namespace.
func (c *diskCmd) useDisk(ctx context.Context, std streams, over *network.Network, option, text string,
	use func(*host.Namespace) error) (err error) {
	at, err := parseDiskURL(option, text)
	if err != nil {
		return err
	}
	if at.nqn == "" {
		return usage("%s: the name of the subsystem is missing: nvme://%[2]s/NQN; iwarp disk --list nvme://%[2]s prints the names", option, at.at)
	}
	defer func() { err = cutCopy(ctx, option, err) }()
	controller, err := c.controller(ctx, std, over, option, at)
	if err != nil {
		return err
	}
	defer func() {
		if ended := controller.Close(); ended != nil && err == nil {
			err = &namedError{option, ended}
		}
	}()
	n, err := controller.Namespace(ctx, at.ns)
	if errors.Is(err, host.ErrNoNamespace) {
		err = fmt.Errorf("%w: iwarp disk --list nvme://%s/%s prints the numbers", err, at.at, at.nqn)
	}
	if err == nil {
		err = use(n)
	}
	if err != nil {
		return &namedError{option, err}
	}
	return nil
}

// readDisk copies a namespace.
func (c *diskCmd) readDisk(ctx context.Context, std streams, n *host.Namespace) error {
	if c.Out == "" {
		return readTo(ctx, std, n, os.Stdout, std.err)
	}
	out, err := openPart(c.Out, 0o600) // its owner's alone, as with --create
	if err != nil {
		return err
	}
	// another may have made the file meanwhile
	if err := cmp.Or(readTo(ctx, std, n, out, std.out), c.mayReplace()); err != nil {
		out.remove()
		return err
	}
	return out.complete()
}

// readTo copies a namespace, and says what was copied.
func readTo(ctx context.Context, std streams, n *host.Namespace, out, said io.Writer) error {
	read := func(ctx context.Context, b []byte, off int64) error {
		_, err := n.Read(ctx, b, off)
		return err
	}
	write := func(_ context.Context, b []byte, _ int64) error {
		_, err := out.Write(b)
		return err
	}
	return pump{what: "read", size: n.Size(), from: read, to: write}.run(ctx, std, said)
}

// writeDisk copies a file. Of the last block, what the file does not reach stays as it is.
func (c *diskCmd) writeDisk(ctx context.Context, std streams, n *host.Namespace) error {
	f, err := os.Open(c.Disk[0])
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd) // also of a block device
	if err != nil {
		return err
	}
	if size > n.Size() {
		return fmt.Errorf("%s has %d bytes, more than %v", c.Disk[0], size, n)
	}
	read := func(_ context.Context, b []byte, off int64) error {
		_, err := f.ReadAt(b, off)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // it had more when we began
		}
		return err
	}
	write := func(ctx context.Context, b []byte, off int64) error {
		if tail := len(b) % n.BlockSize(); tail > 0 {
			rest := make([]byte, n.BlockSize()-tail)
			if _, err := n.Read(ctx, rest, off+int64(len(b))); err != nil {
				return err
			}
			b = append(b, rest...)
		}
		_, err := n.Write(ctx, b, off)
		return err
	}
	return pump{what: "wrote", size: size, from: read, to: write, end: n.Flush}.run(ctx, std, std.out)
}
