package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/transfer"
	"github.com/goiwarp/iwarp/internal/wording"
)

// cpCmd copies files to and from an iwarp serve.
type cpCmd struct {
	Paths []string `arg:"" placeholder:"PATH" help:"Sources and the target: FILE ... HOST:[PATH], or HOST:PATH ... FILE. An IPv6 address is in brackets, and a local file with a colon in its name begins with ./"`

	Port      uint16        `short:"P" default:"${rping_port}" help:"Port of the server (default: ${default})."`
	Recursive bool          `short:"r" help:"Copy directories with all that is in them. -R is the same."`
	Recurse   bool          `short:"R" hidden:"" help:"The same as -r, as cp has it."`
	Resume    bool          `help:"Continue a copy that was interrupted. Files that are already there and equal are left alone."`
	Force     bool          `short:"f" help:"Replace existing files, and restart interrupted ones."`
	Limit     byteRate      `placeholder:"RATE" help:"Copy at most this many bytes a second, such as 10M (at least 1K)."`
	Preserve  bool          `short:"p" help:"No effect: modes and times are always kept."`
	Verbose   bool          `short:"v" help:"Print each file when it is copied, and the rate at the end."`
	Quiet     bool          `short:"q" help:"Show no progress on a terminal."`
	Timeout   time.Duration `placeholder:"TIME" help:"Time limit for connecting (default: 10s)."`

	networkFlag
	tlsFlags
}

// A byteRate is a flag for bytes a second, from 1024 on.
type byteRate uint64

// UnmarshalText takes it as perf takes sizes.
func (r *byteRate) UnmarshalText(text []byte) error {
	n, err := wording.ParseBytes(string(text))
	if err != nil {
		return err
	}
	if n < 1024 {
		return fmt.Errorf("%q is too slow: use 1K bytes a second or more, such as 10M", text)
	}
	*r = byteRate(n)
	return nil
}

// Help is what --help adds.
func (*cpCmd) Help() string {
	return `Copies files to or from the directory of an "iwarp serve --dir DIR [--writable]", by RDMA Writes. A file gets its name only
when it is complete, on disk, and both ends have the same digest. Nothing is replaced without --force. Modes and times are kept. An
interrupted copy fails and leaves .NAME.iwarp-part, which --resume continues. Symbolic links within a directory are copied from a
server, but not to one. Special files are skipped. Skipped files are reported, and make the exit status 3. See docs/cp.md.`
}

