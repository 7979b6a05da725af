package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/demo"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/subprocess"
	"github.com/goiwarp/iwarp/internal/wording"
)

// demoCmd shows RDMA between two processes.
type demoCmd struct {
	Dir string `placeholder:"DIR" help:"Where the capture and its page go (default: the current directory, or that for temporary files)."`

	Owner bool `hidden:"" help:"Be the second process."`
}

// Help is what --help adds.
func (demoCmd) Help() string {
	return "Two processes on this machine, connected by plain TCP. One offers memory, and the other writes and reads it. " +
		"The owner's program has no part in that: it is asked afterwards what its memory has. " +
		"A Write beyond the memory is refused. The capture of the connection, and a page that explains it, are left behind."
}

const (
	demoText   = "hello, RDMA"
	demoWrites = 100_000
	demoTime   = 30 * time.Second // for all, on the slowest machine
)

// Run is either process.
func (c *demoCmd) Run(ctx context.Context, std streams) error {
	ctx, cancel := context.WithTimeout(ctx, demoTime)
	defer cancel()
	if c.Owner {
		return c.own(ctx, std)
	}
	owner, err := subprocess.Start(ctx, std.err, "demo", "--owner")
	if err != nil {
		return fmt.Errorf("demo: cannot start the second process: %w", err)
	}
	defer owner.Stop() //nolint:errcheck // it has done its part, or its error is that of the connection
	r, err := c.capture()
	if err != nil {
		return err
	}
	s := &demoShow{out: std.out, owner: owner}
	if err := errors.Join(s.run(ctx, r), r.finish(std)); err != nil {
		_ = os.Remove(r.path) // it is cut
		return fmt.Errorf("demo: %w", err)
	}
	return s.end(ctx, r.path)
}

// own is the second process: it offers memory.
func (c *demoCmd) own(ctx context.Context, std streams) error {
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer ln.Close()
	subprocess.Announce(std.out, ln.Addr())
	return demo.Own(ctx, ln, os.Stdin, std.out)
}

