package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/export"
	"github.com/goiwarp/iwarp/internal/live"
)

// extcapCmd is a source of packets for Wireshark, which calls it with the options that begin with extcap, and with
// capture and fifo.
type extcapCmd struct {
	Install bool   `help:"Install it where Wireshark looks for such sources, or say how."`
	Dir     string `placeholder:"DIR" help:"With --install: Wireshark's folder for them, as tshark -G folders names it."`

	Device string `placeholder:"IFACE" help:"Capture on this network interface."`
	File   string `placeholder:"FILE" help:"Read this capture in place of an interface."`
	Port   string `placeholder:"PORT" help:"Connections to these ports are iWARP, whatever they begin with."`

	ExtcapInterfaces    bool   `hidden:"" help:"List the sources."`
	ExtcapVersion       string `hidden:"" help:"Wireshark's version."`
	ExtcapInterface     string `hidden:"" help:"The source that is meant."`
	ExtcapDLTs          bool   `name:"extcap-dlts" hidden:"" help:"List its link layers."`
	ExtcapConfig        bool   `hidden:"" help:"List its options."`
	ExtcapCaptureFilter string `hidden:"" help:"What to capture: an address, or address:port."`
	Capture             bool   `hidden:"" help:"Capture."`
	FIFO                string `name:"fifo" hidden:"" help:"Where to write packets."`
}

// Help is what --help adds.
func (*extcapCmd) Help() string {
	return `Wireshark and tshark then have a source "iwarp" beside the network interfaces: the packets with the findings as comments, and behind
each the DDP segments that it completes, as iwarp decode --export writes them. A capture filter is an address, or address:port.
Where this program may not capture, Wireshark's dumpcap does. --install also installs a dissector in Lua, which shows the IRD, ORD and
RTR of MPA revision 2.`
}

// extcapSource is the name of the source.
const extcapSource = "iwarp"

// Run answers Wireshark.
func (c *extcapCmd) Run(ctx context.Context, std streams) error {
	switch {
	case c.Install:
		return c.install(ctx, std)
	case c.Dir != "":
		return usage("extcap: --dir: it needs --install")
	case c.ExtcapInterfaces:
		fmt.Fprintf(std.out, "extcap {version=%s}{display=iWARP}\n", "1.0")
		fmt.Fprintf(std.out, "interface {value=%s}{display=iWARP, with DDP segments and findings}\n", extcapSource)
		return nil
	case c.ExtcapInterface != extcapSource:
		return usage("extcap: Wireshark runs this, and asks for the source %s: to have it there, run iwarp extcap --install", extcapSource)
	case c.ExtcapDLTs:
		fmt.Fprintf(std.out, "dlt {number=%d}{name=UPPER_PDU}{display=packets, and DDP segments}\n", 252)
		return nil
	case c.ExtcapConfig:
		return c.config(std.out)
	case c.Capture:
		return c.capture(ctx)
	}
	return c.checkFilter(std.out)
}

// config lists the options that Wireshark shows.
func (c *extcapCmd) config(w io.Writer) error {
	fmt.Fprintln(w, "arg {number=0}{call=--device}{display=Network interface}{type=selector}{tooltip=Where to capture}")
	for i, name := range devices() {
		fmt.Fprintf(w, "value {arg=0}{value=%s}{display=%s}{default=%t}\n", name, name, i == 0)
	}
	fmt.Fprintln(w, "arg {number=1}{call=--file}{display=Capture file}{type=fileselect}{mustexist=true}{tooltip=Read this in place of an interface}")
	_, err := fmt.Fprintln(w, `arg {number=2}{call=--port}{display=Ports}{type=string}{tooltip=Connections to these ports are iWARP, whatever they begin with: 7174,7175}`)
	return err
}

// devices are the network interfaces that are up, those that are no loopback first.
func devices() (names []string) {
	all, _ := net.Interfaces()
	slices.SortStableFunc(all, func(a, b net.Interface) int {
		return cmp.Compare(a.Flags&net.FlagLoopback, b.Flags&net.FlagLoopback)
	})
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 {
			names = append(names, i.Name)
		}
	}
	return names
}

