package capsule

import "encoding/binary"

// Bits of IO.Control.
const (
	// ControlFUA, Force Unit Access, has a Write be durable before it completes.
	ControlFUA = 1 << 14
	// ControlDeallocate lets a Write Zeroes deallocate.
	ControlDeallocate = 1 << 9
)

// IO is a Read, a Write, a Write Zeroes or a Compare. Blocks is 1 to 65536.
type IO struct {
	SGL     SGL
	NSID    uint32
	LBA     uint64 // the first block
	Blocks  uint32
	Control uint16
}

// Command returns the command.
func (i IO) Command(op Opcode) Command {
	c := Command{Opcode: op, Flags: FlagSGL, NSID: i.NSID, SGL: i.SGL}
	c.setPair(0, i.LBA)
	c.CDW[2] = (i.Blocks-1)&0xFFFF | uint32(i.Control)<<16
	return c
}

// IO reads a Read, a Write, a Write Zeroes or a Compare.
func (c *Command) IO() IO {
	return IO{SGL: c.SGL, NSID: c.NSID, LBA: c.pair(0), Blocks: c.CDW[2]&0xFFFF + 1, Control: uint16(c.CDW[2] >> 16)}
}

// Within reports whether blocks from lba on lie within the first size blocks.
func Within(lba uint64, blocks uint32, size uint64) bool {
	return lba <= size && uint64(blocks) <= size-lba
}

const (
	// RangeLen is the length of a Range.
	RangeLen = 16
	// MaxRanges bounds the ranges of a Dataset Management.
	MaxRanges = 256
)

// A DatasetManagement tells of ranges of blocks, which are its data: Ranges of RangeLen bytes each.
type DatasetManagement struct {
	SGL        SGL
	NSID       uint32
	Ranges     int  // 1 to MaxRanges
	Deallocate bool // what is in them is not needed any more
}

// Command returns the command.
func (d DatasetManagement) Command() Command {
	c := Command{Opcode: OpDatasetManagement, Flags: FlagSGL, NSID: d.NSID, SGL: d.SGL}
	c.CDW[0] = uint32(d.Ranges-1) & 0xFF
	if d.Deallocate {
		c.CDW[1] = 1 << 2
	}
	return c
}

// DatasetManagement reads a Dataset Management.
func (c *Command) DatasetManagement() DatasetManagement {
	return DatasetManagement{SGL: c.SGL, NSID: c.NSID, Ranges: int(c.CDW[0]&0xFF) + 1, Deallocate: c.CDW[1]>>2&1 != 0}
}

// A Range is one of the ranges of a Dataset Management.
type Range struct {
	Attributes uint32
	Blocks     uint32
	LBA        uint64
}

// Append appends the RangeLen bytes.
func (r Range) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, r.Attributes)
	b = binary.LittleEndian.AppendUint32(b, r.Blocks)
	return binary.LittleEndian.AppendUint64(b, r.LBA)
}

// ParseRanges returns the first n ranges. The error is an *Error.
func ParseRanges(b []byte, n int) ([]Range, error) {
	if err := needs("ranges", b, n*RangeLen); err != nil {
		return nil, err
	}
	all := make([]Range, n)
	for i := range all {
		r := b[i*RangeLen:]
		all[i] = Range{binary.LittleEndian.Uint32(r), binary.LittleEndian.Uint32(r[4:]),
			binary.LittleEndian.Uint64(r[8:])}
	}
	return all, nil
}
