package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/rping"
	"github.com/goiwarp/iwarp/mpa"
)

// rpingCmd has the flags of rdma-core's rping, and such for the MPA startup.
type rpingCmd struct {
	At peerWords `arg:"" optional:"" placeholder:"HOST[:PORT]" help:"Be the client of the server at this address, as -c -a HOST -p PORT."`

	Server     bool           `short:"s" xor:"role" help:"Be the server."`
	Client     bool           `short:"c" xor:"role" help:"Be a client that prints what rdma-core's prints: no times."`
	Addr       string         `short:"a" placeholder:"ADDR" help:"Server: address to listen on (default: all). Client: the server's address."`
	Port       uint16         `short:"p" default:"${rping_port}" help:"Port. With 0 the server takes a free one and prints it."`
	Count      int            `short:"C" default:"0" help:"Pings to make. 0: until interrupted."`
	Interval   *time.Duration `short:"i" placeholder:"TIME" help:"Client: pause between pings (default: 1s; with -c none, as rdma-core's)."`
	Size       byteCount      `short:"S" default:"${rping_size}" help:"Client: bytes of each ping, such as 64 or 4K: 1 to 65535. (A server of rdma-core's needs a -S at least as large.)"`
	Verbose    bool           `short:"v" help:"Print the data of the pings."`
	Validate   bool           `short:"V" help:"Compare the data of the pings."`
	Debug      bool           `short:"d" help:"Print what was negotiated and what happens, on stderr."`
	Source     string         `short:"I" placeholder:"ADDR" help:"Client: source address of the connection."`
	OwnQP      bool           `short:"q" help:"No effect (accepted for rdma-core's scripts)."`
	Persistent bool           `short:"P" help:"Server: serve many clients, at the same time, until interrupted."`

	CRC         string        `name:"crc" enum:"on,off" default:"on" help:"on: ask for CRCs. off: do without, if the peer wants none either."`
	Markers     bool          `help:"Ask the peer for markers."`
	Dialect     []string      `name:"dialect" enum:"${dialects}" placeholder:"NAME" help:"Client: startup dialect to start in (${enum}). Server: those to serve (default: all but rtr2007); startkey, if named, with private data messages too."`
	P2P         bool          `name:"p2p" default:"true" negatable:"" help:"Client: ask for the peer-to-peer model of RFC 6581."`
	RTR         []string      `name:"rtr" enum:"write,read,send" help:"Ready-to-Receive indications to offer, or as server to support (${enum})."`
	PrivateData privateData   `placeholder:"TEXT" help:"Private data of the Request or Reply: text, or bytes in hex after 0x."`
	Reject      *string       `placeholder:"TEXT" help:"Server: reject requests, with this private data."`
	NoFallback  bool          `help:"Client: do not try revision 1 when the peer does not take revision 2."`
	Timeout     time.Duration `placeholder:"TIME" help:"Client: time limit for connecting."`

	networkFlag
	tlsFlags
	startupFlags
	pcapFlags

	times bool // to print: it is not called as rdma-core's rping is
}

// Help is what --help adds.
func (*rpingCmd) Help() string {
	return `"iwarp rping HOST" prints the time of each ping, and a summary at the end. In that time the server reads the data and writes them back: three
round trips. "iwarp rping -c -a HOST" pings without a pause and prints what rdma-core's rping prints.`
}

// Run is either role.
func (c *rpingCmd) Run(ctx context.Context, std streams) error {
	c.times = !c.Client && !c.Server
	if err := c.takeAddress(); err != nil {
		return err
	}
	if err := c.check("rping", c.Pcap); err != nil {
		return err
	}
	return c.record(ctx, "rping", std, func(ctx context.Context, r *recording) error { return c.run(ctx, std, r) })
}

func (c *rpingCmd) run(ctx context.Context, std streams, r *recording) error {
	if err := c.checkRole(); err != nil {
		return err
	}
	if err := c.checkNetwork(); err != nil {
		return err
	}
	if err := c.checkTLS("rping", c.Server, c.over()); err != nil {
		return err
	}
	preset, err := c.preset()
	if err != nil {
		return err
	}
	cfg := rping.Config{
		Validate: c.Validate, MPA: c.offer(), Preset: preset, Kind: c.kind(),
	}
	printer := &rpingPrinter{std: std, verbose: c.Verbose, debug: c.Debug, times: c.times, sctp: !c.streams()}
	defer printer.summary()
	cfg.Watch = printer.event
	if c.Server {
		return c.serve(ctx, std, cfg, r)
	}
	client, err := c.clientConfig(cfg, r)
	if err != nil {
		return err
	}
	over := c.over()
	defer over.Close()
	over.Tap(r.tap())
	client.Dial = over.Dial
	if over.Inside {
		return c.both(ctx, over, cfg, client)
	}
	return rping.Client(ctx, c.hostPort(), client)
}

