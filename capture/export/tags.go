package export

import (
	"encoding/binary"
	"net/netip"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
)

// upperPDU is LINKTYPE_WIRESHARK_UPPER_PDU: tags, and then what a dissector of Wireshark's is given.
const upperPDU capture.LinkType = 252

// Tags of it, as Wireshark's wsutil/exported_pdu_tlvs.h numbers them.
const (
	tagDissector  = 12
	tagIPv4Source = 20
	tagIPv4To     = 21
	tagIPv6Source = 22
	tagIPv6To     = 23
	tagPortType   = 24
	tagSourcePort = 25
	tagToPort     = 26
	tagPacket     = 30 // the number of the packet in the capture
	tagEnd        = 0
)

// Kinds of ports.
const (
	portsSCTP = 1
	portsTCP  = 2
)

// dissector is the name of Wireshark's dissector of DDP and RDMAP.
const dissector = "iwarp_ddp_rdmap"

// appendTags appends what goes in front of a ULPDU.
func appendTags(b []byte, c *decode.Connection, f *decode.FPDU) []byte {
	ports := uint32(portsTCP)
	if c.Session != nil {
		ports = portsSCTP
	}
	from, to := c.TCP.Halves[f.Dir].Addr, c.TCP.Halves[1-f.Dir].Addr
	b = appendTag(b, tagDissector, []byte(dissector))
	b = appendAddr(b, from.Addr(), tagIPv4Source, tagIPv6Source)
	b = appendAddr(b, to.Addr(), tagIPv4To, tagIPv6To)
	b = appendNumber(b, tagPortType, ports)
	b = appendNumber(b, tagSourcePort, uint32(from.Port()))
	b = appendNumber(b, tagToPort, uint32(to.Port()))
	b = appendNumber(b, tagPacket, uint32(f.Last.Number))
	return appendTag(b, tagEnd, nil)
}

func appendAddr(b []byte, a netip.Addr, tag4, tag6 uint16) []byte {
	if a = a.Unmap(); a.Is4() {
		return appendTag(b, tag4, a.AsSlice())
	}
	return appendTag(b, tag6, a.AsSlice())
}

func appendNumber(b []byte, tag uint16, v uint32) []byte {
	return appendTag(b, tag, binary.BigEndian.AppendUint32(nil, v))
}

// appendTag appends a tag with its value, and zeros up to a multiple of four, which count.
func appendTag(b []byte, tag uint16, value []byte) []byte {
	size := (len(value) + 3) &^ 3
	b = binary.BigEndian.AppendUint16(b, tag)
	b = binary.BigEndian.AppendUint16(b, uint16(size))
	b = append(b, value...)
	return append(b, make([]byte, size-len(value))...)
}
