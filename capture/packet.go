package capture

import (
	"fmt"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
)

// A Packet is one packet of a capture.
type Packet struct {
	// Number counts from 1, as Wireshark's frame.number does.
	Number uint64
	// Time is when it was captured, to the nanosecond if the file is that precise. It is the zero time in a pcapng
	// Simple Packet Block.
	Time time.Time
	// Link says what Data begins with.
	Link LinkType
	// Data is what was captured. It is valid until the next packet is read.
	Data []byte
	// OrigLen is the length in bytes of the packet on the wire; more than len(Data)
	// if the snap length has cut it.
	OrigLen int
	// Dropped is how many packets the capture lacks right in front of this one, as far as it says so: pcapng's
	// epb_dropcount, or what a live source has lost.
	Dropped uint64
}

// wireLen is the length of the packet in bytes, which is never less than what was
// captured of it.
func (p *Packet) wireLen() int { return max(p.OrigLen, len(p.Data)) }

// A Stamp is which packet something was seen in.
type Stamp struct {
	Number uint64 // see Packet.Number
	Time   time.Time
}

// stamp returns the packet's.
func (p *Packet) stamp() Stamp { return Stamp{p.Number, p.Time} }

// LinkType is the link layer of a packet, by its LINKTYPE_ number in files.
type LinkType uint16

// The link types that packets of TCP connections are found in.
const (
	LinkNull     LinkType = 0   // BSD loopback: address family in the byte order of the host
	LinkEthernet LinkType = 1   // Ethernet, with any number of VLAN tags
	LinkRawBSD   LinkType = 12  // IPv4 or IPv6, as some systems number it
	LinkRawOpen  LinkType = 14  // IPv4 or IPv6, as OpenBSD numbers it
	LinkRaw      LinkType = 101 // IPv4 or IPv6
	LinkLoop     LinkType = 108 // OpenBSD loopback: address family in network order
	LinkSLL      LinkType = 113 // Linux cooked
	LinkIPv4     LinkType = 228
	LinkIPv6     LinkType = 229
	LinkSLL2     LinkType = 276 // Linux cooked, version 2
)

func (l LinkType) String() string {
	switch l {
	case LinkNull, LinkLoop:
		return "loopback"
	case LinkEthernet:
		return "Ethernet"
	case LinkRawBSD, LinkRawOpen, LinkRaw:
		return "raw IP"
	case LinkSLL:
		return "Linux cooked v1"
	case LinkIPv4:
		return "raw IPv4"
	case LinkIPv6:
		return "raw IPv6"
	case LinkSLL2:
		return "Linux cooked v2"
	}
	return fmt.Sprintf("link type %d", uint16(l))
}

// Skip is why a packet is not a segment of a TCP connection.
type Skip uint8

// The reasons to skip a packet.
const (
	SkipLink      Skip = iota + 1 // its link type is none that we know
	SkipNotIP                     // it is not IP: ARP, say
	SkipNotTCP                    // it is not TCP
	SkipFragment                  // it is a fragment of an IP packet with TCP in it
	SkipShort                     // its snap length has cut it within a header
	SkipMalformed                 // a header contradicts itself or the length of the packet
	SkipTunnel                    // it is in a tunnel that is not read, such as L2TP
	SkipEncrypted                 // it is encrypted: ESP, MACsec or WireGuard
	SkipForgotten                 // its connection was forgotten: see Config.MaxConnections
)

var skipNames = [...]string{"", "unknown link type", "not IP", "not TCP", "IP fragment", "headers cut off",
	"malformed header", "tunnel of an unknown kind", "encrypted", "of a forgotten connection"}

func (s Skip) String() string { return wording.Name(s, "reason", skipNames[:]) }
