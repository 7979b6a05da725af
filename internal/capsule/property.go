package capsule

// A Property is a register of the controller, by its offset.
type Property uint32

// The properties that there are over a fabric.
const (
	PropertyCAP  Property = 0x00 // capabilities, 8 bytes: Capabilities
	PropertyVS   Property = 0x08 // version: Version20
	PropertyCC   Property = 0x14 // configuration: Configuration
	PropertyCSTS Property = 0x1C // status: ControllerStatus
)

// Long reports whether a property has 8 bytes, and not 4.
func (p Property) Long() bool { return p == PropertyCAP }

// Versions, of the property VS and of IdentifyController.Version: major<<16 | minor<<8.
const (
	Version13 = 0x1_03_00
	Version14 = 0x1_04_00
	Version20 = 0x2_00_00
)

// A PropertyAccess is a Property Get or a Property Set. The value that Get returns is in Completion.Result.
type PropertyAccess struct {
	Property Property
	Long     bool   // 8 bytes, and not 4
	Value    uint64 // of a Property Set
}

// Get returns a Property Get.
func (a PropertyAccess) Get() Command {
	c := fabrics(FabricsPropertyGet, SGL{Type: SGLKeyed})
	c.CDW[0], c.CDW[1] = a.size(), uint32(a.Property)
	return c
}

// Set returns a Property Set.
func (a PropertyAccess) Set() Command {
	c := a.Get()
	c.NSID = uint32(FabricsPropertySet)
	c.setPair(2, a.Value)
	return c
}

func (a PropertyAccess) size() uint32 {
	if a.Long {
		return 1
	}
	return 0
}

// Property reads a Property Get or Set. ok is false for a size that is neither 4 nor 8 bytes.
func (c *Command) Property() (a PropertyAccess, ok bool) {
	size := c.CDW[0] & 7
	return PropertyAccess{Property: Property(c.CDW[1]), Long: size == 1, Value: c.pair(2)}, size <= 1
}

// Capabilities are the property CAP.
type Capabilities uint64

// NewCapabilities returns those of a controller with the NVM command set, queues of so many entries, and a time to get
// ready in TimeoutUnit.
func NewCapabilities(entries uint16, timeout uint8) Capabilities {
	const contiguous, nvm = 1 << 16, 1 << 37
	return Capabilities(uint64(entries-1) | contiguous | uint64(timeout)<<24 | nvm)
}

// Entries is how many entries a queue may have (MQES, which is one less).
func (c Capabilities) Entries() int { return int(c&0xFFFF) + 1 }

// Timeout is how long the controller may take to get ready, in units of 500 ms (TO).
func (c Capabilities) Timeout() uint8 { return uint8(c >> 24) }

// Configuration is the property CC.
type Configuration uint32

// ConfigurationEnabled is that of a host that works with entries of 64 and 16 bytes: EN, IOSQES 6 and IOCQES 4.
const ConfigurationEnabled Configuration = 0x460001

// Shutdowns, for Configuration.WithShutdown.
const (
	ShutdownNormal = 1
	ShutdownAbrupt = 2
)

// Enabled is EN.
func (c Configuration) Enabled() bool { return c&1 != 0 }

// Shutdown is SHN: 0, ShutdownNormal or ShutdownAbrupt.
func (c Configuration) Shutdown() int { return int(c >> 14 & 3) }

// WithShutdown returns the configuration with SHN.
func (c Configuration) WithShutdown(n int) Configuration {
	return c&^(3<<14) | Configuration(n&3)<<14
}

// ControllerStatus is the property CSTS.
type ControllerStatus uint32

// The parts of a ControllerStatus.
const (
	StatusReady        ControllerStatus = 1 << 0 // RDY
	StatusFatal        ControllerStatus = 1 << 1 // CFS
	StatusShutdownDone ControllerStatus = 2 << 2 // SHST: shutdown processing complete
)

// Has reports whether all of s are set.
func (c ControllerStatus) Has(s ControllerStatus) bool { return c&s == s }
