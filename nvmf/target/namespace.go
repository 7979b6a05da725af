package target

import (
	"crypto/sha256"
	"math/bits"

	"github.com/goiwarp/iwarp/internal/capsule"
)

// A Namespace is a disk that a Target offers.
type Namespace struct {
	// Backend is its storage.
	Backend Backend
	// Name makes UUID and NGUID: the same name, under the same NQN, is the same disk to a host, whatever was restarted.
	// If empty, it is the number of the namespace. No two of a Target have the same.
	Name string
	// UUID is used in place of one that is made from the Name, if it is not zero. No two of a Target have the same.
	UUID [16]byte
	// ReadOnly has commands that write refused.
	ReadOnly bool
}

// A namespace is one that is offered.
type namespace struct {
	Backend
	Namespace
	id    uint32
	shift int // logarithm of a block's length
	nguid [16]byte
	uuid  [16]byte
}

func newNamespace(nqn string, id uint32, n Namespace) *namespace {
	s := &namespace{
		Backend: n.Backend, Namespace: n, id: id, shift: bits.TrailingZeros(uint(n.Backend.BlockSize())),
		nguid: identity("NGUID", nqn, n.Name), uuid: n.UUID,
	}
	if s.uuid == [16]byte{} {
		s.uuid = identity("UUID", nqn, n.Name)
		s.uuid[6], s.uuid[8] = s.uuid[6]&0x0F|0x80, s.uuid[8]&0x3F|0x80 // RFC 9562, section 5.8: of our own making
	}
	return s
}

// identity is 16 bytes that are made from names, and are always the same.
func identity(names ...string) (id [16]byte) {
	h := sha256.New()
	for _, name := range names {
		h.Write([]byte(name))
		h.Write([]byte{0})
	}
	copy(id[:], h.Sum(nil))
	return id
}

// blocks is the length in blocks.
func (n *namespace) blocks() uint64 { return uint64(n.Size()) >> n.shift }

// byteRange returns where blocks are. The caller has checked that they exist.
func (n *namespace) byteRange(lba uint64, blocks uint32) (off, length int64) {
	return int64(lba << n.shift), int64(blocks) << n.shift
}

// identify is what a host is told.
func (n *namespace) identify() *capsule.IdentifyNamespace {
	i := &capsule.IdentifyNamespace{
		Size: n.blocks(), Capacity: n.blocks(), Used: n.blocks(), Sharing: capsule.NamespaceShared,
		NGUID: n.nguid, BlockShift: uint8(n.shift),
	}
	if discardsToZero(n.Namespace.Backend) {
		i.Deallocated = capsule.DeallocatedZero | capsule.DeallocateByZeroes
	}
	if n.ReadOnly {
		i.Attributes = capsule.NamespaceWriteProtected
	}
	return i
}

// descriptors name the namespace.
func (n *namespace) descriptors() []capsule.Descriptor {
	return []capsule.Descriptor{
		{Type: capsule.DescriptorUUID, ID: n.uuid[:]},
		{Type: capsule.DescriptorNGUID, ID: n.nguid[:]},
	}
}