// clientConfig returns what a client has beside what it has in common with a server.
func (c *rpingCmd) clientConfig(cfg rping.Config, r *recording) (client rping.ClientConfig, err error) {
	if err := c.checkClient(); err != nil {
		return client, err
	}
	client = rping.ClientConfig{
		Config: cfg, Size: int(c.Size), Count: c.Count, MayClose: !c.times,
		Interval: c.interval(), NoFallback: c.NoFallback, Timeout: c.Timeout,
	}
	if client.Wrap, err = c.wrap("rping", c.hostPort(), c.over(), r); err != nil {
		return client, err
	}
	if client.Source, err = c.source(); err != nil {
		return client, fmt.Errorf("rping: -I: %w", err)
	}
	offer := &client.MPA
	if offer.Dialect, err = c.start(); err != nil {
		return client, usage("rping: %w", err)
	}
	offer.Messages = offer.Dialect == mpa.DialectStartKey && c.PrivateData != ""
	return client, nil
}

// takeAddress makes -c, -a and -p of the argument.
func (c *rpingCmd) takeAddress() (err error) {
	switch {
	case len(c.At) == 0:
		return c.takePort()
	case c.Server || c.Addr != "":
		return usage("rping: %.60q: a server listens at -a ADDR, and a client takes HOST or -a HOST", c.At[0])
	}
	c.Client, c.Addr = true, c.At[0]
	if len(c.At) > 1 {
		c.Addr, err = c.At.addr("rping")
	}
	return cmp.Or(err, c.takePort())
}

// takePort makes -p of the port that -a has.
func (c *rpingCmd) takePort() error {
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return nil // there is none, or checkAddresses refuses it
	}
	if err := wantPort("rping: -a", port, 0); err != nil {
		return err
	}
	n, err := net.LookupPort("tcp", port)
	if c.Port != rping.DefaultPort && int(c.Port) != n {
		return usage("rping: -a and -p: they name two ports, %s and %d: leave one out", port, c.Port)
	}
	c.Addr, c.Port = host, uint16(n)
	return err
}

// checkRole wants one, and refuses a size that no ping can have.
func (c *rpingCmd) checkRole() error {
	chosen := c.Server || c.Client
	if chosen || c.Addr != "" {
		if err := c.apart("rping", "there is no -s, -c or -a"); err != nil {
			return err
		}
	}
	if !chosen && c.Addr != "" && !c.over().Inside {
		return usage("rping: -a: give -c to ping that address, or -s to be the server there")
	}
	if !chosen && !c.over().Inside {
		return usage("rping: give HOST to ping, or be the server (-s)")
	}
	if c.Server && c.Source != "" {
		return usage("rping: -I: only the client has a source address: the server listens on the one that -a names")
	}
	if err := c.checkAddresses(); err != nil {
		return err
	}
	if err := rping.CheckSize(int(c.Size)); err != nil {
		return err
	}
	return c.checkOther()
}

// checkAddresses refuses hosts and ports that cannot be ones.
func (c *rpingCmd) checkAddresses() error {
	option := "rping: -a"
	if len(c.At) > 0 {
		option = "rping: HOST"
	}
	if err := wantHost(option, c.Addr); err != nil {
		return err
	}
	if err := wantHost("rping: -I", c.Source); err != nil {
		return err
	}
	if c.Client {
		return wantPeer("rping: -p", c.hostPort())
	}
	return nil
}

// checkOther refuses flags of the other role, which would do nothing.
func (c *rpingCmd) checkOther() error {
	switch {
	case c.Client && c.Reject != nil:
		return usage("rping: --reject: only the server (-s) rejects")
	case c.Client && c.Persistent:
		return usage("rping: -P: only the server (-s) serves many")
	case c.Reject != nil && len(*c.Reject) > mpa.MaxPrivateData:
		return usage("rping: --reject: %d bytes of private data: at most %d fit a frame",
			len(*c.Reject), mpa.MaxPrivateData)
	case c.Server && c.Interval != nil:
		return usage("rping: --interval: only the client (-c) pings")
	case c.Server && c.Timeout != 0:
		return usage("rping: --timeout: only the client (-c) connects")
	}
	return nil
}

// checkNetwork refuses what the network does not have: as client in the dialect that is started in, as server in each
// that is served.
func (c *rpingCmd) checkNetwork() error {
	offer := c.offer()
	offer.Kind = c.kind()
	dialects, err := c.named()
	if err != nil {
		return usage("rping: %w", err)
	}
	for _, offer.Dialect = range append(dialects, 0) {
		if err := c.over().Check(offer); err != nil {
			return usage("rping: %w", err)
		}
	}
	return nil
}

