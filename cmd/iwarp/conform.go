package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/mpa"
)

// conformCmd runs the conformance suite.
type conformCmd struct {
	Peer   string `arg:"" optional:"" placeholder:"HOST:PORT" help:"Test the Responder at this address, such as rdma-core's rping -s -P."`
	Listen string `placeholder:"ADDR" help:"Test the Initiator that connects to this address, such as rping -c, again and again. With port 0, a free one is taken and printed."`
	Exec   string `placeholder:"COMMAND" help:"With --listen: the Initiator's command, run for each connection; {host} and {port} stand for the address."`

	App     string `name:"app" enum:"none,rping" default:"rping" help:"The peer's application (${enum}). With none, what lies beyond the startup is left out."`
	Dialect string `enum:",rfc6581,rfc5044,rtr2007,revision0,startkey" default:"" placeholder:"DIALECT" help:"Startup dialect in which connections are made, and whose startup is tested: rfc6581 (default), rfc5044, rtr2007, revision0 or startkey."`
	Cases   string `name:"run" placeholder:"REGEXP" help:"Run only the cases whose ID matches."`
	List    bool   `help:"List the cases: ID, requirements, document, and a sentence."`
	Unsafe  bool   `help:"Run cases, too, that may crash or corrupt the peer's kernel if it is not up to them. For machines that you own."`
	Slow    bool   `help:"Run cases, too, that wait for the peer's own timeouts."`

	Verbose  bool   `short:"v" help:"Print the dialogue of every case, not only of those that fail."`
	JSON     bool   `name:"json" help:"Print a JSON object for each case on a line, and a last one with the counts."`
	JUnit    string `name:"junit" placeholder:"FILE" help:"Write the results for a CI system, too."`
	Markdown string `placeholder:"FILE" help:"Write a table of the results, too."`
	Title    string `placeholder:"TEXT" help:"Title of the table."`

	Timeout     time.Duration `default:"2s" help:"How long to wait for what the peer must do."`
	Quiet       time.Duration `default:"200ms" help:"How long to watch that the peer does not do what it must not."`
	SlowTimeout time.Duration `default:"70s" help:"How long to wait for the peer's own timeouts."`
	Wait        time.Duration `default:"1m" help:"With --listen: how long to wait for the peer to connect."`
}

// Run tests one peer in one role.
func (c *conformCmd) Run(ctx context.Context, std streams) error {
	opts, err := c.options()
	if err != nil {
		return err
	}
	if c.List {
		conform.List(std.out, opts.Selected())
		return nil
	}
	stop, err := c.peer(ctx, std, &opts)
	if err != nil {
		return err
	}
	defer stop()
	if opts.Unsafe {
		fmt.Fprintln(std.err, "unsafe cases are run: an unpatched kernel on the peer's side may crash")
	}
	return c.test(ctx, std, opts)
}

// options returns everything but the peer.
func (c *conformCmd) options() (conform.Options, error) {
	o := conform.Options{
		Unsafe: c.Unsafe, Slow: c.Slow,
		Timeout: c.Timeout, Quiet: c.Quiet, SlowTimeout: c.SlowTimeout,
	}
	switch {
	case c.Peer != "" && c.Listen != "":
		return o, errors.New("conform: either the address of a Responder, or --listen for an Initiator")
	case c.Peer == "" && c.Listen == "" && !c.List:
		return o, errors.New("conform: the address of a Responder is missing, or --listen for an Initiator")
	case c.Exec != "" && c.Listen == "":
		return o, errors.New("conform: --exec is for Initiators, with --listen")
	case c.Listen != "":
		o.Role = mpa.RoleInitiator
	case c.Peer != "":
		o.Role = mpa.RoleResponder
	}
	if err := o.App.UnmarshalText([]byte(c.App)); err != nil {
		return o, err
	}
	if c.Dialect != "" {
		if err := o.Dialect.UnmarshalText([]byte(c.Dialect)); err != nil {
			return o, err
		}
	}
	filter, err := regexp.Compile(c.Cases)
	if err != nil {
		return o, fmt.Errorf("conform: --run: %w", err)
	}
	o.Filter = filter
	return o, nil
}

// peer sets the options' peer and returns what ends it.
func (c *conformCmd) peer(ctx context.Context, std streams, opts *conform.Options) (stop func(), err error) {
	if opts.Role == mpa.RoleResponder {
		opts.Peer = &conform.DialPeer{Addr: c.Peer, Timeout: c.Timeout}
		return func() {}, nil
	}
	p, err := conform.Listen(ctx, c.Listen, strings.Fields(c.Exec), c.Wait)
	if err != nil {
		return nil, err
	}
	if !c.JSON {
		fmt.Fprintf(std.out, "listening on %v\n", p.Addr())
	}
	opts.Peer = p
	return func() { p.Close() }, nil
}
