package mpa

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// StartupFrame is an MPA Request or Reply Frame: RFC 5044, section 7.1.1, with the
// S bit of RFC 6581, section 6. It is a view of the bytes received; a frame that
// came from [ParseStartup] has all its bytes, and no accessor can panic.
//
//	   0                   1                   2                   3
//	   0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	0 |                                                               |
//	  +                                                               +
//	4 |                                                               |
//	  +    Key (16 bytes): "MPA ID Req Frame" or "MPA ID Rep Frame"  +
//	8 |                                                               |
//	  +                                                               +
//	12|                                                               |
//	  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	16|M|C|R|S|  Res  |      Rev      |           PD_Length           |
//	  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	20~              Private Data (PD_Length bytes)                  ~
//	  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type StartupFrame []byte

// Offsets and sizes in a startup frame, in bytes.
const (
	startupFlags       = 16
	startupRev         = 17
	startupPDLength    = 18
	startupPrivateData = 20

	// KeyLen is the size of the key.
	KeyLen = 16
	// StartupHeaderLen is the size of a startup frame without Private Data.
	StartupHeaderLen = 20
	// MaxPrivateData is the most Private Data that a frame may have, the
	// enhanced data of RFC 6581 included.
	MaxPrivateData = 512
)

// The bits of byte 16.
const (
	flagM   = 0x80
	flagC   = 0x40
	flagR   = 0x20
	flagS   = 0x10
	flagRes = 0x0f
)

// ParseStartup returns the startup frame at the beginning of b, which may hold
// more. It checks that the bytes are there and nothing else: key, revision and
// the bound on PD_Length are for the machines to judge. The error is an [*Error]
// with code 4.
func ParseStartup(b []byte) (StartupFrame, error) {
	if len(b) < StartupHeaderLen {
		return nil, shortStartup(len(b), StartupHeaderLen, "startup frame")
	}
	n := StartupHeaderLen + int(StartupFrame(b).PDLength())
	if len(b) < n {
		return nil, shortStartup(len(b), n, "Private Data")
	}
	return StartupFrame(b[:n:n]), nil
}

func shortStartup(have, want int, field string) error {
	return &Error{
		Code:   CodeStartupFrame,
		Offset: uint64(have),
		Field:  field,
		Reason: fmt.Sprintf("%s where there should be %d", wording.Bytes(have), want),
		Hint:   "the frame is cut off, or its PD_Length is wrong",
	}
}

// Key returns the 16 bytes of the key.
func (f StartupFrame) Key() string { return string(f[:KeyLen]) }

// M reports whether the sender requires markers in what it receives.
func (f StartupFrame) M() bool { return f[startupFlags]&flagM != 0 }

// C reports whether the sender wants CRCs.
func (f StartupFrame) C() bool { return f[startupFlags]&flagC != 0 }

// R is the Rejected Connection bit, which has a meaning in a Reply only.
func (f StartupFrame) R() bool { return f[startupFlags]&flagR != 0 }

// S reports whether the Private Data begins with enhanced data (see [Enhanced]),
// provided that the revision is 2 or higher. It is a reserved bit otherwise.
func (f StartupFrame) S() bool { return f[startupFlags]&flagS != 0 }

// Res returns the four reserved bits.
func (f StartupFrame) Res() uint8 { return f[startupFlags] & flagRes }

// Rev returns the revision of MPA.
func (f StartupFrame) Rev() uint8 { return f[startupRev] }

// Dialect returns the dialect that a Request or Reply is of by its Rev and S, and 0
// if it is of none: of revision 3 or higher with S=0. A Reply of revision 1 with S=1
// is of [DialectRtr] only if its Request was; S is a reserved bit in it otherwise.
func (f StartupFrame) Dialect() Dialect { return recognize(f.Rev(), f.S(), Dialect.known) }

// PDLength returns the number of bytes of Private Data, 0 to 65535 on the wire.
func (f StartupFrame) PDLength() uint16 { return binary.BigEndian.Uint16(f[startupPDLength:]) }

// PrivateData returns all the Private Data, the enhanced data included.
func (f StartupFrame) PrivateData() []byte { return f[startupPrivateData:] }

// Enhanced returns the enhanced data at the head of the Private Data, if S is set,
// the revision is 2 or higher and there is room for it.
func (f StartupFrame) Enhanced() (e Enhanced, ok bool) {
	if !f.S() || f.Rev() < 2 || len(f.PrivateData()) < EnhancedLen {
		return Enhanced{}, false
	}
	e, err := ParseEnhanced(f.PrivateData())
	return e, err == nil
}

// ULPData returns the Private Data that belongs to the ULP: what follows the
// enhanced data if there is such, and all of it otherwise.
func (f StartupFrame) ULPData() []byte {
	if _, ok := f.Enhanced(); ok {
		return f.PrivateData()[EnhancedLen:]
	}
	return f.PrivateData()
}

// Fields returns the fields as [AppendStartup] takes them.
func (f StartupFrame) Fields() StartupFields {
	return StartupFields{
		Key: f.Key(), M: f.M(), C: f.C(), R: f.R(), S: f.S(), Res: f.Res(), Rev: f.Rev(),
		PrivateData: f.PrivateData(),
	}
}

// Flags returns the letters of the flags that are set, of M, C, R and S in this order, for instance "CS".
func (f StartupFrame) Flags() string { return flags("MCRS", f.M(), f.C(), f.R(), f.S()) }

// String returns one line, such as
// "MPA ID Req Frame C S rev 2 pd 36: A ird 32 ord 1 rtr write|read".
func (f StartupFrame) String() string {
	s := appendFlags(strings.Trim(strconv.Quote(f.Key()), `"`), f.Flags())
	if f.Res() != 0 {
		s += fmt.Sprintf(" res 0x%x", f.Res())
	}
	s += fmt.Sprintf(" rev %d pd %d", f.Rev(), f.PDLength())
	if e, ok := f.Enhanced(); ok {
		s += fmt.Sprintf(": %v", e)
	}
	return s
}

// StartupFields is what [AppendStartup] writes: any values, legal or not.
type StartupFields struct {
	Key        string // cut or filled up with zero bytes to 16
	M, C, R, S bool
	Res        uint8 // 4 bits
	Rev        uint8
	// PDLength is the value of the PD_Length field. Zero means the length of
	// PrivateData, as it should be; a negative value means zero.
	PDLength    int
	PrivateData []byte // with the enhanced data at its head, where S is set
}

// AppendStartup appends a startup frame with any field values.
func AppendStartup(dst []byte, f *StartupFields) []byte {
	var key [KeyLen]byte
	copy(key[:], f.Key)
	dst = append(slices.Grow(dst, StartupHeaderLen+len(f.PrivateData)), key[:]...)
	dst = append(dst, f.flags(), f.Rev)
	n := f.PDLength
	if n == 0 {
		n = len(f.PrivateData)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(max(n, 0)))
	return append(dst, f.PrivateData...)
}

func (f *StartupFields) flags() (bits uint8) {
	bits = f.Res & flagRes
	for _, flag := range []struct {
		set bool
		bit uint8
	}{{f.M, flagM}, {f.C, flagC}, {f.R, flagR}, {f.S, flagS}} {
		if flag.set {
			bits |= flag.bit
		}
	}
	return bits
}
