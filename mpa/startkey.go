package mpa

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// StartKey is the frame of the Start Key startup, the same in both directions:
// draft-culley-iwarp-mpa-03, section 8.1.1. It is a view of the bytes received; one
// that came from [ParseStartKey] has all its bytes.
//
//	   0                   1                   2                   3
//	   0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	0 |                                                               |
//	  +             Key (15 bytes): "MPA ident frame"                +
//	4 |                                                               |
//	  +                                                               +
//	8 |                                                               |
//	  +                                               +-+-+-+-+-+-+-+-+
//	12|                                               |M|C|Res|  Rev  |
//	  +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type StartKey []byte

const (
	// StartKeyLen is the size of a Start Key, in bytes.
	StartKeyLen = 16

	startKeyBits = 15
	startKeyRes  = 0x30
	startKeyRev  = 0x0f
)

// ParseStartKey returns the Start Key at the beginning of b, which may hold more.
// It checks that the bytes are there and nothing else. The error is an [*Error]
// with code 4.
func ParseStartKey(b []byte) (StartKey, error) {
	if len(b) < StartKeyLen {
		return nil, shortStartup(len(b), StartKeyLen, "Start Key")
	}
	return StartKey(b[:StartKeyLen:StartKeyLen]), nil
}

// Key returns the 15 bytes of the key.
func (k StartKey) Key() string { return string(k[:startKeyBits]) }

// M reports whether the sender requires markers in what it receives.
func (k StartKey) M() bool { return k[startKeyBits]&flagM != 0 }

// C reports whether the sender wants CRCs.
func (k StartKey) C() bool { return k[startKeyBits]&flagC != 0 }

// Res returns the two reserved bits.
func (k StartKey) Res() uint8 { return k[startKeyBits] & startKeyRes >> 4 }

// Rev returns the revision of MPA, of 4 bits: 0.
func (k StartKey) Rev() uint8 { return k[startKeyBits] & startKeyRev }

// Flags returns the letters of the flags that are set, of M and C in this order.
func (k StartKey) Flags() string { return flags("MC", k.M(), k.C()) }

// String returns one line, such as "MPA ident frame M C rev 0".
func (k StartKey) String() string {
	s := appendFlags(strings.Trim(strconv.Quote(k.Key()), `"`), k.Flags())
	if k.Res() != 0 {
		s += fmt.Sprintf(" res 0x%x", k.Res())
	}
	return s + fmt.Sprintf(" rev %d", k.Rev())
}

// StartKeyFields is what [AppendStartKey] writes: any values, legal or not.
type StartKeyFields struct {
	Key  string // cut or filled up with zero bytes to 15; KeyStart if empty
	M, C bool
	Res  uint8 // 2 bits
	Rev  uint8 // 4 bits
}

// AppendStartKey appends a Start Key with any field values.
func AppendStartKey(dst []byte, f *StartKeyFields) []byte {
	var key [startKeyBits]byte
	copy(key[:], KeyStart)
	if f.Key != "" {
		clear(key[:])
		copy(key[:], f.Key)
	}
	bits := f.Res<<4&startKeyRes | f.Rev&startKeyRev
	if f.M {
		bits |= flagM
	}
	if f.C {
		bits |= flagC
	}
	return append(append(dst, key[:]...), bits)
}

// PrivateDataMessage is a streaming-mode message with the ULP's private data, by
// which an Initiator may ask for a connection before the Start Keys, and a
// Responder may answer: draft-culley-iwarp-mpa-03, section 13.3.2.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|      Private Data Length      |                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+                               +
//	~                         Private Data                          ~
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type PrivateDataMessage []byte

// messageLenLen is the size of the length in front of the data, in bytes.
const messageLenLen = 2

// ParsePrivateDataMessage returns the message at the beginning of b, which may hold
// more. The error is an [*Error] with code 4 and says that b is too short.
func ParsePrivateDataMessage(b []byte) (PrivateDataMessage, error) {
	if len(b) < messageLenLen {
		return nil, shortStartup(len(b), messageLenLen, "Private Data Length")
	}
	n := messageLenLen + int(binary.BigEndian.Uint16(b))
	if len(b) < n {
		return nil, shortStartup(len(b), n, "Private Data")
	}
	return PrivateDataMessage(b[:n:n]), nil
}

// PrivateData returns the data after the length.
func (m PrivateDataMessage) PrivateData() []byte { return m[messageLenLen:] }

// AppendPrivateDataMessage appends a message with the given value of the length field.
// If length is negative, the field holds the length of the data.
func AppendPrivateDataMessage(dst, data []byte, length int) []byte {
	if length < 0 {
		length = len(data)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(length))
	return append(dst, data...)
}

// A Keyed is what begins with one of MPA's keys: a [StartupFrame] or a [StartKey].
type Keyed interface {
	Key() string
	String() string
}

// CutStartup returns the startup frame or Start Key that b begins with, and what follows it. It
// goes by the beginning that all keys of its kind have in common, so that a frame with an
// unknown key counts too. It reports whether a whole one is there.
func CutStartup(b []byte) (found Keyed, rest []byte, ok bool) {
	if k, err := ParseStartKey(b); err == nil && isStartKey(string(k)) {
		return k, b[len(k):], true
	}
	if f, err := ParseStartup(b); err == nil && strings.HasPrefix(f.Key(), frameWord) {
		return f, b[len(f):], true
	}
	return nil, b, false
}

// DescribeStartup returns one line on what an endpoint sends or receives in a
// startup: a Request, Reply or Rtr frame, a Start Key, or a private data message.
func DescribeStartup(b []byte) string {
	if found, rest, ok := CutStartup(b); ok && len(rest) == 0 {
		return found.String()
	}
	if m, err := ParsePrivateDataMessage(b); err == nil && len(m) == len(b) {
		return fmt.Sprintf("private data message pd %d", len(m.PrivateData()))
	}
	if len(b) == 1 {
		return "1 byte that is no startup frame"
	}
	return wording.Bytes(len(b)) + " that are no startup frame"
}
