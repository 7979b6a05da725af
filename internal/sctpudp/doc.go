// Package sctpudp carries the user messages of package sctp by SCTP in UDP (RFC 6951), in user space: no privileges,
// and no SCTP in the kernel.
//
// SCTP itself is github.com/pion/sctp: acknowledgements, retransmission, congestion, SHUTDOWN. What that does not have,
// or leaves to those below it, is here: the handshake, without state for INITs (RFC 9260, section 5.1), with tags and
// TSNs that nobody can guess and with the Adaptation Layer Indication; the verification of tags, checksums and the form
// of packets before anything else sees them; many associations on one UDP socket; restarts; messages in fragments, and
// the U flag; and the notice that a peer is gone.
//
// It knows nothing of DDP, except for its Adaptation Layer Indication and the PPIDs of its messages.
package sctpudp
