package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// errNotMeasured is of a tool that does not have the work.
var errNotMeasured = errors.New("the tool does not measure that")

// A tool measures works.
type tool interface {
	name() string
	// measure returns a figure in the work's unit, or errNotMeasured.
	measure(ctx context.Context, w work, cc string) (float64, error)
}

// A program is a tool of somebody else's, which has a server and a client.
type program struct {
	label, file, pkg string // its name in tables, the executable, and the Debian package
	// command returns the arguments of both for a work, and ok if it has the work.
	command func(w work, port int, cc string) (server, client []string, ok bool)
	// parse reads a figure from what the client has printed: messages a second, or
	// nanoseconds of half a round trip.
	parse func(w work, out []byte) (float64, error)
	env   []string
	limit time.Duration
	// lacks says why it has not a work.
	lacks func(w work) string
}

func (p *program) name() string { return p.label }

func (p *program) installed() bool {
	_, err := exec.LookPath(p.file)
	return err == nil
}

func (p *program) measure(ctx context.Context, w work, cc string) (float64, error) {
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	server, client, ok := p.command(w, port, cc)
	if !ok {
		return 0, errNotMeasured
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, fmt.Errorf("no end within %v", p.limit))
	defer cancel()
	out, err := p.converse(ctx, server, client)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return 0, err
	}
	x, err := p.parse(w, out)
	return w.figure(x), err
}

// retryAfter is how long a client waits that came before its server listened.
const retryAfter = 50 * time.Millisecond

// converse runs a server, and a client until it succeeds or the context ends.
func (p *program) converse(ctx context.Context, server, client []string) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	srv := p.exec(ctx, server)
	if err := srv.Start(); err != nil {
		cancel()
		return nil, err
	}
	defer func() {
		cancel() // kills it
		_ = srv.Wait()
	}()
	for {
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		out, err := p.exec(ctx, client).Output()
		if err == nil || ctx.Err() != nil {
			return out, err
		}
	}
}

func (p *program) exec(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.file, args...)
	cmd.Env = append(cmd.Environ(), p.env...)
	cmd.WaitDelay = time.Second
	return cmd
}
