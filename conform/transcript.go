package conform

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/mpa"
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
	ends  bool   // it is our FIN or RST
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

var kindMarks = [...]string{Sent: report.Sent, Received: report.Received, Did: report.Did, Saw: report.Saw, Checked: report.Checked}

// String returns one or more lines: when, which way, what, and the bytes.
func (e Entry) String() string {
	s := e.step()
	return s.String()
}

// step returns an entry as reports have it.
func (e Entry) step() report.Step {
	return report.Step{At: e.At, Mark: kindMarks[e.Kind], Kind: e.arrow(), Text: e.Text, Bytes: e.Bytes}
}

// arrow is what a page draws an entry by; empty if nothing was sent.
func (e Entry) arrow() string {
	switch {
	case e.Kind == Sent, e.Kind == Received:
		return wording.If(mpa.BeginsAsKey(e.Bytes), "startup", "fpdu")
	case e.Kind == Saw, e.ends:
		return "tcp"
	}
	return ""
}