// checkFilter says what is wrong with a capture filter, and nothing about a right one.
func (c *extcapCmd) checkFilter(w io.Writer) error {
	if _, err := filterOf(c.which()); err != nil {
		_, err = fmt.Fprintln(w, "an address or address:port is expected")
		return err
	}
	return nil
}

// which is the capture filter as decode takes it.
func (c *extcapCmd) which() string {
	return strings.TrimSpace(strings.TrimPrefix(c.ExtcapCaptureFilter, "host "))
}

// decoding is the decode command that does the work.
func (c *extcapCmd) decoding() (*decodeCmd, filter, error) {
	d := &decodeCmd{File: c.File, Filter: c.which()}
	if d.File == "" {
		d.Interface = c.Device
	}
	if d.name() == "" {
		return nil, filter{}, usage("extcap: --device: choose an interface in the source's options, or a file")
	}
	for _, text := range strings.FieldsFunc(c.Port, func(r rune) bool { return r == ',' || r == ' ' }) {
		var port portNumber
		if err := port.UnmarshalText([]byte(text)); err != nil {
			return nil, filter{}, usage("extcap: --port: %w", err)
		}
		d.Port = append(d.Port, port)
	}
	want, err := filterOf(d.Filter)
	if err != nil {
		return nil, filter{}, usage("extcap: --extcap-capture-filter: %q: expected an address or address:port", d.Filter)
	}
	return d, want, nil
}

// capture writes packets to Wireshark until that has enough.
func (c *extcapCmd) capture(ctx context.Context) error {
	d, want, err := c.decoding()
	if err != nil {
		return err
	}
	if err := notRead("extcap", "fifo", c.FIFO, c.File); err != nil {
		return err
	}
	to, err := os.OpenFile(c.FIFO, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("extcap: --fifo: %w", err)
	}
	defer to.Close() //nolint:errcheck // what could not be written, Export says
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	e, err := export.New(to, export.Config{Application: "iwarp extcap", Some: d.Filter != "", Unbuffered: true})
	if err != nil {
		return err
	}
	cfg := d.config(want, new(int))
	cfg.After = func(p *capture.Packet) {
		if e.Packet(p); e.Flush() != nil {
			enough()
		}
	}
	err = c.feed(ctx, d)(e.Flush, cfg, e)
	if failed := e.Close(); failed != nil && !errors.Is(failed, syscall.EPIPE) {
		return fmt.Errorf("extcap: --fifo: %w", failed)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("extcap: %s: %w", d.name(), err)
}

// An extcapFeed gives packets to the decoder, and returns when they are over.
type extcapFeed func(flush func() error, cfg decode.Config, to decode.Consumer) error

// feed returns what gives the packets: the file, the interface, or dumpcap if we may not have that.
func (c *extcapCmd) feed(ctx context.Context, d *decodeCmd) extcapFeed {
	quiet := streams{io.Discard, io.Discard}
	return func(flush func() error, cfg decode.Config, to decode.Consumer) error {
		if d.File != "" {
			f, err := os.Open(d.File)
			if err != nil {
				return err
			}
			defer f.Close() //nolint:errcheck // it was read only
			_, err = readingFile(ctx, f, quiet)(flush, cfg, to)
			return err
		}
		_, err := d.capturing(ctx, quiet)(flush, cfg, to)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, live.ErrSystem) {
			err = dumpcap(ctx, d.Interface, err, func(from io.Reader) error {
				_, err := readingFile(ctx, from, quiet)(flush, cfg, to)
				return err
			})
		}
		return err
	}
}

// dumpcap has Wireshark's program capture, which may where we may not. Without it why remains.
func dumpcap(ctx context.Context, device string, why error, read func(io.Reader) error) error {
	program, err := exec.LookPath("dumpcap")
	if err != nil {
		return why
	}
	cmd := exec.CommandContext(ctx, program, "-q", "-i", device, "-w", "-")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = read(out)
	if cmd.Process.Signal(os.Interrupt) != nil { // as on Windows
		_ = cmd.Process.Kill()
	}
	if failed := cmd.Wait(); err == nil && failed != nil {
		err = fmt.Errorf("dumpcap: %w: %s", failed, bytes.TrimSpace(said.Bytes()))
	}
	return err
}
