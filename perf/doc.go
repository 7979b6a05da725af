// Package perf measures the bandwidth and latency of an iWARP connection, and next to it
// those of plain TCP between the same two ends in the same run.
//
// A measurement has an initiator, which drives it, and a responder. [Run] has
// both in one process over loopback; [Serve] and [Connect] are the two ends
// on two hosts. Only the initiator is told what to measure. It sends what the MPA
// startup must know (markers, CRC, depths) as private data, and the rest in the first
// Send of a control connection. [RunTwo] is Run with latency measured between two processes.
//
// # What is measured
//
// For every operation and size there are two quantities, each for iWARP and for TCP:
//
//	Send, bandwidth    Depth Sends under way; the responder hands out credits by
//	                   zero-length Sends, as it has only so many receives posted
//	Write, bandwidth   Depth Writes under way; the responder answers a zero-length Send after the last
//	Read, bandwidth    Depth (or ORD) Reads under way
//	Send, latency      half the time from a Send to the Send that answers it
//	Write, latency     half the time of a ping-pong whose message is a Write and a zero-length
//	                   Send after it. (perftest's receiver watches its memory instead, which
//	                   in Go is a data race.)
//	Read, latency      the whole time from a Read to its completion
//
// Of the operations of RFC 7306, which [Meanings] explains, those that fetch are measured as Read, and the others as
// Send. They are measured only if they are asked for.
//
// Bandwidth counts until the last byte is known to be in the responder's
// (for Read: the initiator's) memory, not only handed to a socket.
//
// TCP does the same with the same buffers on a connection of its own: one
// write call per message, reads as large as they come; a ping-pong of
// messages; and for Read a request of 16 bytes, answered with the message,
// as many requests under way as there are Reads.
//
// What bounds the messages under way is not the same on both sides. Sends are ahead of the responder by no more than it
// has receives for, which are Options.RXDepth, and Depth Sends or Writes at most wait for the socket to take them;
// beyond that the socket's buffers bound Writes. Plain TCP's messages, beside Sends and Writes, are bounded by the
// socket's buffers alone, which are the same on both sides: of small ones more may be under way. Reads and plain TCP's
// requests are bounded by Depth.
//
// With Options.Bidirectional both ends send at once, over one connection; for Reads, plain TCP
// then sends the messages unasked.
//
// Both sides wait as programs do: plain TCP sleeps until something has come, and iWARP spins
// for up to 100 us first (iwarp.QPConfig.Spin). With Options.Poll both poll.
//
// The time for a quantity is cut into pairs of slices of about 10 ms, one of iWARP and one
// of TCP, so that a change in the machine's load affects both. Over a path with a long round trip slices are longer,
// and fewer: 20 round trips of bandwidth, which ends with one in which nothing more is sent, and 4 of latency. A
// quantity then takes up to three times as long as was asked for; where that is not enough either, Result.ShortSlices
// says so of the bandwidth. Where the system says how long threads that could run have waited for a CPU, and what a
// hypervisor took away, pairs that were disturbed are dropped, and others are measured in their place. Ratios are the
// median over the pairs of the ratio within a pair, with the quartiles. A ratio is called
// inconclusive if the 95 % confidence interval of the median is wide, as it is where few pairs were left or where they
// differ: another run would find something else. So is one of bandwidth or latency for which fewer than 5 undisturbed
// pairs are left; it and the figures are then of the 5 that waited least. (Where fewer than 20 pairs are wanted, none is
// dropped, and no verdict given. A quantity takes 1.5 times the time asked for at most, with what is replaced.)
//
// Averages are over all slices that were kept, the peak is the best slice's. The median
// latency is the median over the slices of the slice's own. So is the 99th percentile, where half of the slices of
// either transport have 100 round trips. Where they have fewer, it is that of all round trips together, if those are
// 300, and its ratio is the median over groups of pairs, each as many as have 100 on both sides. The latency that 0.1 %
// exceed is that of all together, if those are 3000.
//
// CPU time is that of both ends, divided by the messages, as is the number of context
// switches, of threads that went to sleep. These count for disturbed slices too, and so do the ratios of CPU time: a
// thread that waits for a CPU takes none.
// QPs run over TCP, or over what Options.Network names. What is measured beside is the system's plain TCP
// in either case; beside TCP it goes to the same address, by the same way through the network.
//
// System calls are counted in slices of their own, since counting makes them slower, and
// only on Linux by root with tracefs mounted.
//
// Observer.Wrap and NewListener put something between QPs and their TCP connections, such
// as a recorder. That costs time, and the plain TCP connections do without it, so that
// the ratios then say little.
//
// # What is verified
//
// Before a slice both ends fill every source buffer with bytes that depend on
// the slice and on their place, and every sink with their complement. A message
// begins with its sequence number in eight bytes (except for Reads, where no
// program acts at the source: there the source of a slot changes from lap to
// lap). After the slice each end compares its sinks with what the last messages
// into them must have left, and places that got no message with the
// complement. One wrong byte ends the run with a [CorruptionError].
package perf
