package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/goiwarp/iwarp/perf"
)

// A perfChild is the responder of latency, in a process of its own.
type perfChild struct {
	cmd   *exec.Cmd
	stdin io.Closer // it ends when this is closed, and so with this process
	addr  string
}

// startPerfChild runs this program once more, as a responder on a port of its own.
func startPerfChild(ctx context.Context, std streams) (*perfChild, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &perfChild{cmd: exec.CommandContext(ctx, self, "perf", "--listen", "127.0.0.1:0", "--until-eof")}
	c.cmd.Args[0] = os.Args[0]
	c.cmd.Stderr = std.err
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), perfListening)
	if err != nil || !ok {
		c.stop()
		return nil, fmt.Errorf("it does not say where it listens: %q, %w", line, err)
	}
	c.addr = addr
	return c, nil
}

func (c *perfChild) stop() {
	c.stdin.Close()
	_ = c.cmd.Wait() // that it was ended is no news
}

// untilEOF returns a context that ends with the standard input.
func untilEOF(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel
}

// together reports whether both ends are in this process, for latency too.
func (c *perfCmd) together() bool { return c.Processes == 1 || c.Processes == 0 && c.Pcap != "" }

// processesText says in how many processes the ends are.
func (c *perfCmd) processesText() string {
	switch {
	case c.Connect != "":
		return "2"
	case c.together():
		return "1"
	}
	return "bandwidth 1, latency 2"
}

// measureHere measures with both ends on this host.
func (c *perfCmd) measureHere(ctx context.Context, std streams, opts perf.Options, watch perf.Observer) (*perf.Report, error) {
	if c.together() {
		return perf.Run(ctx, opts, watch)
	}
	child, err := startPerfChild(ctx, std)
	if err != nil {
		return nil, fmt.Errorf("perf: a second process, which --processes 1 does without: %w", err)
	}
	defer child.stop()
	return perf.RunTwo(ctx, child.addr, opts, watch)
}
