package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/pcapfile"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/iwarpsctp"
	"github.com/goiwarp/iwarp/usertcp"
)

// pcapFlags have an endpoint write down what it sends and receives.
type pcapFlags struct {
	Pcap      string    `name:"pcap" placeholder:"FILE" help:"Record the iWARP connections of this end to FILE, a capture (pcapng). Over the system's TCP its segments are made up, over SCTP in UDP its IP and UDP headers. A new file is readable by its owner only. An existing one must be empty or a capture, and not a link."`
	PcapLimit byteCount `name:"pcap-limit" default:"256M" placeholder:"N" help:"Stop recording before FILE is larger than this, such as 1G (0: no limit; default: ${default})."`
}

// defaultPcapLimit is the default of --pcap-limit.
const defaultPcapLimit byteCount = pcapfile.DefaultLimit

// record runs an endpoint with the recording that the flags ask for, or nil, and
// finishes the file however the run ends. A file that cannot be written ends it.
func (f *pcapFlags) record(ctx context.Context, command string, std streams,
	run func(context.Context, *recording) error) error {
	if f.Pcap == "" && f.PcapLimit != defaultPcapLimit {
		return usage("%s: --pcap-limit: needs --pcap FILE", command)
	}
	if f.Pcap == "" {
		return run(ctx, nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, err := newRecording(f.Pcap, f.PcapLimit, cancel)
	if err != nil {
		return fmt.Errorf("%s: --pcap: %w%s", command, err,
			wording.If(errors.Is(err, fs.ErrNotExist), ": make the directory first", ""))
	}
	err = run(ctx, r)
	if errors.Is(context.Cause(ctx), errRecording) {
		err = nil // it says no more than that it was ended
	}
	if failed := r.finish(std); failed != nil {
		err = join(err, fmt.Errorf("%s: --pcap: %w", command, failed))
	}
	return err
}

// A recording is a capture that is being written. A nil one is none.
type recording struct {
	path string
	w    *capture.Writer
	end  context.CancelCauseFunc // of the run
	file *pcapfile.File
}

// errRecording is why a run is ended whose recording fails.
var errRecording = errors.New("the capture cannot be written")

func newRecording(path string, limit byteCount, end context.CancelCauseFunc) (*recording, error) {
	file, err := pcapfile.Create(path)
	if err != nil {
		return nil, err
	}
	r := &recording{path: path, end: end, file: pcapfile.On(file, int64(limit))}
	// Whatever the MSS of TCP was: then an FPDU is cut no more often than by that.
	r.w, err = capture.NewWriter(r, capture.WriterConfig{MSS: capture.MaxMSS, Application: "iwarp"})
	if err == nil {
		err = r.w.Flush() // its head is there whatever the limit
	}
	if err != nil {
		_ = file.Close()
	}
	return r, err
}

// Write takes whole packets, as a capture.Writer writes them.
func (r *recording) Write(b []byte) (int, error) {
	n, err := r.file.Write(b)
	if err != nil {
		r.end(errRecording)
	}
	return n, err
}

// wrap returns what taps a connection of the system's TCP that this end has opened; nil is over other networks, which
// have taps below.
func (r *recording) wrap(over *network.Network) func(net.Conn) (net.Conn, error) {
	if r == nil || !over.Sockets {
		return nil
	}
	return func(c net.Conn) (net.Conn, error) { return capture.Tap(c, r.w, capture.Forward) }
}

// writer is what records connections that are played by hand, over TCP and SCTP.
func (r *recording) writer() *capture.Writer {
	if r == nil {
		return nil
	}
	return r.w
}

// tap is what records the packets of other networks.
func (r *recording) tap() (t network.Tap) {
	if r != nil {
		t.UDP = func(s iwarpsctp.UDPSocket) (iwarpsctp.UDPSocket, error) { return capture.TapUDP(s, r.w), nil }
		t.Link = func(l usertcp.Link) usertcp.Link { return tapLink{l, r.w} }
	}
	return t
}

// A tapLink is a Link that is recorded: packets that leave, before they are sent, and those that arrive.
type tapLink struct {
	usertcp.Link
	w *capture.Writer
}

func (l tapLink) Send(packet []byte) {
	_ = l.w.Packet(capture.Forward, time.Time{}, packet)
	l.Link.Send(packet)
}

func (l tapLink) Receive(deliver func(packet []byte)) error {
	return l.Link.Receive(func(packet []byte) {
		_ = l.w.Packet(capture.Backward, time.Time{}, packet)
		deliver(packet)
	})
}

// finish writes what is left and closes the file.
func (r *recording) finish(std streams) error {
	err := r.w.Flush()
	if err = cmp.Or(err, r.file.Close()); err != nil {
		return fmt.Errorf("%w: %w", errRecording, err)
	}
	if size, left := r.file.Bytes(); left > 0 {
		fmt.Fprintf(std.err, "%s stopped at %s by --pcap-limit: %s not recorded\n",
			r.path, wording.Size(size), wording.Size(left))
	}
	return nil
}

// A byteCount is given on the command line with K, M or G for 2^10, 2^20, 2^30.
type byteCount int64

// UnmarshalText reads a number.
func (c *byteCount) UnmarshalText(text []byte) error {
	n, err := wording.ParseBytes(string(text))
	*c = byteCount(n)
	return err
}
