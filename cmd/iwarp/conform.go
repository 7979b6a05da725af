package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/conform"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/mpa"
)

// conformCmd runs the conformance suite.
type conformCmd struct {
	At     peerWords `arg:"" optional:"" placeholder:"HOST[:PORT]" help:"Test the server at this address, such as rdma-core's rping -s -P (default port: ${rping_port})."`
	Peer   string    `kong:"-"`
	Listen string    `placeholder:"ADDR" help:"Test the client that connects to this address again and again, such as rping -c. With port 0, a free one is taken and printed."`
	Exec   string    `placeholder:"COMMAND" help:"With --listen: the command of the client, run for each connection; {host} and {port} stand for the address."`

	Network *networkName `enum:"tcp,sctp,usertcp" placeholder:"NAME" help:"What the peer is tested over, tcp (default), sctp or usertcp: TCP with MPA, or SCTP in UDP (RFC 5043); usertcp tests our own endpoint in this process, over a TCP in user space, or with --tun the peer that HOST:PORT or --listen name."`
	TUN     string       `name:"tun" placeholder:"DEVICE=ADDRESS" help:"With --network usertcp: the TUN device of Linux that connects it, and its address there. Takes root or CAP_NET_ADMIN: see iwarp rping --help."`
	App     string       `name:"app" enum:"none,rping,reject" default:"rping" help:"The peer's application (${enum}). Without rping, what lies beyond the startup is left out; reject is one that rejects every request, such as iwarp rping -s -P --reject."`
	Dialect *string      `enum:"rfc6581,rfc5044,rtr2007,revision0,startkey" placeholder:"DIALECT" help:"Startup dialect in which connections are made, and whose startup is tested: rfc6581 (default), rfc5044, rtr2007, revision0 or startkey."`
	Say     string       `placeholder:"TEXT" help:"With delayed startup: what the Initiator says in streaming mode before its first frame; \\n and the like are taken as in Go."`
	Answer  string       `placeholder:"TEXT" help:"With delayed startup: the Responder's last streaming message, which answers --say."`
	Cases   string       `name:"run" placeholder:"REGEXP" help:"Run only the cases whose ID matches."`
	List    bool         `help:"List the cases, or with --network those over it: ID, requirements, document, and a sentence; with --json as JSON."`
	Rerun   string       `enum:",last" default:"" placeholder:"last" help:"Run the cases again that failed in the last run, with its peer and options. Takes no other option but -v."`
	Compare string       `placeholder:"OLD.json" help:"Compare the outputs of two runs with --json, and run none: --compare OLD.json NEW.json. The exit status is 1 if a case fails that did not fail before."`
	words   []string     // of the command line
	Unsafe  bool         `help:"Also run the cases that may crash or corrupt the peer's kernel. Only for machines that you own."`
	Slow    bool         `help:"Also run the cases that wait for the peer's own timeouts."`

	reportFlags
	Title string `placeholder:"TEXT" help:"Title of the table."`

	pcapFlags

	Timeout     time.Duration `default:"2s" help:"How long to wait for what the peer must do."`
	Quiet       time.Duration `default:"200ms" help:"How long to watch that the peer does not do what it must not."`
	SlowTimeout time.Duration `default:"70s" help:"How long to wait for the peer's own timeouts."`
	Wait        time.Duration `default:"1m" help:"With --listen: how long to wait for the peer to connect."`
}

// Help describes the JSON objects.
func (conformCmd) Help() string {
	return "JSON: one object on a line for each case, when it has run, and one for the whole run at the end. With --list, one for each case: docs/conform-json.md.\n\n" +
		"The exit status is also 3 if no case applies to the peer. It is 4 if the peer stopped answering. To find that out, an ordinary startup is tried after a case in which the peer was silent. " +
		"After an interrupt it is 1 if a case has failed by then. JUnit and JSON say that the run was interrupted."
}

// Run tests one peer in one role.
func (c *conformCmd) Run(ctx context.Context, std streams, k *kong.Context) (err error) {
	switch {
	case c.Rerun != "":
		return c.rerun(std, k)
	case c.Compare != "":
		return c.compare(std.out)
	}
	c.words = k.Args
	if c.Peer, err = c.At.addr("conform"); err != nil {
		return err
	}
	c.Listen = atDefault(c.Listen)
	opts, err := c.options()
	if err != nil {
		return err
	}
	cases, err := opts.Selected()
	if err != nil {
		return usage("conform: --run: %w", err)
	}
	if c.List {
		return c.list(std, c.listed(cases))
	}
	files, err := c.open("conform", c.title(&opts))
	if err != nil {
		return err
	}
	defer func() { err = files.finish(ctx, err) }()
	return c.record(ctx, "conform", std, func(ctx context.Context, r *recording) error {
		stop, err := c.peer(ctx, std, &opts, r)
		if err != nil {
			return err
		}
		defer stop()
		if opts.Unsafe {
			fmt.Fprintln(std.err, "unsafe cases are run: an unpatched kernel on the peer's side may crash")
		}
		return c.test(ctx, std, opts, files)
	})
}

// network is what the peer is tested over.
func (c *conformCmd) network() networkName {
	if c.Network == nil {
		return network.TCP
	}
	return *c.Network
}

// list prints the cases.
func (c *conformCmd) list(std streams, cases []conform.Case) error {
	switch {
	case c.JUnit != "" || c.Markdown != "" || c.HTML != "" || c.Pcap != "":
		return usage("conform: --list: no case is run: leave out --junit, --markdown, --html and --pcap")
	case c.JSON:
		return conform.ListJSON(std.out, cases)
	}
	conform.List(folded(std.out), cases)
	return nil
}