// checkClient refuses what no client can do.
func (c *rpingCmd) checkClient() error {
	switch {
	case c.Addr == "" && !c.over().Inside:
		return usage("rping: -c: give the address of the server: iwarp rping HOST")
	case c.Count < 0:
		return usage("rping: -C: %d pings cannot be made", c.Count)
	}
	return cmp.Or(notNegative("rping: --interval", c.interval()), notNegative("rping: --timeout", c.Timeout))
}

// interval is the pause between pings: a second where each is printed, as of ping.
func (c *rpingCmd) interval() time.Duration {
	switch {
	case c.Interval != nil:
		return *c.Interval
	case c.times:
		return time.Second
	}
	return 0
}

func (c *rpingCmd) hostPort() string {
	return net.JoinHostPort(c.Addr, strconv.Itoa(int(c.Port)))
}

// source is the address to connect from, with any port, or nil.
func (c *rpingCmd) source() (net.Addr, error) {
	if c.Source == "" {
		return nil, nil
	}
	return net.ResolveTCPAddr("tcp", net.JoinHostPort(c.Source, "0"))
}

func (c *rpingCmd) serve(ctx context.Context, std streams, cfg rping.Config, r *recording) error {
	over := c.over()
	defer over.Close()
	over.Tap(r.tap())
	ln, err := c.listen(ctx, over, cfg, r)
	if err != nil {
		return err
	}
	defer ln.Close()
	warn(std, "rping", over)
	if c.Port == 0 || c.Debug {
		fmt.Fprintf(std.out, "listening on %v\n", ln.Addr())
	}
	return rping.Serve(ctx, ln, rping.ServerConfig{Config: cfg, Persistent: c.Persistent, Reject: c.Reject})
}

func (c *rpingCmd) listen(ctx context.Context, over *network.Network, cfg rping.Config,
	r *recording) (*iwarp.Listener, error) {
	lc, err := c.listenConfig(cfg)
	if err != nil {
		return nil, err
	}
	if !over.Sockets {
		return over.Listen(ctx, c.hostPort(), &lc)
	}
	ln, err := c.listenSockets(ctx, "rping", c.hostPort(), r)
	if err != nil {
		return nil, err
	}
	return lc.NewListener(ln), nil
}

func (c *rpingCmd) listenConfig(cfg rping.Config) (iwarp.ListenConfig, error) {
	served, err := c.served()
	if err != nil {
		return iwarp.ListenConfig{}, usage("rping: %w", err)
	}
	return iwarp.ListenConfig{
		RNIC: iwarp.NewRNIC(iwarp.RNICConfig{Kind: cfg.Kind}), Preset: cfg.Preset,
		Dialects: served, Messages: slices.Contains(served, mpa.DialectStartKey),
		Markers: cfg.MPA.Markers, NoCRC: cfg.MPA.NoCRC,
	}, nil
}

// named are the dialects that the options name.
func (c *rpingCmd) named() ([]mpa.Dialect, error) {
	if c.Server {
		return c.served()
	}
	d, err := c.start()
	return []mpa.Dialect{d}, err
}

// start is the dialect of the client; 0 is the default.
func (c *rpingCmd) start() (mpa.Dialect, error) {
	switch len(c.Dialect) {
	case 0:
		return c.dialect("")
	case 1:
		return c.dialect(c.Dialect[0])
	}
	return 0, errors.New("--dialect: the client starts in one")
}

// served are the dialects of the server; none is the default.
func (c *rpingCmd) served() (all []mpa.Dialect, err error) {
	if c.MPARev != nil {
		return nil, errors.New("--mpa-rev: it is the client's; --dialect says what is served")
	}
	for _, name := range c.Dialect {
		d, err := c.dialect(name)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (c *rpingCmd) offer() mpa.Offer {
	o := mpa.Offer{
		Markers: c.Markers, NoCRC: c.CRC == "off", ClientServer: !c.P2P, PrivateData: []byte(c.PrivateData),
	}
	for _, kind := range c.RTR {
		o.RTR |= map[string]mpa.RTR{"write": mpa.RTRWrite, "read": mpa.RTRRead, "send": mpa.RTRSend}[kind]
	}
	return o
}

// both is the server and the client in one process, over a network that does not leave it. What is printed is the
// client's.
func (c *rpingCmd) both(ctx context.Context, over *network.Network, cfg rping.Config, client rping.ClientConfig) error {
	lc, err := c.listenConfig(cfg)
	if err != nil {
		return err
	}
	ln, err := over.Listen(ctx, over.Here, &lc)
	if err != nil {
		return err
	}
	defer ln.Close()
	// an interrupt is the client's: it closes in order
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := cfg
	server.Watch = nil
	served := make(chan error, 1)
	go func() { served <- rping.Serve(serving, ln, rping.ServerConfig{Config: server, Reject: c.Reject}) }()
	if err := rping.Client(ctx, ln.Addr().String(), client); err != nil {
		return err
	}
	return <-served
}
