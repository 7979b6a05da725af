package capsule

// A Structure says what an Identify is to return (CNS).
type Structure uint8

// The structures.
const (
	StructNamespace       Structure = 0x00 // IdentifyNamespace
	StructController      Structure = 0x01 // IdentifyController
	StructNamespaces      Structure = 0x02 // a namespace list: AppendList
	StructDescriptors     Structure = 0x03 // AppendDescriptors
	StructCommandSetSpace Structure = 0x05 // of the namespace
	StructCommandSet      Structure = 0x06 // of the controller
)

// PageLen is the length of what an Identify returns, whatever it is.
const PageLen = 4096

// AllNamespaces is an NSID that stands for all.
const AllNamespaces = 0xFFFFFFFF

// An Identify asks for a page of PageLen bytes.
type Identify struct {
	SGL          SGL
	NSID         uint32
	Structure    Structure
	ControllerID uint16
	CommandSet   uint8 // CSI; 0: NVM
}

// Command returns the command.
func (i Identify) Command() Command {
	c := Command{Opcode: OpIdentify, Flags: FlagSGL, NSID: i.NSID, SGL: i.SGL}
	c.CDW[0] = uint32(i.Structure) | uint32(i.ControllerID)<<16
	c.CDW[1] = uint32(i.CommandSet) << 24
	return c
}

// Identify reads an Identify.
func (c *Command) Identify() Identify {
	return Identify{
		SGL: c.SGL, NSID: c.NSID, Structure: Structure(c.CDW[0]),
		ControllerID: uint16(c.CDW[0] >> 16), CommandSet: uint8(c.CDW[1] >> 24),
	}
}

// A Feature is what Get Features and Set Features are about.
type Feature uint8

// The features.
const (
	FeatureWriteCache Feature = 0x06 // bit 0: there is one, and it is on
	FeatureQueues     Feature = 0x07 // Queues
	FeatureAsyncEvent Feature = 0x0B // which events are wanted
	FeatureKeepAlive  Feature = 0x0F // in milliseconds
	FeatureHostID     Feature = 0x81 // 16 bytes of data
)

// Features is a Get Features or a Set Features.
type Features struct {
	SGL     SGL
	NSID    uint32
	Feature Feature
	Select  uint8 // of Get: 0 is the present value, 3 what can be done with it
	Save    bool  // of Set
	Value   uint32
}

// Get returns a Get Features.
func (f Features) Get() Command {
	c := f.Set()
	c.Opcode = OpGetFeatures
	return c
}

// Set returns a Set Features.
func (f Features) Set() Command {
	c := Command{Opcode: OpSetFeatures, Flags: FlagSGL, NSID: f.NSID, SGL: f.SGL}
	c.CDW[0] = uint32(f.Feature) | uint32(f.Select&7)<<8
	if f.Save {
		c.CDW[0] |= 1 << 31
	}
	c.CDW[1] = f.Value
	return c
}

// Features reads a Get Features or a Set Features.
func (c *Command) Features() Features {
	return Features{
		SGL: c.SGL, NSID: c.NSID, Feature: Feature(c.CDW[0]), Select: uint8(c.CDW[0] >> 8 & 7),
		Save: c.CDW[0]>>31 != 0, Value: c.CDW[1],
	}
}

// Queues is the value of FeatureQueues, asked for and granted: how many I/O submission and completion queues, each less
// one.
type Queues uint32

// NewQueues returns that for n queues of each kind, 1 to 65535.
func NewQueues(n int) Queues { return Queues(uint32(n-1)&0xFFFF | uint32(n-1)<<16) }

// Submission is how many submission queues.
func (q Queues) Submission() int { return int(q&0xFFFF) + 1 }

// Completion is how many completion queues.
func (q Queues) Completion() int { return int(q>>16) + 1 }

// AbortNone in the Result of an Abort tells that the command was not aborted.
const AbortNone = 1

// NewCommand returns a command without data, such as a Keep Alive, a Flush or an Asynchronous Event Request.
func NewCommand(op Opcode, nsid uint32) Command {
	return Command{Opcode: op, Flags: FlagSGL, NSID: nsid, SGL: SGL{Type: SGLKeyed}}
}
