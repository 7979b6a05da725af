package conform

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/wording"
)

// Kind is what an Entry of a dialogue is about.
type Kind uint8

// The kinds of entries.
const (
	Sent     Kind = iota + 1 // bytes that we sent
	Received                 // bytes that the peer sent
	Did                      // something else that we did, such as closing
	Saw                      // something else that the peer did
	Checked                  // what was checked and right
)

var kindNames = [...]string{"", "sent", "received", "did", "saw", "checked"}

// String returns "sent", "received", "did", "saw" or "checked".
func (k Kind) String() string { return wording.Name(k, "kind", kindNames[:]) }

// MarshalText returns what String does.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Bytes are printed in hexadecimal digits.
type Bytes []byte

// MarshalText returns hexadecimal digits without blanks.
func (o Bytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(o)), nil }

// An Entry is one step of a dialogue.
type Entry struct {
	At    time.Duration // since the case began
	Kind  Kind
	Text  string // what it is, with the fields of what was sent or received
	Bytes Bytes  // of Sent and Received
}

// entryJSON is the form of an Entry in JSON.
type entryJSON struct {
	At    float64 `json:"at_ms"`
	Kind  Kind    `json:"kind"`
	Text  string  `json:"text"`
	Bytes Bytes   `json:"bytes,omitempty"`
}

// MarshalJSON returns at_ms, kind, text and bytes.
func (e Entry) MarshalJSON() ([]byte, error) {
	return json.Marshal(entryJSON{report.Milliseconds(e.At), e.Kind, e.Text, e.Bytes})
}

var kindMarks = [...]string{Sent: "->", Received: "<-", Did: "--", Saw: "..", Checked: "ok"}

// maxShown bounds the bytes of an entry that are printed as text.
const maxShown = 96

// String returns one or more lines: when, which way, what, and the bytes.
func (e Entry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.3f ms %s %s", report.Milliseconds(e.At), kindMarks[e.Kind], e.Text)
	for _, line := range wording.Hex(e.Bytes, maxShown) {
		fmt.Fprintf(&b, "\n%15s%s", "", line)
	}
	if more := len(e.Bytes) - maxShown; more > 0 {
		fmt.Fprintf(&b, "\n%15s... and %d more", "", more)
	}
	return b.String()
}
