package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/live"
	"github.com/goiwarp/iwarp/internal/traffic"
	"github.com/goiwarp/iwarp/internal/where"
)

// decodeCmd tells what is said on the iWARP connections of a capture.
type decodeCmd struct {
	File      string        `arg:"" optional:"" help:"Capture, pcap or pcapng, also in gzip or Zstandard; - is standard input: tcpdump -U -w - -s 0 | iwarp decode -"`
	Interface string        `short:"i" placeholder:"IFACE" help:"Capture on this network interface, or on any, until Ctrl-C. Linux only; takes root, or CAP_NET_RAW."`
	Duration  time.Duration `placeholder:"TIME" help:"With -i: end after this time, such as 10s."`
	Verbose   bool          `short:"v" help:"One line for each FPDU."`
	Hex       bool          `short:"x" help:"Startup frames and FPDUs in hex, field by field."`
	Filter    string        `placeholder:"WHICH" help:"Only the connection of this number (s and a number: the session over SCTP), or those of this host, or host:port."`
	Port      []portNumber  `placeholder:"PORT" help:"Connections to these ports of TCP, SCTP, or of UDP with SCTP in it are iWARP, whatever they begin with."`
	Where     string        `placeholder:"EXPR" help:"Print only the FPDUs, Reads and findings that this is true of: \"op=send and bytes>4K\", \"latency>1ms or finding>=warning\". Fields: op, stag, msn, bytes, latency, finding."`
	Stats     bool          `help:"Print throughput over time, how long operations took, and the STags with most bytes, in place of the rest; with --where of what that chooses."`
	JSON      bool          `name:"json" help:"Print one JSON object for each event: docs/decode-json.md."`
	Export    string        `placeholder:"FILE" help:"Also write a capture for Wireshark, with each FPDU's DDP segment as a packet of its own, and findings as comments; - is standard output: iwarp decode FILE --export - | wireshark -k -i -"`
	Trigger   *string       `placeholder:"SEVERITY" enum:"error,warning,note" help:"When a finding of this severity or a worse one comes (error, warning or note), save the packets before it, and those of a second after it."`
	Ring      byteCount     `placeholder:"SIZE" help:"With --trigger: keep this many bytes of packets in memory (default: 64M)."`
	Caught    string        `placeholder:"FILE" help:"With --trigger: the file to save them in (default: caught.pcapng). The next has a number: caught-2.pcapng."`
	Trace     string        `placeholder:"FILE" help:"Also write messages, Reads and findings over time for ui.perfetto.dev or chrome://tracing."`
	HTML      string        `name:"html" placeholder:"FILE" help:"Also write a page: what was sent over time, how long each Read took, ladders, and the findings."`

	ported bool // something in the capture has one of the ports
}

// Help says what lines begin with, and what findings refer to.
func (decodeCmd) Help() string {
	return "A line has the number of the connection, the packet, the seconds since the connection's first packet, and the direction: -> from the client. A finding names the requirement that it is about in brackets, such as [Q10]: docs/requirements.md has them, with the documents that they come from."
}