// capture begins the capture, in the first directory that takes it.
func (c *demoCmd) capture() (r *recording, err error) {
	dirs := []string{c.Dir}
	if c.Dir == "" {
		dirs = []string{".", os.TempDir()}
	}
	for _, dir := range dirs {
		r, err = newRecording(filepath.Join(dir, "iwarp-demo.pcapng"), defaultPcapLimit, func(error) {})
		if err == nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("demo: %w: name a directory that can be written to: --dir DIR", err)
}

// A demoShow runs the demonstration, and prints it line by line.
type demoShow struct {
	out   io.Writer
	owner *subprocess.Process
	begin demo.State // the owner's, before the first access
	state demo.State
	steps int
}

// look asks the owner's program for what it has.
func (s *demoShow) look() error {
	answer, err := s.owner.Ask()
	if err == nil {
		err = json.Unmarshal(answer, &s.state)
	}
	if err != nil {
		return fmt.Errorf("the owner's process does not answer: %w", err)
	}
	return nil
}

// step prints what the writer does, and what the owner has.
func (s *demoShow) step(does, arrow, there, text string) {
	s.steps++
	fmt.Fprintf(s.out, " %d  %-23s %-14s %-17s %s\n", s.steps, does, arrow, there, text)
}

// memory is the owner's, as it was found.
func (s *demoShow) memory() string {
	return "[" + strings.ReplaceAll(string(s.state.Memory), "\x00", ".") + "]"
}

// The arrows point to where the bytes go.
const (
	toOwner   = "────────────>"
	fromOwner = "<────────────"
	toNowhere = "───────────X"
)

func (s *demoShow) run(ctx context.Context, r *recording) error {
	over, err := network.Open(network.TCP)
	if err != nil {
		return err
	}
	w, err := demo.Dial(ctx, iwarp.Dialer{Wrap: r.wrap(over)}, s.owner.Addr)
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // the connection ends by the Write that is refused
	for _, part := range []func(context.Context, *demo.Writer) error{s.meet, s.text, s.count, s.tooFar} {
		if err := part(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// meet shows two processes, and memory with nothing in it.
func (s *demoShow) meet(context.Context, *demo.Writer) error {
	err := s.look()
	s.begin = s.state
	fmt.Fprint(s.out, "Two programs, one memory: RDMA over plain TCP. No RDMA hardware, no root.\n\n")
	fmt.Fprintf(s.out, "    %-38s %s\n", fmt.Sprintf("writer (process %d)", os.Getpid()),
		fmt.Sprintf("owner (process %d)", s.state.PID))
	s.step("connects", toOwner, fmt.Sprintf("offers %d bytes", demo.Size), s.memory())
	return err
}

// text shows a Write, and a Read.
func (s *demoShow) text(ctx context.Context, w *demo.Writer) error {
	if err := w.Write(ctx, demoText); err != nil {
		return err
	}
	read, err := w.Read(ctx, len(demoText))
	if err = errors.Join(err, s.look()); err != nil {
		return err
	}
	s.step(fmt.Sprintf("Writes %q", demoText), toOwner, "its memory now", s.memory())
	s.step(fmt.Sprintf("Reads %d bytes", len(demoText)), fromOwner, "is not asked", fmt.Sprintf("%q", read))
	return nil
}

// count shows many Writes, over a connection of their own, which is not recorded, and what they cost.
func (s *demoShow) count(ctx context.Context, _ *demo.Writer) error {
	w, err := demo.Dial(ctx, iwarp.Dialer{}, s.owner.Addr)
	if err != nil {
		return err
	}
	owner := s.state.CPU
	cost, err := w.Count(ctx, demoWrites)
	if err = errors.Join(err, w.Close(), s.look()); err != nil {
		return err
	}
	s.step(fmt.Sprintf("Writes %s times", thousands(demoWrites)), toOwner, "its memory now", s.memory())
	fmt.Fprintf(s.out, "    in %v: %.1f million Writes a second\n", cost.Took.Round(time.Millisecond),
		demoWrites/cost.Took.Seconds()/1e6)
	fmt.Fprintf(s.out, "    CPU for each: %.2f µs here, %.2f µs in the owner's process\n", eachMicro(cost.CPU),
		eachMicro(s.state.CPU-owner))
	return nil
}

// eachMicro is the part of a time that one of the Writes has, in microseconds.
func eachMicro(d time.Duration) float64 { return d.Seconds() * 1e6 / demoWrites }

// thousands is a number below a million, with a comma.
func thousands[N wording.Number](n N) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// tooFar shows the guard of the memory, and sums up what went before.
func (s *demoShow) tooFar(ctx context.Context, w *demo.Writer) error {
	writes, reads := s.state.Writes-s.begin.Writes, s.state.Reads-s.begin.Reads
	refused, err := w.TooFar(ctx)
	if err = errors.Join(err, s.look()); err != nil {
		return err
	}
	s.step("Writes 1 byte too far", toNowhere, "refused", s.memory())
	fmt.Fprintf(s.out, "    by a Terminate: %v\n\n", refused.Code)
	fmt.Fprintf(s.out, "The owner's library placed %s Writes and answered %d Reads: one is step 3,\n", thousands(writes), reads)
	fmt.Fprintln(s.out, "and one told the writer that the Writes of step 4 had arrived.")
	fmt.Fprintf(s.out, "The owner's program slept: it got no notice of any (%d completions).\n", s.state.Completions)
	return nil
}

// end writes the page of the capture, and says what to do next.
func (s *demoShow) end(ctx context.Context, capture string) error {
	html := strings.TrimSuffix(capture, "pcapng") + "html"
	ctx = context.WithoutCancel(ctx) // the page is of the whole, whenever an interrupt comes
	decoded := (&decodeCmd{File: capture, HTML: html}).Run(ctx, streams{io.Discard, io.Discard})
	if statusOf(ctx, decoded) != statusFindings { // the Terminate is one
		return errors.Join(errors.New("demo: the capture lacks the Terminate"), decoded)
	}
	_, err := fmt.Fprintf(s.out, `
Look at it:  steps 1, 2, 3 and 5: open this page in a browser, or decode them
             %s
             iwarp decode -v %s
Next:        iwarp perf              how fast it is here, beside TCP
             iwarp run rping -s -v   run an RDMA program, no hardware (Linux)
             iwarp --help            all commands
`, html, capture)
	return err
}
