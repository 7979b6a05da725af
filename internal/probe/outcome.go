package probe

import (
	"fmt"

	"github.com/goiwarp/iwarp/internal/script"
)

// Outcome is how a peer answers a question, or what comes of the connection then.
type Outcome uint8

// The outcomes.
const (
	None       Outcome = iota // of what was not asked
	Accepted                  // a Reply with R=0, or a Start Key
	Rejected                  // a Reply with R=1
	Closed                    // FIN, without a word
	Reset                     // RST, without a word
	Silent                    // nothing within the time
	Foreign                   // bytes that are no answer
	Incomplete                // the beginning of a Reply or a Start Key, and no more within the time

	// Of a connection that is left alone.
	Open      // the peer keeps it open
	SentFirst // the peer goes on unasked
	Answered  // the peer answers an FPDU that was sent too early

	// Of a first FPDU.
	Response      // an RDMA Read Response
	Terminated    // a Terminate
	OtherMessage  // another message
	BrokenFPDU    // bytes that are no FPDU
	BrokenSegment // an FPDU without a DDP segment
	NoMarker      // an FPDU without the marker that was asked for

	// Of an association.
	Aborted // ABORT
)

var outcomeNames = [...]string{
	"", "accepted", "rejected", "closed", "reset", "silent", "foreign", "incomplete", "open",
	"the peer sent first", "answered",
	"response", "terminate", "another message", "broken FPDU", "broken DDP segment",
	"no marker where one was asked for",
	"aborted",
}

// String returns the words for it, or "" for None.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}

// MarshalText returns what String does.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Refused reports whether the peer ended the connection without a word.
func (o Outcome) Refused() bool { return o == Closed || o == Reset }

// ending is the outcome of a connection on which nothing has come: open is that of one
// that has not ended.
func ending(end script.End, open Outcome) Outcome {
	switch end {
	case script.FIN:
		return Closed
	case script.RST:
		return Reset
	}
	return open
}