// listed are the cases over the network, if one is asked for.
func (c *conformCmd) listed(cases []conform.Case) []conform.Case {
	return slices.DeleteFunc(cases, func(one conform.Case) bool {
		return c.Network != nil && one.OverSCTP() != (c.network() == network.SCTP)
	})
}

// options returns everything but the peer.
func (c *conformCmd) options() (conform.Options, error) {
	o := conform.Options{
		Unsafe: c.Unsafe, Slow: c.Slow,
		Timeout: c.Timeout, Quiet: c.Quiet, SlowTimeout: c.SlowTimeout,
	}
	if err := cmp.Or(c.role(&o), c.check(), o.App.UnmarshalText([]byte(c.App))); err != nil {
		return o, err
	}
	if c.Dialect != nil {
		if err := o.Dialect.UnmarshalText([]byte(*c.Dialect)); err != nil {
			return o, err
		}
	}
	var err error
	if o.Streaming, err = c.streaming(); err != nil {
		return o, err
	}
	if o.Filter, err = regexp.Compile(c.Cases); err != nil {
		return o, usage("conform: --run: %w: want a regular expression, such as ^startup/; --list shows all IDs", err)
	}
	return o, nil
}

// role sets the peer's role, as far as there is one.
func (c *conformCmd) role(o *conform.Options) error {
	overSCTP := c.network() == network.SCTP
	switch inside := c.network() == network.UserTCP && c.TUN == ""; {
	case c.Exec != "" && c.Listen == "" && c.Peer != "":
		return usage("conform: --exec: it runs a client, and %s is a server: give --listen ADDR in place of it", c.Peer)
	case c.Exec != "" && c.Listen == "" && !c.List:
		return usage("conform: --exec: the address is missing that its client connects to: add --listen ADDR, such as --listen 127.0.0.1:0")
	case c.TUN != "" && c.network() != network.UserTCP:
		return usage("conform: --tun: it is for --network %s", network.UserTCP)
	case inside && (c.Peer != "" || c.Listen != ""):
		return usage("conform: --network: with %s the peer is our own endpoint, in this process: give an address only with --tun", c.network())
	case inside:
		o.Role = mpa.RoleResponder
	case c.Peer != "" && c.Listen != "":
		return usage("conform: %s is a server to test, and --listen is for a client: give one of them", c.Peer)
	case c.Peer == "" && c.Listen == "" && !c.List:
		return usage("conform: give HOST to test a server, or --listen ADDR to test a client")
	case overSCTP && c.Dialect != nil:
		return usage("conform: --dialect: it is of MPA, which SCTP does not have")
	case c.Listen != "":
		o.Role = mpa.RoleInitiator
		if overSCTP {
			o.SCTPListener = new(conform.SCTPListener) // for the choice of cases, until peer opens one
		}
	case c.Peer != "":
		o.Role = mpa.RoleResponder
		if overSCTP {
			o.SCTP = c.Peer
		}
	}
	return nil
}

// check refuses times and addresses that are none.
func (c *conformCmd) check() error {
	if min(c.Timeout, c.Quiet, c.SlowTimeout, c.Wait) < 0 {
		return usage("conform: --timeout, --quiet, --slow-timeout and --wait: none may be negative")
	}
	switch {
	case c.Peer != "":
		return wantPeer("conform", c.Peer)
	case c.Listen != "":
		return wantListen("conform: --listen", c.Listen)
	}
	return nil
}

// streaming returns what precedes a delayed startup, and nil if nothing does.
func (c *conformCmd) streaming() (*conform.Streaming, error) {
	if c.Say == "" && c.Answer == "" {
		return nil, nil
	}
	var texts [2]string
	for i, text := range []string{c.Say, c.Answer} {
		var err error
		if texts[i], err = strconv.Unquote(`"` + text + `"`); err != nil {
			return nil, usage("conform: %s: %q is not what stands between the quotes of a Go string: %w",
				[...]string{"--say", "--answer"}[i], text, err)
		}
	}
	return &conform.Streaming{Initiator: texts[0], Responder: texts[1]}, nil
}

// peer sets the options' peer, with what records it, and returns what ends it.
func (c *conformCmd) peer(ctx context.Context, std streams, opts *conform.Options,
	r *recording) (stop func(), err error) {
	if c.network() == network.UserTCP {
		return c.userTCP(ctx, std, opts, r)
	}
	switch opts.Record = r.writer(); {
	case opts.SCTP != "":
		return func() {}, nil
	case opts.Role == mpa.RoleResponder:
		opts.Peer = &conform.DialPeer{Addr: c.Peer, Timeout: c.Timeout}
		return func() {}, nil
	case opts.SCTPListener != nil:
		l, err := conform.ListenSCTP(ctx, c.Listen, strings.Fields(c.Exec), c.Wait)
		opts.SCTPListener = l
		return c.awaits(std, l, err)
	}
	p, err := conform.Listen(ctx, c.Listen, strings.Fields(c.Exec), c.Wait)
	opts.Peer = p
	return c.awaits(std, p, err)
}

// awaits says where an Initiator is to come to, unless that has failed, and returns what ends it.
func (c *conformCmd) awaits(std streams, l interface {
	Addr() net.Addr
	Close() error
}, err error) (stop func(), _ error) {
	if err != nil {
		return nil, err
	}
	if !c.JSON {
		fmt.Fprintf(std.out, "listening on %v\n", l.Addr())
	}
	return func() { _ = l.Close() }, nil
}
