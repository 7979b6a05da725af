package capture

import (
	"encoding/binary"
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
	to    io.Writer
	buf   []byte // not yet written
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
	if len(cfg.Application) > 1<<15 {
		return nil, fmt.Errorf("capture: application name of %d bytes, want %d at most", len(cfg.Application), 1<<15)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	wr := &Writer{cfg: cfg, to: w, taps: map[[2]netip.AddrPort]Dir{}}
	wr.buf = wr.appendHeader(nil)
	return wr, nil
}

// Flush writes what has been kept back.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	return w.err
}

func (w *Writer) flush() {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.to.Write(w.buf)
	}
	w.buf = w.buf[:0]
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

// Bytes of blocks that are written.
const (
	enhancedLen = 28 // of an Enhanced Packet Block in front of the packet
	optAppl     = 4  // shb_userappl
)

// appendHeader appends a Section Header Block and an Interface Description Block.
func (w *Writer) appendHeader(b []byte) []byte {
	le := binary.LittleEndian
	app := w.cfg.Application
	b = le.AppendUint32(b, blockSection)
	size := uint32(sectionLen)
	if app != "" {
		size += 4 + uint32(padded(uint32(len(app)))) + 4
	}
	b = le.AppendUint32(b, size)
	b = le.AppendUint32(b, orderMagic)
	b = append(b, 1, 0, 0, 0)          // version 1.0
	b = le.AppendUint64(b, ^uint64(0)) // length of the section: not known
	if app != "" {
		b = le.AppendUint16(b, optAppl)
		b = le.AppendUint16(b, uint16(len(app)))
		b = pad(append(b, app...), len(app))
		b = append(b, 0, 0, 0, 0)
	}
	b = le.AppendUint32(b, size)
	link := LinkRaw
	if w.cfg.Ethernet {
		link = LinkEthernet
	}
	b = le.AppendUint32(b, blockInterface)
	b = le.AppendUint32(b, 32)
	b = le.AppendUint32(b, uint32(link))
	b = le.AppendUint32(b, 0) // no snap length
	b = append(b, optTsresol, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0)
	return le.AppendUint32(b, 32)
}

// pad appends zeros after n bytes up to a multiple of four.
func pad(b []byte, n int) []byte {
	for ; n%4 != 0; n++ {
		b = append(b, 0)
	}
	return b
}

// write adds the packet in w.frame to the file.
func (w *Writer) write(at time.Time) {
	le, n := binary.LittleEndian, len(w.frame)
	size := uint32(enhancedLen + int(padded(uint32(n))) + blockTail)
	ticks := uint64(at.UnixNano())
	b := le.AppendUint32(w.buf, blockEnhanced)
	b = le.AppendUint32(b, size)
	b = le.AppendUint32(b, 0) // interface
	b = le.AppendUint32(b, uint32(ticks>>32))
	b = le.AppendUint32(b, uint32(ticks))
	b = le.AppendUint32(b, uint32(n))
	b = le.AppendUint32(b, uint32(n))
	b = pad(append(b, w.frame...), n)
	w.buf = le.AppendUint32(b, size)
	if w.cfg.Unbuffered || len(w.buf) >= writerChunk {
		w.flush()
	}
}
