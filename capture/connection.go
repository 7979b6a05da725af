package capture

import (
	"fmt"
	"net/netip"
	"time"
)

// Dir is a direction of a connection.
type Dir uint8

// The directions of a connection. Forward is that of the end which opened it. If
// the capture has neither its SYN nor the answer, it is that of the first packet.
const (
	Forward Dir = iota
	Backward
)

// Peer returns the other direction.
func (d Dir) Peer() Dir { return d ^ 1 }

func (d Dir) String() string {
	if d == Forward {
		return "->"
	}
	return "<-"
}

// A Connection is one TCP connection of a capture. It belongs to a Tracker; a Sink
// may keep it, and read it during calls.
type Connection struct {
	// Number counts from 0 in the order of first packets, as Wireshark's tcp.stream
	// does. A SYN with another sequence number begins another connection between the
	// same ends.
	Number int
	// Halves are the two directions, by [Dir].
	Halves [2]Half
	// First and Last are the packets that it was seen in.
	First, Last Stamp
	// State is the Sink's, for what it has to know of a connection.
	State any

	tuple   tuple
	swapped bool // Forward is from b to a of the tuple
	packets uint64

	agedAt   uint64 // packets, when acknowledgments last became old
	agedTime time.Time

	before, after *Connection // in a queue
	queue         *queue      // that it is in
}

// String is the two ends, as in "10.0.0.1:40000 -> 10.0.0.2:4791".
func (c *Connection) String() string {
	return fmt.Sprintf("%v -> %v", c.Halves[Forward].Addr, c.Halves[Backward].Addr)
}

// Handshake reports whether both ends' SYN were captured.
func (c *Connection) Handshake() bool {
	return c.Halves[Forward].SYN != 0 && c.Halves[Backward].SYN != 0
}

// OpenerKnown reports whether a SYN has shown which end opened the connection:
// then it is that of Forward.
func (c *Connection) OpenerKnown() bool {
	return c.Halves[Forward].SYN != 0 || c.Halves[Backward].SYN != 0
}

// Over reports whether both directions have ended.
func (c *Connection) Over() bool { return c.Halves[Forward].ended && c.Halves[Backward].ended }

// A Half is one direction of a connection, and what its sender has declared.
type Half struct {
	// Addr is the sender.
	Addr netip.AddrPort
	// SYN, FIN and RST are the numbers of the first packets that had them, 0 for none.
	SYN, FIN, RST uint64
	// ISN is the sequence number of SYN.
	ISN uint32
	// MSS is the maximum segment size in bytes that the sender wants to be sent, as
	// in its SYN; 0 if that says nothing, or was not captured.
	MSS int
	// WindowScale is the shift of later windows, as in SYN; -1 if that says nothing, or
	// was not captured.
	WindowScale int
	// SACK is whether SYN permitted selective acknowledgments.
	SACK bool
	// Timestamps is whether SYN or a later segment had a timestamp.
	Timestamps bool
	// Path is what a router has last said of how large packets of this direction may be.
	Path PathMTU
	// Midstream means that stream offset 0 is the first byte captured, and not the
	// first one sent.
	Midstream bool
	// Count is what has been seen so far.
	Count Count

	stream
}

// Count is what was captured of a direction.
type Count struct {
	Packets  uint64 `json:"packets"`  // of any kind
	Segments uint64 `json:"segments"` // with bytes
	Bytes    uint64 `json:"bytes"`    // in order, as given to Sink.Data
	Repeated uint64 `json:"repeated"` // bytes that had been there before
	Missing  uint64 `json:"missing"`  // bytes in Gaps
	Gaps     uint64 `json:"gaps"`
}

// Next returns the stream offset of the next byte to come in order: all before it
// were given to Sink.Data or Sink.Gap.
func (h *Half) Next() uint64 { return h.next }

// Ended reports whether the direction has ended.
func (h *Half) Ended() bool { return h.ended }
