// Package capture reads packet captures as the bytes that the ends of TCP
// connections sent each other, and writes captures of connections whose bytes
// are known.
//
// [Open] recognizes the format of a file, and its [Reader] returns each packet as soon
// as it is there: standard input may be a capture that is still growing. A [Tracker]
// takes packets and tells a [Sink] about each connection: every segment as it was
// captured, and also the bytes of each direction in order, with the packet that each
// byte came in, and with what is missing.
//
// # What is read
//
// Files are pcap (microseconds or nanoseconds) and pcapng, of either byte order.
// Link layers are Ethernet with any number of VLAN tags (IEEE 802.1Q, 802.1ad),
// BSD loopback, raw IP and both of Linux's cooked ones. Above them is IPv4, or IPv6
// with its extension headers. In between there may be tunnels: IP in IP, GRE (also
// ERSPAN), VXLAN, GENEVE, MPLS, PPPoE, EtherIP, and IEEE 802.1ah. The same addresses
// and ports in two of them count as one connection. Other tunnels and encrypted packets
// are reported ([SkipTunnel], [SkipEncrypted]), and so are IP fragments, which are not put
// together ([SkipFragment]). Checksums of IP and TCP are not checked, since captures are
// full of packets whose checksums a network card still has to fill in.
//
// # SCTP
//
// An [Associations] does for SCTP (RFC 9260), in IP or in UDP (RFC 6951), what a Tracker does for TCP: it takes
// the packets that a Tracker has skipped, and tells an [AssociationSink] about each association and each
// user message, as soon as that is whole and whatever the order of TSNs. Packets without the verification tag
// of their receiver are left out, as the receiver leaves them out.
//
// # Bytes and offsets
//
// A stream offset is 64 bits wide and counts from the byte after SYN, or from the
// first byte seen where the capture begins later ([Half.Midstream]). Sequence
// numbers wrap around as often as they like.
//
// Where bytes were captured twice, the first ones count. Later ones are compared
// with them by a hash ([Segment.Match]) as far as the segments agree in their
// boundaries.
//
// # Paths
//
// A router may tell a sender, by ICMP, that packets of a direction have become too large for the
// path: [Half.Path] has what it said last, if it quotes bytes that are under way. Such packets
// count as skipped all the same.
//
// # What is missing
//
// A hole in the bytes of a direction may yet be filled, by a segment that was
// reordered or sent again. It becomes a [Gap] when there is no sense in waiting any longer:
// the receiver has acknowledged the bytes and they did not turn up within
// [Config.GapPackets] or [Config.GapTime]; or too much is held back by it
// ([Config.MaxBuffered], [Config.MaxBufferedTotal]); or the direction ends. What
// the snap length cut off a packet is a Gap at once.
//
// # Memory
//
// Bytes in order are handed on in the buffer that the file was read into: nothing is copied,
// and nothing allocated for a packet. What comes ahead of a hole is copied, within the limits
// of [Config]. A Tracker holds at most [Config.MaxConnections] connections and then forgets
// one: one that is over, or else the one that was silent for the longest.
//
// # Writing
//
// A [Writer] makes a capture of what was written to a socket and read from it: a
// [Flow] for each connection, by hand or by [Tap]. What lies below the bytes (the
// handshake, sequence numbers, acknowledgments, how segments are cut) is made up
// and says nothing about the network. [Writer.Packet] adds packets of IP as they are, and [TapUDP] records the
// datagrams of a socket, such as those of SCTP in UDP.
package capture
