// Package rdmap is the Remote Direct Memory Access Protocol, RFC 5040, with the
// opcodes of its extensions, RFC 7306: the control field, the headers, the
// Terminate, and the rules of a stream that need neither memory nor a connection.
//
// The package does no I/O, keeps no clock and starts nothing. It stands on
// [github.com/goiwarp/iwarp/ddp]: a message is one DDP message, [Opcode.Header] says what to
// ask DDP for, and [CheckSegment] judges a received segment in addition to DDP's own checks.
// [ORQ] keeps the Reads that this side has asked for, [IRRQ] those that the peer has.
//
// Append functions write any field values, legal or not, and Parse functions
// check lengths only.
//
// The RDMAP version is a parameter wherever it matters: 1 is RFC 5040, 0 is the
// RDMA Consortium's earlier version of the same protocol.
//
// All lengths and offsets are in bytes. In the code, [P07] and the like
// name requirements that docs/requirements.md lists.
package rdmap
