package capsule

import "fmt"

// An Opcode says what a command does. Admin Queues and others have different ones, except for OpFabrics.
type Opcode uint8

// OpFabrics is that of all fabrics commands, on all queues: see FabricsType.
const OpFabrics Opcode = 0x7F

// Admin commands.
const (
	OpGetLogPage  Opcode = 0x02
	OpIdentify    Opcode = 0x06
	OpAbort       Opcode = 0x08
	OpSetFeatures Opcode = 0x09
	OpGetFeatures Opcode = 0x0A
	OpAsyncEvent  Opcode = 0x0C
	OpKeepAlive   Opcode = 0x18
)

// Commands of the NVM command set.
const (
	OpFlush               Opcode = 0x00
	OpWrite               Opcode = 0x01
	OpRead                Opcode = 0x02
	OpWriteUncorrectable  Opcode = 0x04
	OpCompare             Opcode = 0x05
	OpWriteZeroes         Opcode = 0x08
	OpDatasetManagement   Opcode = 0x09
	OpVerify              Opcode = 0x0C
	OpReservationRegister Opcode = 0x0D
	OpReservationReport   Opcode = 0x0E
	OpReservationAcquire  Opcode = 0x11
	OpReservationRelease  Opcode = 0x15
)

var adminNames = map[Opcode]string{
	OpGetLogPage: "Get Log Page", OpIdentify: "Identify", OpAbort: "Abort", OpSetFeatures: "Set Features",
	OpGetFeatures: "Get Features", OpAsyncEvent: "Asynchronous Event Request", OpKeepAlive: "Keep Alive",
}

var ioNames = map[Opcode]string{
	OpFlush: "Flush", OpWrite: "Write", OpRead: "Read",
	OpWriteUncorrectable: "Write Uncorrectable", OpCompare: "Compare",
	OpWriteZeroes: "Write Zeroes", OpDatasetManagement: "Dataset Management", OpVerify: "Verify",
	OpReservationRegister: "Reservation Register", OpReservationReport: "Reservation Report",
	OpReservationAcquire: "Reservation Acquire", OpReservationRelease: "Reservation Release",
}

// Name names the opcode on an Admin Queue or another.
func (o Opcode) Name(admin bool) string {
	names := ioNames
	if admin {
		names = adminNames
	}
	if name, ok := names[o]; ok {
		return name
	}
	return fmt.Sprintf("opcode %#02x", uint8(o))
}

// A FabricsType says what a fabrics command does.
type FabricsType uint8

// The fabrics commands.
const (
	FabricsPropertySet FabricsType = 0x00
	FabricsConnect     FabricsType = 0x01
	FabricsPropertyGet FabricsType = 0x04
	FabricsAuthSend    FabricsType = 0x05
	FabricsAuthReceive FabricsType = 0x06
	FabricsDisconnect  FabricsType = 0x08
)

// String names the type.
func (t FabricsType) String() string {
	switch t {
	case FabricsPropertySet:
		return "Property Set"
	case FabricsConnect:
		return "Connect"
	case FabricsPropertyGet:
		return "Property Get"
	case FabricsAuthSend:
		return "Authentication Send"
	case FabricsAuthReceive:
		return "Authentication Receive"
	case FabricsDisconnect:
		return "Disconnect"
	}
	return fmt.Sprintf("fabrics command %#02x", uint8(t))
}

// FabricsType is the type of a fabrics command.
func (c *Command) FabricsType() FabricsType { return FabricsType(c.NSID) }

// fabrics is a fabrics command with an SGL descriptor.
func fabrics(t FabricsType, s SGL) Command {
	return Command{Opcode: OpFabrics, Flags: FlagSGL, NSID: uint32(t), SGL: s}
}