// Run decodes the capture.
func (c *decodeCmd) Run(ctx context.Context, std streams) error {
	want, err := filterOf(c.Filter)
	if err != nil {
		return err
	}
	if isStdout(c.Export) {
		c.Export = "-"
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.Interface != "" {
		return c.decode(c.capturing(ctx, std), std, want)
	}
	in, err := c.open()
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was read only
	return c.decode(readingFile(ctx, in, std), std, want)
}

// check looks for options that do not go together.
func (c *decodeCmd) check() error {
	switch {
	case c.File == "" && c.Interface == "":
		return usage("decode: name a capture, - for standard input, or an interface: -i IFACE")
	case c.File != "" && c.Interface != "":
		return usage("decode: --interface: what passes %s is captured: leave %s out", c.Interface, c.File)
	case c.Duration != 0 && c.Interface == "":
		return usage("decode: --duration: it needs an interface: -i IFACE")
	case c.Duration < 0:
		return usage("decode: --duration: %v is no time to wait", c.Duration)
	case (c.Ring != 0 || c.Caught != "") && c.Trigger == nil:
		return usage("decode: --ring and --caught: they need a severity: --trigger error")
	case c.Ring != 0 && c.Ring < minRing:
		return usage("decode: --ring: it takes 1M at least")
	case c.Stats && (c.Verbose || c.Hex):
		return usage("decode: --stats: no FPDU is printed with it: leave -v and -x out")
	case c.Stats && c.JSON:
		return usage("decode: --stats: it has no form in JSON: leave --json out")
	case c.Export == "-" && c.JSON:
		return usage("decode: --export: standard output cannot have --json too: name a file for one of them")
	case c.Export == "-" && c.Stats:
		return usage("decode: --export: standard output cannot have --stats too: name a file")
	case isStdout(c.HTML):
		return usage("decode: --html: it is not written to standard output: name a file")
	case isStdout(c.Trace):
		return usage("decode: --trace: it is not written to standard output: name a file")
	}
	return c.checkFiles()
}

// checkFiles looks for a file that is to be written twice.
func (c *decodeCmd) checkFiles() error {
	for _, f := range []struct{ flag, path, other string }{
		{"html", c.HTML, c.Trace}, {"html", c.HTML, c.Export}, {"trace", c.Trace, c.Export},
	} {
		if f.path == "" || f.other == "" {
			continue
		}
		one, err := filepath.Abs(f.path)
		other, failed := filepath.Abs(f.other)
		if err == nil && failed == nil && one == other || sameFile(f.other, f.path) {
			return usage("decode: --%s: %s is written by another option too: name another file", f.flag, f.path)
		}
	}
	return nil
}

// name is what is decoded.
func (c *decodeCmd) name() string { return cmp.Or(c.Interface, c.File) }

// open opens the capture.
func (c *decodeCmd) open() (*os.File, error) {
	if c.File == "-" {
		return os.Stdin, nil
	}
	f, err := os.Open(c.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("decode: %w: name a capture, or - for standard input", err)
	}
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close()
		return nil, usage("decode: %s is a directory: name a capture in it", c.File)
	}
	return f, nil
}

// whatToDo is what to do about a file that is no capture, or an interface that cannot be captured on.
func (c *decodeCmd) whatToDo(err error) string {
	unknown := new(net.OpError) // of the look-up of its name
	switch {
	case errors.Is(err, live.ErrSystem):
		return ": " + c.piped()
	case c.Interface != "" && errors.Is(err, fs.ErrPermission):
		return ": become root, or setcap cap_net_raw,cap_net_admin+ep the program, or " + c.piped()
	case errors.As(err, &unknown):
		return ": ip link lists all interfaces"
	}
	return noCapture(err)
}

// piped has tcpdump capture.
func (c *decodeCmd) piped() string {
	return fmt.Sprintf("tcpdump -i %s -U -w - -s 0 | iwarp decode -", c.Interface)
}

// printer is a consumer that prints.
type printer interface {
	decode.Consumer
	Flush() error
	Totals(decode.Totals)
}

// A feed decodes packets until their end or an interrupt. It flushes what was printed before it waits for more.
type feed func(flush func() error, cfg decode.Config, to decode.Consumer) (decode.Totals, error)

// readingFile reads a file, or standard input.
func readingFile(ctx context.Context, in io.Reader, std streams) feed {
	return func(flush func() error, cfg decode.Config, to decode.Consumer) (decode.Totals, error) {
		source := newReadLine(newLiveReader(ctx, in, flush), in, std)
		e := &expander{from: source}
		totals, err := decode.Run(e, cfg, to)
		source.clear()
		if e.rest {
			fmt.Fprintf(std.err, "iwarp: decode: what follows the %s data is not %s: it was left out\n", e.name, e.name)
		}
		return totals, err
	}
}

