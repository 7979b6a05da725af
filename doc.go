// Package iwarp is RDMA over plain TCP: a complete iWARP endpoint (MPA, DDP,
// RDMAP) in user space, with the verbs that RDMA programs know.
//
// An RNIC is the whole endpoint. In a Protection Domain of it memory is
// registered (MR) and Queue Pairs (QP) are created; a Dialer or a Listener
// connects a QP with a peer, which may be another program with this package,
// Linux's siw driver, or an RNIC. Work is posted to a QP (PostSend, PostRecv)
// and ends in a Completion Queue (CQ); Send, Recv, Write and Read are the same
// operations as one call each.
//
// Memory named in a work request belongs to the QP until the request's
// completion. A context given to a call ends the waiting, never half a message.
//
// The words are those of libibverbs and the RFCs: 5040 (RDMAP), 5041 (DDP), 5042
// (security), 5044 (MPA), 6581 (enhanced connection establishment). Lengths and
// offsets are in octets.
package iwarp
