package message

import (
	"fmt"
)

// Magic is what the private data of a request for a transfer begins with, and Version is the byte after it.
const (
	Magic   = "iWcp"
	Version = 1
)

// Bounds, in bytes.
const (
	MaxLen   = 4096    // of a message
	MaxText  = 1024    // of a text
	MaxPath  = MaxText // of a Path, and of what a symbolic link stands for
	MaxBlock = 1 << 20 // of a Grant
	MaxSize  = 1<<63 - 1 - MaxBlock
)

// A Digest is SHA-256: of a block, or in Done of the digests of all blocks one after the other.
type Digest = [32]byte

// A Type says which message it is.
type Type uint8

// The types.
const (
	TypeBegin Type = iota + 1
	TypeOffer
	TypeAnswer
	TypeGrant
	TypeWrote
	TypeDone
	TypeEnd
	TypeWorking
)

// String names the type.
func (t Type) String() string {
	if int(t) < len(formats) && t != 0 {
		return formats[t].name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// A Message is one of the types here.
type Message interface {
	Type() Type
	// Append appends the message as it is sent, whatever its values are.
	Append([]byte) []byte
}

// Begin is the client's first message: what it wants. The server answers.
type Begin struct {
	Put       bool // the client sends, and Path is where to; otherwise Path is what the server is to send
	Force     bool // the receiver may replace files
	Resume    bool // the receiver goes on with what a cut transfer has left
	Recursive bool // directories, too
	Into      bool // with Put: Path is to be a directory
	Rate      uint64
	Path      string // relative to the server's directory, which is ""
}

// A Kind is what is offered.
type Kind uint16

// The kinds.
const (
	File      Kind = iota + 1
	Directory      // what follows may be in it
	Leave          // a directory is complete: its mode and time
	Link           // a symbolic link
	Missed         // something that is not sent
)

// Offer is the sender's word of something that it has. The receiver answers.
type Offer struct {
	Kind        Kind
	Mode        uint32 // permissions, 0 to 0777
	Seconds     int64  // since 1970: when it was changed last
	Nanoseconds uint32
	Size        uint64 // of a File: bytes
	Path        string // begins with the name of what was asked for
	Detail      string // of a Link, what it stands for; of something Missed, why
}

// Answer says what has become of a Begin, an Offer, a Done or an End; or, amid the blocks of a file, that the receiver
// gives it up.
type Answer struct {
	Code Code
	Text string // says more
}

// Grant has the sender write a block of the file to the receiver's memory, or compare it. Blocks follow each other from
// offset 0 on.
type Grant struct {
	Place  bool // there is memory
	Have   bool // the receiver has bytes with this Digest: if they are the same, nothing needs to be written
	Offset uint64
	Length uint32 // bytes, 1 to MaxBlock
	STag   uint32
	TO     uint64
	Digest Digest
}

// A State is what has become of a Grant.
type State uint16

// The states.
const (
	Written State = iota + 1 // the block is in the receiver's memory
	Same                     // the receiver has it already
	Differs                  // the receiver has something else, and gave no memory
	Lost                     // it cannot be read; Text says why
)

// Wrote answers a Grant, in the order of the Grants.
type Wrote struct {
	State  State
	Offset uint64
	Length uint32
	Digest Digest // of the block
	Text   string
}

// Done follows the last block of a file. The receiver answers when the file is complete, has its name, and is on disk.
type Done struct {
	Changed bool // while it was sent
	Digest  Digest
}

// End follows the last Offer. The receiver answers.
type End struct{}

// Working says that the receiver has not finished yet.
type Working struct{}

// Type is TypeBegin.
func (Begin) Type() Type { return TypeBegin }

// Type is TypeOffer.
func (Offer) Type() Type { return TypeOffer }

// Type is TypeAnswer.
func (Answer) Type() Type { return TypeAnswer }

// Type is TypeGrant.
func (Grant) Type() Type { return TypeGrant }

// Type is TypeWrote.
func (Wrote) Type() Type { return TypeWrote }

// Type is TypeDone.
func (Done) Type() Type { return TypeDone }

// Type is TypeEnd.
func (End) Type() Type { return TypeEnd }

// Type is TypeWorking.
func (Working) Type() Type { return TypeWorking }
