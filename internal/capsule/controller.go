package capsule

import (
	"encoding/binary"
	"time"
)

// Numbers that both ends go by.
const (
	Port         = 4420                   // of targets and discovery controllers, if nothing else is said
	AdminEntries = 32                     // of an Admin Queue: the fewest that a controller may take
	MaxDataUnit  = 4 << 10                // bytes, of MaxData, with the smallest pages
	CapsuleUnit  = 16                     // bytes, of CommandLen, ResponseLen and DataOffset
	TimeoutUnit  = 500 * time.Millisecond // of Capabilities
)

// Bits of the fields of an IdentifyController.
const (
	MultipleControllers = 1 << 1 // Sharing: the subsystem may have several controllers
	KeepAliveByTraffic  = 1 << 6 // Attributes: commands count as keep-alives
	ControllerIO        = 1      // Type
	ControllerDiscovery = 2      // Type
	LogEffectsPage      = 1 << 1 // LogAttributes: there is LogEffects
	LogExtended         = 1 << 2 // LogAttributes: offsets, and more than 4 KiB
	HasDatasets         = 1 << 2 // Optional: Dataset Management
	HasWriteZeroes      = 1 << 3 // Optional: Write Zeroes
	HasReservations     = 1 << 5 // Optional: reservations
	CachePresent        = 1 << 0 // WriteCache
	SGLSupported        = 1 << 0 // SGLs
	SGLKeyedSupported   = 1 << 2 // SGLs
	SGLOffsetSupported  = 1 << 20
	QueueEntries        = 0x4466 // CQES, SQES: 16 and 64 bytes
	KeepAliveUnit       = 100    // milliseconds
)

// IdentifyController is a page of PageLen bytes about the controller (StructController).
type IdentifyController struct {
	Serial, Model, Firmware string // 20, 40 and 8 bytes
	Sharing                 uint8  // CMIC
	MaxData                 uint8  // MDTS: 2^n MaxDataUnit; 0: no bound
	ControllerID            uint16
	Version                 uint32
	Events                  uint32 // OAES
	Attributes              uint32 // CTRATT
	Type                    uint8  // CNTRLTYPE
	AbortLimit              uint8  // ACL: less one
	EventLimit              uint8  // AERL: less one
	LogAttributes           uint8  // LPA
	KeepAlive               uint16 // KAS: granularity, in units of 100 ms
	QueueEntries            uint16 // SQES, CQES
	MaxCommands             uint16 // MAXCMD, of a queue
	Namespaces              uint32 // NN: the highest NSID
	Optional                uint16 // ONCS
	WriteCache              uint8  // VWC
	SGLs                    uint32
	MaxNamespaces           uint32 // MNAN
	SubsystemNQN            string
	CommandLen              uint32 // IOCCSZ: of the capsule of a command on an I/O queue, in CapsuleUnit
	ResponseLen             uint32 // IORCSZ: of that of a completion
	DataOffset              uint16 // ICDOFF: of in-capsule data, after the command, in CapsuleUnit
	Static                  uint8  // bit 0 of FCATT: the controllers are not made by Connect
	MaxDescriptors          uint8  // MSDBD
}

// Where the fields are.
const (
	ctrlSerial, ctrlModel, ctrlFirmware                                = 4, 24, 64
	ctrlSharing, ctrlMaxData, ctrlID, ctrlVersion                      = 76, 77, 78, 80
	ctrlEvents, ctrlAttributes, ctrlType                               = 92, 96, 111
	ctrlAbort, ctrlEventLimit, ctrlLog, ctrlKeepAlive                  = 258, 259, 261, 320
	ctrlEntries, ctrlCommands, ctrlNamespaces, ctrlOptional, ctrlCache = 512, 514, 516, 520, 525
	ctrlSGLs, ctrlMaxNamespaces, ctrlNQN                               = 536, 540, 768
	ctrlCommandLen, ctrlResponseLen, ctrlOffset, ctrlStatic, ctrlDescs = 1792, 1796, 1800, 1802, 1803
)

// Append appends the PageLen bytes. Texts are cut to what there is room for.
func (i *IdentifyController) Append(b []byte) []byte {
	b, p := extend(b, PageLen)
	putText(p[ctrlSerial:ctrlModel], i.Serial, ' ')
	putText(p[ctrlModel:ctrlFirmware], i.Model, ' ')
	putText(p[ctrlFirmware:][:8], i.Firmware, ' ')
	putText(p[ctrlNQN:][:NQNLen-1], i.SubsystemNQN, 0)
	for at, v := range map[int]uint8{
		ctrlSharing: i.Sharing, ctrlMaxData: i.MaxData, ctrlType: i.Type, ctrlAbort: i.AbortLimit,
		ctrlEventLimit: i.EventLimit,
		ctrlLog:        i.LogAttributes, ctrlCache: i.WriteCache, ctrlStatic: i.Static, ctrlDescs: i.MaxDescriptors,
	} {
		p[at] = v
	}
	for at, v := range map[int]uint16{
		ctrlID: i.ControllerID, ctrlKeepAlive: i.KeepAlive, ctrlEntries: i.QueueEntries, ctrlCommands: i.MaxCommands,
		ctrlOptional: i.Optional, ctrlOffset: i.DataOffset,
	} {
		binary.LittleEndian.PutUint16(p[at:], v)
	}
	for at, v := range map[int]uint32{
		ctrlVersion: i.Version, ctrlEvents: i.Events, ctrlAttributes: i.Attributes,
		ctrlNamespaces: i.Namespaces, ctrlSGLs: i.SGLs,
		ctrlMaxNamespaces: i.MaxNamespaces, ctrlCommandLen: i.CommandLen, ctrlResponseLen: i.ResponseLen,
	} {
		binary.LittleEndian.PutUint32(p[at:], v)
	}
	return b
}

// ParseIdentifyController returns the page. Texts end at a zero byte, and spaces at their end are left out. The error
// is an *Error.
func ParseIdentifyController(b []byte) (i IdentifyController, err error) {
	if err := needs("Identify controller", b, PageLen); err != nil {
		return i, err
	}
	u16 := func(at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	return IdentifyController{
		Serial: textAt(b[ctrlSerial:ctrlModel]), Model: textAt(b[ctrlModel:ctrlFirmware]),
		Firmware: textAt(b[ctrlFirmware:][:8]),
		Sharing:  b[ctrlSharing], MaxData: b[ctrlMaxData], ControllerID: u16(ctrlID), Version: u32(ctrlVersion),
		Events: u32(ctrlEvents), Attributes: u32(ctrlAttributes), Type: b[ctrlType], AbortLimit: b[ctrlAbort],
		EventLimit: b[ctrlEventLimit], LogAttributes: b[ctrlLog], KeepAlive: u16(ctrlKeepAlive),
		QueueEntries: u16(ctrlEntries),
		MaxCommands:  u16(ctrlCommands), Namespaces: u32(ctrlNamespaces), Optional: u16(ctrlOptional),
		WriteCache: b[ctrlCache],
		SGLs:       u32(ctrlSGLs), MaxNamespaces: u32(ctrlMaxNamespaces), SubsystemNQN: textAt(b[ctrlNQN:][:NQNLen-1]),
		CommandLen: u32(ctrlCommandLen), ResponseLen: u32(ctrlResponseLen), DataOffset: u16(ctrlOffset),
		Static: b[ctrlStatic], MaxDescriptors: b[ctrlDescs],
	}, nil
}
