package ulpdata

import (
	"encoding/binary"
	"fmt"

	"github.com/goiwarp/iwarp/mpa"
)

// SMBDirectLen is the size of an [SMBDirect], in bytes.
const SMBDirectLen = 8

// SMBDirect is the depths of RDMA Reads that SMB Direct carries at the head of the
// private data where MPA itself negotiates none: [MS-SMBD], section 6.1, "IRD/ORD
// Negotiate Header". Providers of revision 1 send it in Request and Reply, on port
// 5445.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              IRD                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              ORD                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type SMBDirect struct {
	// IRD and ORD are the sender's depths of inbound and outbound RDMA Reads, both
	// greater than zero.
	IRD, ORD uint32
}

// Append appends the header, big-endian, whatever its values.
func (d SMBDirect) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, d.IRD), d.ORD)
}

// ParseSMBDirect returns the header at the head of b, which may hold more, and the order of its
// bytes, which is binary.BigEndian, or binary.LittleEndian as Linux has sent it. The order is
// that in which both values are from 1 to 0xffff. No bytes fit both orders; if they fit
// neither, the error wraps [ErrConvention].
func ParseSMBDirect(b []byte) (d SMBDirect, order binary.ByteOrder, err error) {
	if len(b) < SMBDirectLen {
		return d, nil, tooShort("SMB Direct's IRD and ORD", len(b), SMBDirectLen)
	}
	for _, order := range []binary.ByteOrder{binary.BigEndian, binary.LittleEndian} {
		d := SMBDirect{order.Uint32(b), order.Uint32(b[4:])}
		if d.plausible() {
			return d, order, nil
		}
	}
	return d, nil, fmt.Errorf("%w: % x are no SMB Direct depths: both must be from 1 to %d, big- or little-endian",
		ErrConvention, b[:SMBDirectLen], smbMost)
}

// smbOrder says in which byte order b has the depths.
func smbOrder(b []byte) string {
	if _, order, _ := ParseSMBDirect(b); order == binary.BigEndian {
		return ", big-endian"
	}
	return ", little-endian: Linux's client has sent them so, and [MS-SMBD] has them big-endian"
}

const smbMost = 0xffff

func (d SMBDirect) plausible() bool {
	return 0 < d.IRD && d.IRD <= smbMost && 0 < d.ORD && d.ORD <= smbMost
}

// Meet returns the depths that our end puts into effect if the peer has sent its own:
// our IRD, and our ORD, but at most the peer's IRD. The peer does the same with its
// ORD, so that neither end sends more Reads than the other takes.
func (d SMBDirect) Meet(peer SMBDirect) SMBDirect {
	return SMBDirect{IRD: d.IRD, ORD: min(d.ORD, peer.IRD)}
}

// WithSMBDirect returns n with the peer's depths as SMB Direct has them at the head
// of its private data: they become PeerIRD and PeerORD, the ORD is lowered to the
// peer's IRD as [SMBDirect.Meet] does, and PrivateData is what is left. An ORD of
// NoNegotiation becomes the peer's IRD. A responder that knows the Request's private
// data before it answers may as well offer such an ORD. The error wraps
// [ErrConvention]; n is to be used as it is then. Where RFC 6581 has negotiated the
// depths there is no such header, and it is an error.
func WithSMBDirect(n mpa.Negotiated) (mpa.Negotiated, error) {
	if n.Enhanced {
		return n, fmt.Errorf("%w: RFC 6581 has negotiated IRD and ORD, and SMB Direct adds none", ErrConvention)
	}
	peer, _, err := ParseSMBDirect(n.PrivateData)
	if err != nil {
		return n, err
	}
	n.PeerIRD, n.PeerORD = depth(peer.IRD), depth(peer.ORD)
	n.ORD = min(n.ORD, n.PeerIRD)
	n.PrivateData = n.PrivateData[SMBDirectLen:]
	return n, nil
}

// depth is a depth of SMB Direct, which has 32 bits, as far as MPA can tell it.
func depth(n uint32) mpa.Depth { return mpa.Depth(min(n, uint32(mpa.MaxDepth))) }

// String returns, for instance, "SMB Direct depths ird 16 ord 8".
func (d SMBDirect) String() string {
	return fmt.Sprintf("SMB Direct depths ird %d ord %d", d.IRD, d.ORD)
}