// decode decodes what is fed.
func (c *decodeCmd) decode(from feed, std streams, want filter) error {
	text := std.out
	if c.Export == "-" {
		text = io.Discard
	}
	fpdus := c.Verbose || c.Where != ""
	var out printer = decode.NewText(text, decode.TextConfig{FPDUs: fpdus, Hex: c.Hex, Columns: columnsBelow(text)})
	switch {
	case c.JSON:
		out = decode.NewJSON(text, decode.JSONConfig{FPDUs: fpdus, Bytes: c.Hex,
			Version: versionName(built()), Time: time.Now()})
	case c.Stats:
		out = &statsPrinter{Stats: traffic.New(), w: text}
	}
	chosen, err := c.chosen(out)
	if err != nil {
		return err
	}
	html, err := c.openHTML()
	if err != nil {
		return err
	}
	trace, err := c.openTrace()
	if err != nil {
		return err
	}
	exported, err := c.openExport()
	if err != nil {
		return err
	}
	caught, err := c.newTrigger(std)
	if err != nil {
		return err
	}
	matched := 0
	cfg := c.config(want, &matched)
	cfg.After = inTurn(trace.after(), exported.after(), caught.after())
	totals, err := from(out.Flush, cfg, caught.with(exported.with(trace.with(html.with(chosen)))))
	unmatched := matched == 0 && c.Filter != "" && err == nil
	came := (totals.Packets > 0 || err == nil) && !unmatched // else there is nothing that a count would be true of
	if came {
		out.Totals(totals)
	}
	if failed := cmp.Or(out.Flush(), html.write(totals, came), exported.end(came), trace.end(came), caught.end()); failed != nil {
		return failed
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("decode: %s: %w%s", c.name(), err, c.whatToDo(err))
	}
	if unmatched {
		return unmatchedFilter(c.Filter, totals)
	}
	return join(cmp.Or(found(totals), c.unmatchedPort(), unjudged(totals)), forgotten(totals))
}

// config is what the decoder is told. What the filter lets through is counted.
func (c *decodeCmd) config(want filter, matched *int) decode.Config {
	return decode.Config{
		Capture: capture.Config{UDPPorts: c.ports()},
		Want:    counting(want.tcp, matched), Expect: c.expected,
		WantSCTP: counting(want.sctp, matched), ExpectSCTP: c.expectedSCTP,
	}
}

// chosen returns a consumer that tells another of what --where is true of.
func (c *decodeCmd) chosen(to decode.Consumer) (decode.Consumer, error) {
	if c.Where == "" {
		return to, nil
	}
	expr, err := where.Parse(c.Where)
	if err != nil {
		return nil, usage("decode: --where: %w", err)
	}
	f := where.NewFilter(expr, to)
	f.Ends = c.Stats // which are not printed then
	return f, nil
}

// found is the error of a capture in which something went wrong.
func found(n decode.Totals) error {
	switch errors := n.Findings[decode.Error]; {
	case errors > 0 && n.Failed > 0:
		return findings("decode: findings of severity error: %d; connections that failed: %d", errors, n.Failed)
	case errors > 0:
		return findings("decode: findings of severity error: %d", errors)
	case n.Failed > 0:
		return findings("decode: connections that failed: %d", n.Failed)
	}
	return nil
}

// ports are those of --port.
func (c *decodeCmd) ports() (all []uint16) {
	for _, p := range c.Port {
		all = append(all, uint16(p))
	}
	return all
}

// expected reports whether --port says that a connection is iWARP.
func (c *decodeCmd) expected(tcp *capture.Connection) bool {
	return c.named(tcp.Halves[capture.Forward].Addr.Port()) || c.named(tcp.Halves[capture.Backward].Addr.Port())
}

// expectedSCTP reports whether --port says that an association carries DDP.
func (c *decodeCmd) expectedSCTP(a *capture.Association) bool {
	return slices.ContainsFunc(a.Ends[:], func(e capture.AssociationEnd) bool {
		return c.named(e.Addr.Port()) || c.named(e.UDPPort)
	})
}

// named reports whether --port has a port, and takes note of it.
func (c *decodeCmd) named(port uint16) bool {
	named := slices.Contains(c.Port, portNumber(port))
	c.ported = c.ported || named
	return named
}

// counting counts what a filter lets through.
func counting[T any](want func(T) bool, n *int) func(T) bool {
	return func(c T) bool {
		if want != nil && !want(c) {
			return false
		}
		*n++
		return true
	}
}
