// Package chunk has the format of SCTP's packets: RFC 9260, section 3. It reads and builds them, whatever their values;
// what is right is for others to judge: the carrier in user space, captures, and peers that are played by hand.
//
// A packet is a [Header] and chunks, which [In] takes apart and [Header.Packet] puts together. INIT and INIT ACK
// have a [Setup], and DATA a [Data]. Slices that are returned are in the bytes that were given.
package chunk
