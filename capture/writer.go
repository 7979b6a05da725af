package capture

import (
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"
)

// Segment sizes of a Writer, in bytes.
const (
	// DefaultMSS fits Ethernet, with IPv4 and IPv6.
	DefaultMSS = 1440
	// MaxMSS is what IPv4 has room for.
	MaxMSS = 65535 - ipv4Len - tcpLen
)

// WriterConfig is what a Writer may be told.
type WriterConfig struct {
	// MSS is the size of the largest segment, in bytes. If zero, DefaultMSS; MaxMSS at most, which suits
	// [Tap]: it does not know how TCP cuts, and its record should not look as if FPDUs were cut.
	MSS int
	// Ethernet puts packets in frames, of made-up addresses. If not, packets are raw
	// IP.
	Ethernet bool
	// Unbuffered has each packet written below at once, for a program that may end at any moment. By default up to 64
	// KiB wait for more, or for Flush.
	Unbuffered bool
	// Application goes into the file as the name of the program that has written it.
	Application string
	// Now is the clock of Tap, TapUDP, and packets without a time of their own. If nil, time.Now.
	// It is asked under a lock of the Writer's: packets are in order of its times.
	Now func() time.Time
}

// A Writer writes a pcapng file of made-up packets, with times in nanoseconds; each call of the io.Writer below
// writes whole ones. It and its Flows may be used concurrently. After an error from below, everything returns that
// error.
type Writer struct {
	cfg WriterConfig

	mu    sync.Mutex
	out   *PacketWriter
	frame []byte // the packet that is being made
	flows uint32
	taps  map[[2]netip.AddrPort]Dir // the end of a connection that is tapped
	err   error                     // sticky
}

// writerChunk is how many bytes are written at once, about.
const writerChunk = 64 << 10

// NewWriter begins a file. The error is about cfg.
func NewWriter(w io.Writer, cfg WriterConfig) (*Writer, error) {
	if cfg.MSS == 0 {
		cfg.MSS = DefaultMSS
	}
	if cfg.MSS < 1 || cfg.MSS > MaxMSS {
		return nil, fmt.Errorf("capture: MSS of %d bytes, want 1 to %d", cfg.MSS, MaxMSS)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	out, err := NewPacketWriter(w, cfg.Application)
	if err != nil {
		return nil, err
	}
	out.Unbuffered = cfg.Unbuffered
	wr := &Writer{cfg: cfg, out: out, taps: map[[2]netip.AddrPort]Dir{}}
	out.interfaceOf(wr.link()) // also where no packet comes
	return wr, nil
}

// Flush writes what has been kept back.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = w.out.Flush()
	return w.err
}

// Open adds a connection that client opens to server, both of IPv4 or both of
// IPv6, with its handshake. A zero time is now, as for [Writer.Packet]. The error is about the addresses, or comes from
// below.
func (w *Writer) Open(client, server netip.AddrPort, at time.Time) (*Flow, error) {
	ends := [2]netip.AddrPort{unmapped(client), unmapped(server)}
	if !client.IsValid() || !server.IsValid() || ends[0].Addr().Is4() != ends[1].Addr().Is4() {
		return nil, fmt.Errorf("capture: no TCP connection from %v to %v", client, server)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flows++
	f := &Flow{w: w, ends: ends}
	for d := range f.halves {
		// Any number would do, if it differs from that of an earlier connection
		// between the same ends.
		f.halves[d].seq = (w.flows*2 + uint32(d)) * 0x9e3779b1
	}
	f.handshake(w.time(at))
	return f, w.err
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// link is what the frames begin with.
func (w *Writer) link() LinkType {
	if w.cfg.Ethernet {
		return LinkEthernet
	}
	return LinkRaw
}

// write adds the packet in w.frame to the file.
func (w *Writer) write(at time.Time) {
	w.err = w.out.Packet(&Packet{Time: at, Link: w.link(), Data: w.frame})
}
