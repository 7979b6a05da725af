package capsule

import (
	"encoding/binary"
	"fmt"
)

// DiscoveryNQN is the name of every discovery subsystem.
const DiscoveryNQN = "nqn.2014-08.org.nvmexpress.discovery"

const (
	// DiscoveryHeaderLen and DiscoveryEntryLen are the lengths of the parts of the log page LogDiscovery.
	DiscoveryHeaderLen = 1024
	DiscoveryEntryLen  = 1024

	entryService   = 32
	entryServiceN  = 32
	entrySubsystem = 256
	entryAddress   = 512
	entryAddressN  = 256
	entryRDMA      = 768
)

// DiscoveryHeader is the beginning of the log page LogDiscovery. As many entries as Records says follow.
type DiscoveryHeader struct {
	Generation uint64 // changes with the log
	Records    uint64
	Format     uint16 // 0
}

// Append appends the DiscoveryHeaderLen bytes.
func (h DiscoveryHeader) Append(b []byte) []byte {
	b, p := extend(b, DiscoveryHeaderLen)
	binary.LittleEndian.PutUint64(p, h.Generation)
	binary.LittleEndian.PutUint64(p[8:], h.Records)
	binary.LittleEndian.PutUint16(p[16:], h.Format)
	return b
}

// ParseDiscoveryHeader returns the header. The error is an *Error.
func ParseDiscoveryHeader(b []byte) (h DiscoveryHeader, err error) {
	if err := needs("discovery log", b, DiscoveryHeaderLen); err != nil {
		return h, err
	}
	return DiscoveryHeader{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]),
		binary.LittleEndian.Uint16(b[16:])}, nil
}

// A Transport is the TRTYPE of a DiscoveryEntry.
type Transport uint8

// An AddressFamily is its ADRFAM.
type AddressFamily uint8

// A SubsystemType is its SUBTYPE.
type SubsystemType uint8

// The values that a DiscoveryEntry may have.
const (
	TransportRDMA Transport = 1
	TransportTCP  Transport = 3

	FamilyIPv4 AddressFamily = 1
	FamilyIPv6 AddressFamily = 2

	SubsystemReferral  SubsystemType = 1 // another discovery subsystem
	SubsystemNVM       SubsystemType = 2
	SubsystemDiscovery SubsystemType = 3 // this discovery subsystem
)

// String names the transport as nvme-cli does.
func (t Transport) String() string {
	switch t {
	case TransportRDMA:
		return "rdma"
	case TransportTCP:
		return "tcp"
	}
	return fmt.Sprintf("transport %d", uint8(t))
}

// String names the kind of subsystem.
func (t SubsystemType) String() string {
	switch t {
	case SubsystemReferral:
		return "referral"
	case SubsystemNVM:
		return "disks"
	case SubsystemDiscovery:
		return "discovery"
	}
	return fmt.Sprintf("subsystem of type %d", uint8(t))
}

// RDMASpecific is the part of a DiscoveryEntry that is about RDMA.
type RDMASpecific struct {
	QPType   uint8 // 1: connected
	Provider uint8 // 1: none in particular
	Manager  uint8 // 1: RDMA CM
	PKey     uint16
}

// A DiscoveryEntry tells of one way to a subsystem.
type DiscoveryEntry struct {
	Transport    Transport
	Family       AddressFamily
	Type         SubsystemType
	Requirements uint8 // TREQ
	PortID       uint16
	ControllerID uint16 // AnyController
	AdminSQSize  uint16 // the most entries
	Flags        uint16
	Service      string // TRSVCID: the port, as text
	SubsystemNQN string
	Address      string // TRADDR: as text
	RDMA         RDMASpecific
}

// Append appends the DiscoveryEntryLen bytes. Text is cut to what there is room for.
func (e DiscoveryEntry) Append(b []byte) []byte {
	b, p := extend(b, DiscoveryEntryLen)
	p[0], p[1], p[2], p[3] = byte(e.Transport), byte(e.Family), byte(e.Type), e.Requirements
	for i, v := range []uint16{e.PortID, e.ControllerID, e.AdminSQSize, e.Flags} {
		binary.LittleEndian.PutUint16(p[4+2*i:], v)
	}
	putText(p[entryService:][:entryServiceN], e.Service, ' ')
	putText(p[entrySubsystem:][:NQNLen-1], e.SubsystemNQN, 0)
	putText(p[entryAddress:][:entryAddressN], e.Address, ' ')
	r := p[entryRDMA:]
	r[0], r[1], r[2] = e.RDMA.QPType, e.RDMA.Provider, e.RDMA.Manager
	binary.LittleEndian.PutUint16(r[8:], e.RDMA.PKey)
	return b
}

// ParseDiscoveryEntry returns the first entry in b. Texts end at a zero byte, and spaces at their end are left out.
// The error is an *Error.
func ParseDiscoveryEntry(b []byte) (e DiscoveryEntry, err error) {
	if err := needs("discovery entry", b, DiscoveryEntryLen); err != nil {
		return e, err
	}
	u16, r := binary.LittleEndian.Uint16, b[entryRDMA:]
	return DiscoveryEntry{
		Transport: Transport(b[0]), Family: AddressFamily(b[1]), Type: SubsystemType(b[2]), Requirements: b[3],
		PortID: u16(b[4:]), ControllerID: u16(b[6:]), AdminSQSize: u16(b[8:]), Flags: u16(b[10:]),
		Service:      textAt(b[entryService:][:entryServiceN]),
		SubsystemNQN: textAt(b[entrySubsystem:][:NQNLen-1]),
		Address:      textAt(b[entryAddress:][:entryAddressN]),
		RDMA:         RDMASpecific{r[0], r[1], r[2], u16(r[8:])},
	}, nil
}
