// Package ddp is the Direct Data Placement protocol, RFC 5041: its two headers,
// the cutting of messages into segments, and the rules by which a segment may be placed.
//
// The package does no I/O, keeps no clock and starts nothing. A sender asks a
// [Segmenter] for one header after the other and writes it with [Header.Append].
// A receiver hands every ULPDU to [Parse], judges it with [CheckVersion] and
// then, by its T bit, with [CheckBounds] or [UntaggedQueue.Check], copies the
// payload, and tells an untagged queue so with [UntaggedQueue.Place].
//
// Reading and writing do not judge: Append writes any field values, legal or
// not, and Parse rejects only a segment that is too short for its header. The
// Check functions say what is legal; each reports
// an [Error] with the error number of RFC 5041, section 7.2.
//
// The DDP version is a parameter wherever it matters: 1 is RFC 5041, 0 is the
// RDMA Consortium's earlier version of the same protocol.
//
// All lengths and offsets are in bytes. In the code, [D07] and the like
// name requirements that docs/requirements.md lists.
package ddp
