//go:build linux && (amd64 || arm64)

package verbs

import (
	"encoding/binary"
	"unsafe"
)

// The structures of rdma-core's verbs.h that pass between the program and us as they are: no copy is made of a list of
// work requests. Their layout is that of LP64 machines, and has not changed since libibverbs 1.1; the C side checks it
// when it is compiled (programs/preload/layout.c), and TestLayout here.
//
// The pointers in them are C's.

// A SendWR is a struct ibv_send_wr, 128 bytes.
type SendWR struct {
	ID         uint64
	Next       *SendWR
	SGL        *SGE
	SGEs       int32
	Opcode     uint32
	Flags      uint32
	Imm        uint32 // or the STag to be invalidated
	RemoteAddr uint64
	RKey       uint32
	_          [76]byte
}

// atomicArgs are what a SendWR has from RemoteAddr on, if it is of an Atomic Operation.
type atomicArgs struct {
	RemoteAddr, CompareAdd, Swap uint64
	RKey                         uint32
}

func (w *SendWR) atomic() *atomicArgs { return (*atomicArgs)(unsafe.Pointer(&w.RemoteAddr)) }

// udArgs are what a SendWR has from RemoteAddr on, if it is of a datagram. The handle of its address is in the struct
// ibv_ah.
type udArgs struct {
	AH *struct { // ibv_ah
		_      [16]byte
		Handle uint32
	}
	Number, QKey uint32 // of the QP that it is for
}

func (w *SendWR) datagram() *udArgs { return (*udArgs)(unsafe.Pointer(&w.RemoteAddr)) }

// immediate is Immediate Data as package iwarp has it: what lies in the program's memory in network order, as the upper
// half.
func (w *SendWR) immediate() uint64 {
	var b [8]byte
	binary.NativeEndian.PutUint32(b[:], w.Imm)
	return binary.BigEndian.Uint64(b[:])
}

// A RecvWR is a struct ibv_recv_wr, 32 bytes.
type RecvWR struct {
	ID   uint64
	Next *RecvWR
	SGL  *SGE
	SGEs int32
	_    [4]byte
}

// An SGE is a struct ibv_sge, 16 bytes.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// elements returns a list of n, and reports whether there is one: of so many at most, and of none without a pointer.
func elements(sgl *SGE, n, most int32) (list []SGE, ok bool) {
	if n < 0 || n > most || n > 0 && sgl == nil {
		return nil, false
	}
	return unsafe.Slice(sgl, n), true
}

// memory returns the memory that an element of an inline request names, and reports whether it can be any.
func (s *SGE) memory() (m []byte, ok bool) {
	if s.Length > 0 && s.Addr == 0 || s.Addr+uint64(s.Length) < s.Addr {
		return nil, false
	}
	addr := *(*unsafe.Pointer)(unsafe.Pointer(&s.Addr))
	return unsafe.Slice((*byte)(addr), s.Length), true
}

// A WC is a struct ibv_wc, 48 bytes.
type WC struct {
	ID          uint64
	Status      uint32
	Opcode      uint32
	VendorErr   uint32
	ByteLen     uint32
	Invalidated uint32 // or immediate data
	QPNum       uint32
	SrcQP       uint32
	Flags       uint32
	PKeyIndex   uint16
	SLID        uint16
	SL          uint8
	DLIDPath    uint8
	_           [2]byte
}

// Flags of a SendWR.
const (
	sendFence     = 1 << 0
	sendSignaled  = 1 << 1
	sendSolicited = 1 << 2
	sendInline    = 1 << 3
)

// Flags of a WC.
const (
	wcWithRoute = 1 << 0 // IBV_WC_GRH
	wcWithImm   = 1 << 1
	wcWithInv   = 1 << 3
)

// Access rights of a region.
const (
	accessLocalWrite   = 1 << 0
	accessRemoteWrite  = 1 << 1
	accessRemoteRead   = 1 << 2
	accessRemoteAtomic = 1 << 3
	accessMWBind       = 1 << 4
	accessZeroBased    = 1 << 5
	accessOnDemand     = 1 << 6
	accessHugeTLB      = 1 << 7      // a promise about the pages, which nothing here depends on
	accessFlush        = 3 << 8      // FLUSH_GLOBAL and FLUSH_PERSISTENT
	accessOptional     = 0x3ff << 20 // to be ignored by those who do not know them
)
