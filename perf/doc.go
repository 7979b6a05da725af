// Package perf measures what an iWARP connection carries, beside what plain
// TCP carries between the same two ends in the same run.
//
// A measurement has an initiator, which drives it, and a responder. [Run] has
// both in one process over loopback; [Serve] and [Connect] are the two ends
// on two hosts. Only the initiator is told what to measure: what the MPA
// startup must know (markers, CRC, depths) travels as private data, the rest
// as the first Send of a control connection.
//
// # What is measured
//
// For every operation and size there are two quantities, each for iWARP and for TCP:
//
//	Send, bandwidth    Depth Sends under way; the responder hands out credits by
//	                   zero-length Sends, as it has only so many receives posted
//	Write, bandwidth   Depth Writes under way; a zero-length Send behind the last is answered
//	Read, bandwidth    Depth (or ORD) Reads under way
//	Send, latency      half the time from a Send to the Send that answers it
//	Write, latency     half the time of a ping-pong whose message is a Write and a zero-length
//	                   Send behind it. (perftest's receiver watches its memory instead, which
//	                   in Go is a data race.)
//	Read, latency      the whole time from a Read to its completion
//
// Bandwidth counts until the last octet is known to be in the responder's
// (for Read: the initiator's) memory, not only handed to a socket.
//
// TCP does the same with the same buffers on a connection of its own: one
// write call per message, reads as large as they come; a ping-pong of
// messages; and for Read a request of 16 octets, answered with the message,
// as many requests under way as there are Reads.
//
// The time given to a quantity is cut into [Rounds] slices that alternate
// between iWARP and TCP, so that a change of the machine's mood meets both.
// Ratios are the median over the rounds of the ratio within a round;
// averages and percentiles are over all rounds, the peak is the best round's.
//
// Observer.Wrap and NewListener put something between QPs and their TCP connections,
// such as what records them, at either end. That costs time, and the connections of
// plain TCP do not have it: the ratios then say little.
//
// # What is verified
//
// Before a slice every source buffer is filled with octets that depend on the
// slice and on their place, and every sink with the complement of them. The
// first eight octets of a message are its sequence number (not for Reads,
// where no program acts at the source: there the source of a slot changes
// from lap to lap). After the slice each sink is compared with what the last
// messages into it must have left, and places that no message was sent to
// with the complement. One wrong octet ends the run with a [CorruptionError].
package perf
