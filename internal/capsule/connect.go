package capsule

import (
	"bytes"
	"encoding/binary"
)

// AttrNoFlow in Connect.Attr turns off the flow control of the submission queue: SQHead of all completions is
// SQHeadOff.
const AttrNoFlow = 0x04

// AnyController is the ControllerID of a Connect that makes a new controller.
const AnyController = 0xFFFF

// A Connect is the first command on each queue: it makes a controller (QID 0), or adds an I/O queue to one.
type Connect struct {
	SGL       SGL // of the ConnectData
	Format    uint16
	QID       uint16
	SQSize    uint16 // entries, less one
	Attr      uint8
	KeepAlive uint32 // in milliseconds; 0: none
}

// Command returns the command.
func (n Connect) Command() Command {
	c := fabrics(FabricsConnect, n.SGL)
	c.CDW[0] = uint32(n.Format) | uint32(n.QID)<<16
	c.CDW[1] = uint32(n.SQSize) | uint32(n.Attr)<<16
	c.CDW[2] = n.KeepAlive
	return c
}

// Connect reads a Connect.
func (c *Command) Connect() Connect {
	return Connect{
		SGL: c.SGL, Format: uint16(c.CDW[0]), QID: uint16(c.CDW[0] >> 16),
		SQSize: uint16(c.CDW[1]), Attr: uint8(c.CDW[1] >> 16), KeepAlive: c.CDW[2],
	}
}

const (
	// ConnectDataLen is the length of ConnectData.
	ConnectDataLen = 1024
	// NQNLen is how many bytes there are for a name (NQN), and its end.
	NQNLen = 256
	// MaxNQN bounds a name.
	MaxNQN = 223

	connectController = 16
	connectSubsystem  = 256
	connectHost       = 512
)

// ConnectData is what a Connect brings along.
//
//	byte 0          16              256             512          768        1024
//	      +----------+------+--------+---------------+------------+----------+
//	      | host id  |cntlid|reserved| subsystem NQN | host NQN   | reserved |
//	      +----------+------+--------+---------------+------------+----------+
type ConnectData struct {
	HostID       [16]byte
	ControllerID uint16 // AnyController on the Admin Queue
	SubsystemNQN string
	HostNQN      string
}

// Offsets in ConnectData, for ConnectOffset.
const (
	OffsetController = connectController
	OffsetSubsystem  = connectSubsystem
	OffsetHost       = connectHost
)

// Offsets in the command, for ConnectOffset.
const (
	OffsetQID    = 42
	OffsetSQSize = 44
)

// ConnectOffset is the Result of a Connect that failed with InvalidParameter: where the wrong field is, in the data or
// the command.
func ConnectOffset(offset uint16, inData bool) uint64 {
	if inData {
		return uint64(offset) | 1<<16
	}
	return uint64(offset)
}

// ParseConnectData returns the data. Names end at the first zero byte. The error is an *Error: too few bytes, or a
// name without an end.
func ParseConnectData(b []byte) (d ConnectData, err error) {
	if err := needs("Connect data", b, ConnectDataLen); err != nil {
		return d, err
	}
	copy(d.HostID[:], b)
	d.ControllerID = binary.LittleEndian.Uint16(b[connectController:])
	if d.SubsystemNQN, err = nqnAt(b, connectSubsystem); err != nil {
		return d, err
	}
	d.HostNQN, err = nqnAt(b, connectHost)
	return d, err
}

// nqnAt reads a name, which has to have an end.
func nqnAt(b []byte, at int) (string, error) {
	n := bytes.IndexByte(b[at:at+NQNLen], 0)
	if n < 0 {
		return "", &Error{Format: "Connect data", Offset: at, Reason: "a name without an end"}
	}
	return string(b[at : at+n]), nil
}

// Append appends the ConnectDataLen bytes. Names are cut at NQNLen-1 bytes.
func (d ConnectData) Append(b []byte) []byte {
	b, p := extend(b, ConnectDataLen)
	copy(p, d.HostID[:])
	binary.LittleEndian.PutUint16(p[connectController:], d.ControllerID)
	putText(p[connectSubsystem:][:NQNLen-1], d.SubsystemNQN, 0)
	putText(p[connectHost:][:NQNLen-1], d.HostNQN, 0)
	return b
}

// extend returns b with n zero bytes more, and these.
func extend(b []byte, n int) (all, added []byte) {
	all = append(b, make([]byte, n)...)
	return all, all[len(b):]
}

// putText fills p with text, and what it leaves with pad.
func putText(p []byte, text string, pad byte) {
	for i := copy(p, text); i < len(p); i++ {
		p[i] = pad
	}
}

// textAt is the text in p, up to a zero byte, without spaces at its end.
func textAt(p []byte) string {
	if n := bytes.IndexByte(p, 0); n >= 0 {
		p = p[:n]
	}
	return string(bytes.TrimRight(p, " "))
}
