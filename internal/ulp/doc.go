// Package ulp says in a line what a message of an upper layer protocol is about: RPC over RDMA with
// NFS, SMB Direct with SMB2, NVMe over RDMA, iSER, rsockets and rping. It reads the protocol's own
// headers, and the status words that tell of a failure; it is no dissector.
//
// A [Conn] is fed with what one connection carries, and guesses its protocol: private data and ports
// are hints, and several messages in a row must have the protocol's form and answer each other. Until
// then, and where a message has another form, it says nothing.
//
// Memory is bounded: the latest requests and the latest STags are remembered, and what was said before
// the protocol was known is kept for some messages. A [Group] bounds that over all connections.
package ulp
