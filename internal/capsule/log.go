package capsule

import "encoding/binary"

// A LogPage is what a Get Log Page reads.
type LogPage uint8

// The log pages.
const (
	LogError      LogPage = 0x01 // entries of 64 bytes
	LogHealth     LogPage = 0x02 // 512 bytes
	LogFirmware   LogPage = 0x03 // 512 bytes
	LogNamespaces LogPage = 0x04 // those that have changed: AppendList
	LogEffects    LogPage = 0x05 // Effects
	LogDiscovery  LogPage = 0x70 // Discovery
)

// A GetLogPage reads a part of a log page.
type GetLogPage struct {
	SGL    SGL
	NSID   uint32
	Page   LogPage
	Retain bool   // RAE: the event that told of the page stays
	Dwords uint32 // how many, 1 at least
	Offset uint64 // in bytes, a multiple of 4
}

// Command returns the command.
func (g GetLogPage) Command() Command {
	c := Command{Opcode: OpGetLogPage, Flags: FlagSGL, NSID: g.NSID, SGL: g.SGL}
	n := g.Dwords - 1
	c.CDW[0] = uint32(g.Page) | n<<16
	if g.Retain {
		c.CDW[0] |= 1 << 15
	}
	c.CDW[1] = n >> 16
	c.setPair(2, g.Offset)
	return c
}

// GetLogPage reads a Get Log Page. Dwords is 0 where there are 2^32.
func (c *Command) GetLogPage() GetLogPage {
	return GetLogPage{
		SGL: c.SGL, NSID: c.NSID, Page: LogPage(c.CDW[0]), Retain: c.CDW[0]>>15&1 != 0,
		Dwords: (c.CDW[0]>>16 | c.CDW[1]<<16) + 1, Offset: c.pair(2),
	}
}

// EffectSupported, of an opcode in Effects: the controller has the command. EffectContent: it changes what is in a
// namespace.
const (
	EffectSupported = 1 << 0
	EffectContent   = 1 << 1
)

// EffectsLen is the length of the log page LogEffects.
const EffectsLen = 4096

// Effects is the log page LogEffects: the commands that the controller has, by their opcodes.
type Effects struct{ Admin, IO [256]uint32 }

// Append appends the EffectsLen bytes.
func (e *Effects) Append(b []byte) []byte {
	b, p := extend(b, EffectsLen)
	for i := range e.Admin {
		binary.LittleEndian.PutUint32(p[4*i:], e.Admin[i])
		binary.LittleEndian.PutUint32(p[4*(256+i):], e.IO[i])
	}
	return b
}