// Run copies.
func (c *cpCmd) Run(ctx context.Context, std streams) error {
	job, err := c.job()
	if err != nil {
		return err
	}
	if job.put && len(job.names) == 1 { // of several it is left out
		if err := readable("cp", job.names[0]); errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	over := c.over()
	defer over.Close()
	wrap, err := c.wrap("cp", c.hostPort(job.host), over, nil)
	if err != nil {
		return err
	}
	out := &cpPrinter{std: std, verbose: c.Verbose, progress: copyLine{progressLine: newProgressLine(std.err)}}
	if c.Quiet {
		out.progress.progressLine = newProgressLine(io.Discard)
	}
	client := &transfer.Client{
		Force: c.Force, Resume: c.Resume, Recursive: c.Recursive || c.Recurse, Rate: uint64(c.Limit), Watch: out.event,
		Dial: c.dial(over, job.host, wrap),
	}
	began := time.Now()
	sum, err := job.run(ctx, client)
	out.summary(sum, time.Since(began))
	if err != nil && ctx.Err() != nil {
		err = errInterrupted
	}
	if !job.put && errors.Is(err, fs.ErrNotExist) {
		err = &ending{fmt.Errorf("%w: make the directory to copy to, or correct its name", err), statusFailed}
	}
	if err != nil {
		return &ending{&failure{"cp", &namedError{"cp", err}}, cpStatus(err)}
	}
	return nil
}

// errInterrupted ends a copy that has not come to its end, which is a failure for those who go on to remove what was
// copied.
var errInterrupted = errors.New("interrupted: --resume continues")

// cpStatus is statusFailed, except for what must be a mistake of the command line's.
func cpStatus(err error) int {
	if errors.Is(err, iwarp.ErrInvalid) {
		return statusUsage
	}
	return statusFailed
}

// dial returns what connects to the server.
func (c *cpCmd) dial(over *network.Network, host string, wrap func(net.Conn) (net.Conn, error)) func(context.Context,
	*iwarp.Dialer) (*iwarp.QP, error) {
	return func(ctx context.Context, d *iwarp.Dialer) (*iwarp.QP, error) {
		d.Timeout, d.Wrap = c.Timeout, wrap
		return over.Dial(ctx, d, c.hostPort(host))
	}
}

func (c *cpCmd) hostPort(host string) string {
	return net.JoinHostPort(host, strconv.Itoa(int(c.Port)))
}

// A cpJob is what to copy.
type cpJob struct {
	host  string
	put   bool
	names []string // local with put, or else of the server
	to    string   // the other way round
}

// job takes the arguments apart.
func (c *cpCmd) job() (job cpJob, err error) {
	if err := errors.Join(c.check("cp", ""), c.checkTLS("cp", false, c.over())); err != nil {
		return job, err
	}
	n := len(c.Paths)
	if n < 2 {
		return job, usage("cp: give sources and a target: FILE ... HOST:[PATH], or HOST:PATH ... FILE")
	}
	if err := cmp.Or(c.apart("cp", "there is no server"), notNegative("cp: --timeout", c.Timeout)); err != nil {
		return job, err
	}
	for _, arg := range c.Paths {
		if err := wantHostPath(arg); err != nil {
			return job, err
		}
	}
	if job, err = jobOf(c.Paths[:n-1], c.Paths[n-1]); err == nil {
		err = wantPeer("cp: HOST", c.hostPort(job.host))
	}
	return job, err
}

func jobOf(from []string, to string) (job cpJob, err error) {
	host, path, there := remotePath(to)
	if there {
		job = cpJob{host: host, put: true, to: slash(to, path)}
		err = wantPath(to, path)
	} else {
		job.to = to
	}
	for i, name := range from {
		host, path, remote := remotePath(name)
		switch {
		case err != nil:
		case remote == there:
			err = usage("cp: PATH: %q and %q: one side must be remote (HOST:PATH), and the other local",
				name, to)
		case remote && i > 0 && host != job.host:
			err = usage("cp: PATH: %q: all sources must be on one host", name)
		case remote:
			job.host = host
			job.names, err = append(job.names, path), wantPath(name, path)
		default:
			job.names = append(job.names, name)
		}
	}
	return job, err
}

// run copies with a client.
func (j cpJob) run(ctx context.Context, client *transfer.Client) (transfer.Summary, error) {
	if j.put {
		return client.Put(ctx, j.names, j.to)
	}
	return client.Get(ctx, j.names, j.to)
}

// cpPrinter prints what becomes of each file.
type cpPrinter struct {
	std      streams
	verbose  bool
	progress copyLine
}

// event prints one.
func (p *cpPrinter) event(e transfer.Event) {
	switch e := e.(type) {
	case transfer.Begun:
		p.progress.start(": "+filepath.Base(e.Path), e.Size)
	case transfer.Moved:
		p.progress.moved(int64(e))
	case *transfer.Outcome:
		p.progress.clear()
		switch {
		case !e.Good() || e.Text != "": // it may lack something
			fmt.Fprintf(p.std.err, "iwarp: cp: %s\n", oneLine(e)) // a server's words are in it
		case p.verbose:
			fmt.Fprintf(p.std.out, "%s\n", oneLine(e))
		}
	}
}

// summary prints how much it was.
func (p *cpPrinter) summary(sum transfer.Summary, took time.Duration) {
	p.progress.clear()
	if p.verbose {
		files := wording.Count(sum.Files, "file")
		if sum.There > 0 {
			files += fmt.Sprintf(", %d of which there already", sum.There)
		}
		fmt.Fprintf(p.std.out, "%s, %.1f MiB in %.2f s: %s\n",
			files, mib(sum.Bytes), took.Seconds(), rateText(sum.Bytes, took))
	}
}
