// Package iwarp is RDMA over plain TCP, and over SCTP: a complete iWARP endpoint (MPA,
// DDP, RDMAP) in user space, with the verbs that RDMA programs know.
//
// An RNIC is the whole endpoint. Its Protection Domains (PD) hold registered memory (MR) and Queue Pairs (QP); a
// Dialer or a Listener connects a QP with a peer, which may be another program that uses this package, Linux's siw
// driver, or a hardware RNIC. The connection runs over the system's TCP, over a TCP that the program brings along
// (Stack), or over a network that carries segments of DDP (SegmentNetwork), as package iwarpsctp does over SCTP. The
// documentation of each says what is special to it; everything else holds for all. You post work to a QP (PostSend,
// PostRecv) and find the outcome in a Completion Queue (CQ); Send, Recv, Write and Read do the same in one call each.
//
// Memory named in a work request belongs to the QP until the request's completion. A
// context ends the waiting of a call, but never cuts a message in half.
//
// The terms are those of libibverbs and the RFCs: 5040 (RDMAP), 5041 (DDP), 5042
// (security), 5043 (DDP over SCTP), 5044 (MPA), 6581 (enhanced connection establishment). Lengths and
// offsets are in bytes.
package iwarp
