// Package decode finds iWARP connections in packet captures and tells what is said on
// them: MPA's startup, FPDUs, DDP segments and RDMAP messages, and what of it breaks
// the rules.
//
// [Run] reads a capture and tells a [Consumer]. A [Decoder] is the same as a
// [capture.Sink], for packets that come from elsewhere.
//
// # Being a consumer
//
// A [Consumer] has one method for each kind of event. Embed [Ignore], and write those
// that are wanted:
//
//	type reads struct {
//		decode.Ignore
//		slowest time.Duration
//	}
//
//	func (r *reads) Read(_ *decode.Connection, e *decode.Read) { r.slowest = max(r.slowest, e.Latency()) }
//
// Events come in the order in which they can be known. [Consumer.Found] is the first
// event of a connection and [Consumer.Ended] the last one. Other connections, which
// are no iWARP, have no events: they are counted in [Totals].
//
//   - [Segment] is every TCP segment as it was captured, with retransmissions and
//     reordering. Those before it was known that the connection is iWARP come right
//     after Found, up to a bound.
//   - [Startup] is one frame of MPA's startup, or the streaming data in front of one.
//   - [FPDU] is one FPDU in the order of the stream, with its markers and its CRC, with
//     the DDP segment and the RDMAP message in it, and with the packets it was in.
//   - [Missing] is octets that the capture does not have, or that no FPDU was found in.
//   - [Read] is an RDMA Read whose Response is complete.
//   - [Finding] is what is wrong or remarkable.
//   - [Connection] is what is known so far. At Ended it is the summary.
//
// An event is valid during the call, as is all it points to but a Connection. A
// consumer that keeps one keeps a copy, and clones the slices in it. A Connection may
// be kept, and read during calls; State is the consumer's.
//
// # Offsets, packets and times
//
// A stream offset is that of package capture: octets of the TCP stream of one
// direction, counted from behind SYN. It joins segments, frames, FPDUs, markers and
// findings: an FPDU lies in the octets from Offset up to End of its direction, and
// in the segments that overlap these. Packet numbers and times are those of the
// capture; an FPDU has those of its first octet, and of the packet that completed it.
//
// # What is found
//
// A connection is iWARP if an end begins it with the key of a startup frame, or sends a
// startup frame later on that is a TCP segment of its own or is answered by one. Where
// the startup may be missing in the capture, FPDUs are searched for from a TCP segment on
// that begins as an FPDU does, or holds two in a row; they are believed if a CRC is right,
// markers agree, or four in a row make sense. [Connection.Confidence] says how sure it is.
// An Initiator whose Request is rejected may begin again.
//
// # What is judged
//
// Octets that are missing in the capture make no findings but one that says so. What
// depends on them is not judged until it is known again: the sequence of a queue with
// its next message, the Reads with the next Response to a request that was captured.
//
// Findings bear the IDs of the project's requirements, which docs/requirements.md
// lists.
//
// # Cost
//
// Memory is bounded per connection, by some megabytes at the worst and some kilobytes
// mostly; [Config] has the bound on connections. Octets in order are not
// copied, and an FPDU is not allocated for.
package decode
