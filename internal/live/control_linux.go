package live

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

var nativeOrder = binary.NativeEndian

// A tag is one of IEEE 802.1Q that the kernel has taken out of a packet.
type tag struct {
	there    bool
	kind, id uint16
}

// Offsets in struct tpacket_auxdata.
const (
	auxStatus = 0
	auxTag    = 16
	auxKind   = 18
	auxLen    = 20
)

// about takes what the kernel says about a packet: when it came, how many were dropped before it, and its tag.
func (s *Source) about(b []byte) (t tag) {
	for len(b) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(b)
		if err != nil {
			break
		}
		b = rest
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS:
			s.packet.Time = timeOf(data)
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_RXQ_OVFL && len(data) >= 4:
			s.drops = nativeOrder.Uint32(data)
		case h.Level == unix.SOL_PACKET && h.Type == unix.PACKET_AUXDATA && len(data) >= auxLen:
			t = tagOf(data)
		}
	}
	return t
}

// timeOf reads a timespec of the system's word size.
func timeOf(b []byte) time.Time {
	switch len(b) {
	case 8:
		return time.Unix(int64(int32(nativeOrder.Uint32(b))), int64(nativeOrder.Uint32(b[4:]))).UTC()
	case 16:
		return time.Unix(int64(nativeOrder.Uint64(b)), int64(nativeOrder.Uint64(b[8:]))).UTC()
	}
	return time.Time{}
}

func tagOf(b []byte) tag {
	status := nativeOrder.Uint32(b[auxStatus:])
	t := tag{status&unix.TP_STATUS_VLAN_VALID != 0, unix.ETH_P_8021Q, nativeOrder.Uint16(b[auxTag:])}
	if status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		t.kind = nativeOrder.Uint16(b[auxKind:])
	}
	return t
}

// tagged puts the tag back behind the addresses of a packet, which lies in space behind room for it.
func (t tag) tagged(space, packet []byte) []byte {
	if !t.there || len(packet) < addressesLen {
		return packet
	}
	copy(space, packet[:addressesLen])
	binary.BigEndian.PutUint16(space[addressesLen:], t.kind)
	binary.BigEndian.PutUint16(space[addressesLen+2:], t.id)
	return space[:vlanLen+len(packet)]
}
