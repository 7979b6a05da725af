// Package subprocess runs this program once more, as a process that listens on a port of its
// own and ends with its parent: the second end of a measurement between two processes.
package subprocess

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
)

// A Process is one that listens.
type Process struct {
	Addr string // where it listens

	cmd    *exec.Cmd
	stdin  io.WriteCloser // it ends when this is closed, and so with this process
	stdout *bufio.Reader
}

// Start runs this program with such arguments and waits until it has called [Announce].
// What it prints on standard error goes to stderr. It ends with ctx too.
func Start(ctx context.Context, stderr io.Writer, args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.CommandContext(ctx, self, args...)}
	p.cmd.Args[0] = os.Args[0]
	p.cmd.Stderr = stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.stdout = bufio.NewReader(out)
	if p.Addr, err = announced(p.stdout); err != nil {
		_ = p.Stop()
		return nil, err
	}
	return p, nil
}

// Stop ends the process and waits for its end. An error says that it has not ended in order: it was killed before, say,
// or by the end of its context.
func (p *Process) Stop() error {
	_ = p.stdin.Close() // which fails only if it was closed
	return p.cmd.Wait()
}

// Ask sends the process an empty line on its standard input, and returns the line that it prints then.
func (p *Process) Ask() (answer []byte, err error) {
	if _, err := io.WriteString(p.stdin, "\n"); err != nil {
		return nil, err
	}
	return p.stdout.ReadBytes('\n')
}

// listening is in front of the address in what [Announce] prints.
const listening = "listening on "

// Announce prints the line in which a program says that it listens at addr.
func Announce(w io.Writer, addr net.Addr) {
	fmt.Fprintf(w, "%s%v\n", listening, addr)
}

// announced reads the line that [Announce] prints.
func announced(r *bufio.Reader) (addr string, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("it ended without saying where it listens: %w", err)
	}
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), listening)
	if !ok {
		return "", fmt.Errorf("it does not say where it listens: %q", line)
	}
	return addr, nil
}

// UntilEOF returns a context that ends with the standard input, as [Process.Stop] has it.
func UntilEOF(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel
}
