// Package export writes captures for Wireshark, in which it reads of iWARP what it cannot read by itself.
//
// Wireshark's dissector of MPA knows revision 1 alone, and loses its way in markers and in FPDUs that lie across TCP
// segments. An [Exporter] copies the packets, with the findings of package decode as comments, and puts behind each
// packet the ULPDUs that it completes, as exported PDUs (LINKTYPE_WIRESHARK_UPPER_PDU). Wireshark gives these to its
// dissector of DDP and RDMAP. They have the addresses and ports of the connection and the number of the packet.
package export

import (
	"fmt"
	"io"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
)

// An Exporter is a [decode.Consumer] that writes a pcapng file. Its Packet belongs into [decode.Config] as After. It is
// not safe for concurrent use.
type Exporter struct {
	decode.Ignore

	out   *capture.PacketWriter
	some  bool
	now   moment // what belongs to the packet that is decoded
	kept  moment // the packet before it, which findings may still name
	held  bool   // there is a packet in kept
	count uint64
	err   error
}

// A moment is a packet and what is said about it.
type moment struct {
	packet   capture.Packet
	data     []byte // of the packet, a copy
	comments []string
	ulpdus   []byte // exported PDUs, one behind the other
	ends     []int  // of them in ulpdus
	touched  bool   // an event names the packet
}

// Config is what an Exporter may be told.
type Config struct {
	// Application goes into the file as the name of the program that has written it.
	Application string
	// Some leaves out packets without an event: those of other connections.
	Some bool
	// Unbuffered has each packet written at once.
	Unbuffered bool
}

// New begins a file. The error is about the Config.
func New(w io.Writer, cfg Config) (*Exporter, error) {
	out, err := capture.NewPacketWriter(w, cfg.Application)
	if err != nil {
		return nil, err
	}
	out.Unbuffered = cfg.Unbuffered
	return &Exporter{out: out, some: cfg.Some}, nil
}

// ULPDUs returns how many were written.
func (e *Exporter) ULPDUs() uint64 { return e.count }

// Packet writes the packet before this one. This one waits for the next, as what comes then may tell something of it.
func (e *Exporter) Packet(p *capture.Packet) {
	e.write()
	e.kept, e.now, e.held = e.now, e.kept, true
	k, n := &e.kept, &e.now
	k.data = append(k.data[:0], p.Data...)
	k.packet = *p
	k.packet.Data = k.data
	n.comments, n.ulpdus, n.ends, n.touched = n.comments[:0], n.ulpdus[:0], n.ends[:0], false
}

// write writes the packet that waits.
func (e *Exporter) write() {
	k := &e.kept
	if !e.held || e.err != nil {
		return
	}
	e.held = false
	if (k.touched || !e.some) && k.packet.Link != upperPDU { // of an earlier export
		e.err = e.out.Packet(&k.packet, k.comments...)
	}
	from := 0
	for _, end := range k.ends {
		if e.err == nil {
			e.err = e.out.Packet(&capture.Packet{Time: k.packet.Time, Link: upperPDU, Data: k.ulpdus[from:end]})
		}
		from = end
		e.count++
	}
}

// Flush writes all packets but the last, of which more may become known.
func (e *Exporter) Flush() error {
	if e.err == nil {
		e.err = e.out.Flush()
	}
	return e.err
}

// Close writes the last packet too, with what became known at the end of the capture. It does not close the io.Writer.
func (e *Exporter) Close() error {
	e.kept.comments = append(e.kept.comments, e.now.comments...)
	e.kept.touched = e.kept.touched || e.now.touched
	e.write()
	return e.Flush()
}

// Segment is part of [decode.Consumer].
func (e *Exporter) Segment(*decode.Connection, *decode.Segment) { e.now.touched = true }

// Startup is part of [decode.Consumer].
func (e *Exporter) Startup(*decode.Connection, *decode.Startup) { e.now.touched = true }

// Finding is part of [decode.Consumer].
func (e *Exporter) Finding(c *decode.Connection, f *decode.Finding) {
	to := &e.now
	if e.held && e.kept.packet.Number == f.Packet.Number {
		to = &e.kept
	}
	to.comments = append(to.comments, Comment(c, f))
	to.touched = true
}

// Comment is a finding as the comment of a packet. The number is that of the packet in what is read: in the file that is written,
// packets have others.
func Comment(c *decode.Connection, f *decode.Finding) string {
	text := fmt.Sprintf("iwarp: %v %s", f.Severity, f.Name)
	if f.ID != "" {
		text += " [" + f.ID + "]"
	}
	text += fmt.Sprintf(", connection %s, stream offset %d, original packet %d: %s", c.Label(), f.Offset, f.Packet.Number, f.Text)
	if f.Advice != "" {
		text += ". " + f.Advice
	}
	return text
}

// FPDU is part of [decode.Consumer]. An FPDU that is cut off or has no valid form is left out.
func (e *Exporter) FPDU(c *decode.Connection, f *decode.FPDU) {
	e.now.touched = true
	if !f.HasSegment || f.Cut > 0 {
		return
	}
	n := &e.now
	n.ulpdus = appendTags(n.ulpdus, c, f)
	n.ulpdus = append(n.ulpdus, f.ULPDU...)
	n.ends = append(n.ends, len(n.ulpdus))
}
