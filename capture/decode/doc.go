// Package decode finds iWARP connections in packet captures and reports what their ends say to
// each other: MPA's startup, FPDUs, DDP segments and RDMAP messages, and what of it breaks the
// rules.
//
// [Run] reads a capture and reports to a [Consumer]. A [Decoder] does the same as a
// [capture.Sink], for packets that come from elsewhere.
//
// # Being a consumer
//
// A [Consumer] has one method for each kind of event. Embed [Ignore], and write the ones
// that you need:
//
//	type reads struct {
//		decode.Ignore
//		slowest time.Duration
//	}
//
//	func (r *reads) Read(_ *decode.Connection, e *decode.Read) { r.slowest = max(r.slowest, e.Latency()) }
//
// Events come in the order in which they become known. [Consumer.Found] is the first
// event of a connection and [Consumer.Ended] the last one. Connections that are not
// iWARP have no events: they are counted in [Totals].
//
//   - [Segment] is every TCP segment as it was captured, with retransmissions and
//     reordering. Segments from before the connection was known to be iWARP come right
//     after Found, up to a bound.
//   - [Startup] is one frame of MPA's startup, or the streaming data before a startup.
//   - [FPDU] is one FPDU in the order of the stream, with its markers and its CRC, with
//     the DDP segment and the RDMAP message in it, and with the packets it was in.
//   - [Missing] is bytes that the capture does not have, or that could not be decoded.
//   - [Read] is an RDMA Read whose Response is complete.
//   - [Finding] is something that is wrong or remarkable.
//   - [ULP] is what a message says of an upper layer protocol that is known here.
//   - [Connection] is what is known so far. At Ended it is the summary.
//
// Each byte of an iWARP connection is in a Startup, an FPDU or a Missing.
//
// An event, and what it points to, is valid during the call only. A consumer that keeps
// one keeps a copy, and clones the slices in it. A Connection may be kept and read
// during later calls; its State belongs to the consumer.
//
// # Offsets, packets and times
//
// A stream offset is that of package capture: it counts the bytes of one direction of
// the TCP connection, from the byte after SYN. Segments, frames, FPDUs, markers and
// findings have such offsets: an FPDU takes the bytes from Offset up to End of its
// direction, and was in the segments that overlap these. Packet numbers and times are
// those of the capture; an FPDU has those of its first byte and of the packet that
// completed it.
//
// # What is found
//
// A connection is iWARP if one end begins it with the key of a startup frame, or later
// sends a startup frame that fills a TCP segment or is answered by another one. Where
// the capture may lack the startup, the decoder searches for FPDUs: it starts at a TCP
// segment that begins like an FPDU or holds two in a row, and believes them if a CRC is
// right, if markers agree, or if four in a row make sense. [Connection.Confidence] says
// how sure it is. An Initiator whose Request is rejected may begin again.
//
// # SCTP
//
// Each DDP Stream Session over SCTP is a Connection, with a [Session]. [Startup] is a session
// control message then, and [FPDU] a DDP Segment with its [Chunk], in the order of DDP-SSNs;
// [Segment] is each user message, at its place in that order. An association carries DDP if an
// INIT or INIT ACK has the Adaptation Layer Indication of DDP, or a message one of its PPIDs. A
// message that comes ahead of others waits for these, within bounds. It stops waiting when the
// receiver has had all before it for so long that the capture must lack them, or when the
// sender has left a DDP-SSN out.
//
// # What is judged
//
// Bytes that the capture lacks lead to one finding, which says so, and to no others.
// What depends on them is not judged until it is known again: the sequence of a queue
// from its next message on, the Reads from the next Response to a captured Request on.
//
// A finding names the requirement at stake by its ID in docs/requirements.md.
//
// # Cost
//
// Memory is bounded: a connection takes some kilobytes as a rule and some megabytes at
// most, and [Config] bounds the number of connections. Bytes in order are not copied,
// and nothing is allocated for an FPDU, unless something is said of its ULP.
package decode
