package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
)

// A Step is one of a dialogue.
type Step struct {
	At   time.Duration // since the dialogue began
	Mark string
	// Kind is what a page draws an arrow by: startup, fpdu, or tcp for what the lower layer says. Without one there is none.
	Kind  string
	Text  string
	Bytes []byte // that were sent or received
}

// The marks of steps.
const (
	Sent     = "->"
	Received = "<-"
	Did      = "--" // something else that we did
	Saw      = ".." // something else that the peer did
	Checked  = "ok"
)

// maxShown bounds the bytes of a step that are printed as text.
const maxShown = 96

// String returns one or more lines: when, which way, what, and the bytes.
func (s *Step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.3f ms %s %s", Milliseconds(s.At), s.Mark, s.Text)
	for _, line := range wording.Hex(s.Bytes, maxShown) {
		fmt.Fprintf(&b, "\n%15s%s", "", line)
	}
	if more := len(s.Bytes) - maxShown; more > 0 {
		fmt.Fprintf(&b, "\n%15s... and %d more", "", more)
	}
	return b.String()
}
