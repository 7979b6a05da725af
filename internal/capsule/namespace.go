package capsule

import "encoding/binary"

// Bits of the fields of an IdentifyNamespace.
const (
	NamespaceShared         = 1 << 0 // Sharing: several controllers have it
	NamespaceWriteProtected = 1 << 0 // Attributes
	DeallocatedZero         = 1      // Deallocated: blocks that were deallocated read as zero
	DeallocateByZeroes      = 1 << 3 // Deallocated: Write Zeroes may deallocate (ControlDeallocate)
)

// IdentifyNamespace is a page of PageLen bytes about a namespace (StructNamespace). That of a namespace which is not
// there is all zero.
type IdentifyNamespace struct {
	Size, Capacity, Used uint64 // blocks
	Sharing              uint8  // NMIC
	Reservations         uint8  // RESCAP
	Deallocated          uint8  // DLFEAT
	Attributes           uint8  // NSATTR
	NGUID                [16]byte
	EUI64                [8]byte
	// Metadata and BlockShift are of the LBA format in use: bytes of metadata, and the logarithm of the block's
	// length.
	Metadata   uint16
	BlockShift uint8
}

const (
	nsFormats, nsFormat, nsSharing, nsReservations, nsDeallocated = 25, 26, 30, 31, 33
	nsAttributes, nsNGUID, nsEUI64, nsLBAFormats                  = 99, 104, 120, 128
)

// Append appends the PageLen bytes. There is one LBA format.
func (n *IdentifyNamespace) Append(b []byte) []byte {
	b, p := extend(b, PageLen)
	for i, v := range []uint64{n.Size, n.Capacity, n.Used} {
		binary.LittleEndian.PutUint64(p[8*i:], v)
	}
	p[nsSharing], p[nsReservations], p[nsDeallocated], p[nsAttributes] = n.Sharing, n.Reservations,
		n.Deallocated, n.Attributes
	copy(p[nsNGUID:], n.NGUID[:])
	copy(p[nsEUI64:], n.EUI64[:])
	binary.LittleEndian.PutUint16(p[nsLBAFormats:], n.Metadata)
	p[nsLBAFormats+2] = n.BlockShift
	return b
}

// ParseIdentifyNamespace returns the page. The error is an *Error: too few bytes, or an LBA format in use that is not
// there.
func ParseIdentifyNamespace(b []byte) (n IdentifyNamespace, err error) {
	if err := needs("Identify namespace", b, PageLen); err != nil {
		return n, err
	}
	format := int(b[nsFormat]&0xF | b[nsFormat]>>5&3<<4)
	if format > int(b[nsFormats]) {
		return n, &Error{Format: "Identify namespace", Offset: nsFormat, Reason: "the LBA format in use is not there"}
	}
	f := b[nsLBAFormats+4*format:]
	n = IdentifyNamespace{
		Size: binary.LittleEndian.Uint64(b), Capacity: binary.LittleEndian.Uint64(b[8:]),
		Used:    binary.LittleEndian.Uint64(b[16:]),
		Sharing: b[nsSharing], Reservations: b[nsReservations], Deallocated: b[nsDeallocated],
		Attributes: b[nsAttributes],
		Metadata:   binary.LittleEndian.Uint16(f), BlockShift: f[2],
	}
	copy(n.NGUID[:], b[nsNGUID:])
	copy(n.EUI64[:], b[nsEUI64:])
	return n, nil
}

// MaxList is how many NSIDs a list has at most.
const MaxList = PageLen / 4

// AppendList appends a namespace list, of PageLen bytes: StructNamespaces and LogNamespaces. NSIDs beyond MaxList are
// left out.
func AppendList(b []byte, nsids []uint32) []byte {
	b, p := extend(b, PageLen)
	for i, id := range nsids[:min(len(nsids), MaxList)] {
		binary.LittleEndian.PutUint32(p[4*i:], id)
	}
	return b
}

// ParseList returns the NSIDs, up to a zero or the end of the page. The error is an *Error.
func ParseList(b []byte) (nsids []uint32, err error) {
	if err := needs("namespace list", b, PageLen); err != nil {
		return nil, err
	}
	for ; len(nsids) < MaxList; b = b[4:] {
		id := binary.LittleEndian.Uint32(b)
		if id == 0 {
			break
		}
		nsids = append(nsids, id)
	}
	return nsids, nil
}

// A DescriptorType says what a Descriptor identifies a namespace by.
type DescriptorType uint8

// The types, and how many bytes they have.
const (
	DescriptorEUI64      DescriptorType = 1 // 8
	DescriptorNGUID      DescriptorType = 2 // 16
	DescriptorUUID       DescriptorType = 3 // 16
	DescriptorCommandSet DescriptorType = 4 // 1
)

// A Descriptor is a name of a namespace.
type Descriptor struct {
	Type DescriptorType
	ID   []byte // at most 255 bytes
}

// AppendDescriptors appends a page of PageLen bytes (StructDescriptors). Descriptors beyond it are left out.
func AppendDescriptors(b []byte, all []Descriptor) []byte {
	b, p := extend(b, PageLen)
	for _, d := range all {
		if len(d.ID) > 0xFF || len(d.ID)+4 > len(p) {
			break
		}
		p[0], p[1] = byte(d.Type), byte(len(d.ID))
		p = p[4+copy(p[4:], d.ID):]
	}
	return b
}

// ParseDescriptors returns the descriptors of the page, up to the first without bytes. The error is an *Error: too few
// bytes, or a descriptor that does not end.
func ParseDescriptors(b []byte) (all []Descriptor, err error) {
	if err := needs("namespace descriptors", b, PageLen); err != nil {
		return nil, err
	}
	for at := 0; at+4 <= PageLen && b[at+1] != 0; {
		end := at + 4 + int(b[at+1])
		if end > PageLen {
			return all, &Error{Format: "namespace descriptors", Offset: at, Reason: "a descriptor that does not end"}
		}
		all = append(all, Descriptor{DescriptorType(b[at]), b[at+4 : end : end]})
		at = end
	}
	return all, nil
}
