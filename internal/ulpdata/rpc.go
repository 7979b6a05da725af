package ulpdata

import (
	"encoding/binary"
	"fmt"
)

// RPCOverRDMALen is the size of an [RPCOverRDMA], in bytes.
const RPCOverRDMALen = 8

// RPCOverRDMA is what RPC-over-RDMA version 1, which carries NFS, has in its private
// data: RFC 8797, section 4. Both ends send it.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                Format Identifier: 0xf6ab0e18                  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Version: 1   |  Reserved   |R|   Send Size   | Receive Size  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type RPCOverRDMA struct {
	// RemoteInvalidation is whether the sender takes Sends with Invalidate.
	RemoteInvalidation bool
	// SendSize and ReceiveSize are the largest messages that the sender sends and
	// receives, in bytes: multiples of 1024, up to 262144.
	SendSize, ReceiveSize uint32
}

const (
	rpcIdentifier = 0xf6ab0e18
	rpcVersion    = 1
	rpcFlagR      = 0x01
	rpcUnit       = 1024 // bytes; a size is one less in such units
	rpcMost       = 256 * rpcUnit
)

// Append appends the private data. Sizes are rounded down to what can be said, and
// up to 1024.
func (r RPCOverRDMA) Append(dst []byte) []byte {
	var flags byte
	if r.RemoteInvalidation {
		flags = rpcFlagR
	}
	dst = binary.BigEndian.AppendUint32(dst, rpcIdentifier)
	return append(dst, rpcVersion, flags, sizeCode(r.SendSize), sizeCode(r.ReceiveSize))
}

func sizeCode(n uint32) byte {
	return byte(min(max(n, rpcUnit), rpcMost)/rpcUnit - 1)
}

// ParseRPCOverRDMA returns what is at the head of b, which may hold more. The error
// wraps [ErrConvention].
func ParseRPCOverRDMA(b []byte) (r RPCOverRDMA, err error) {
	if len(b) < RPCOverRDMALen {
		return r, tooShort("RPC-over-RDMA", len(b), RPCOverRDMALen)
	}
	if id := binary.BigEndian.Uint32(b); id != rpcIdentifier {
		return r, fmt.Errorf("%w: the identifier of RPC-over-RDMA is 0x%08x, and this is 0x%08x",
			ErrConvention, uint32(rpcIdentifier), id)
	}
	if b[4] != rpcVersion {
		return r, fmt.Errorf("%w: RPC-over-RDMA private data of version %d, and there is none but %d",
			ErrConvention, b[4], rpcVersion)
	}
	return RPCOverRDMA{b[5]&rpcFlagR != 0, (uint32(b[6]) + 1) * rpcUnit, (uint32(b[7]) + 1) * rpcUnit}, nil
}

// String returns, for instance, "RPC-over-RDMA send size 4096 receive size 4096
// remote invalidation".
func (r RPCOverRDMA) String() string {
	s := fmt.Sprintf("RPC-over-RDMA send size %d receive size %d", r.SendSize, r.ReceiveSize)
	if r.RemoteInvalidation {
		s += " remote invalidation"
	}
	return s
}
