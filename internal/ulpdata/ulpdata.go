// Package ulpdata reads and writes what some ULPs are known to put into the private data
// of MPA's startup frames: [SMBDirect], [RPCOverRDMA], [NVMeRequest] and the replies to
// that, and this module's own [QPCall]. [Describe] guesses which of them a piece of private data follows.
package ulpdata

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/internal/wording"
)

// ErrConvention is what the Parse functions wrap when private data does not follow the
// convention.
var ErrConvention = errors.New("ulpdata: private data is not of this convention")

// Recognize returns the ULP's private data in the form of that convention of this package which it seems to
// follow: an [RPCOverRDMA], [QPCall], [QPRefusal], [NVMeRequest], [NVMeReply], [NVMeReject] or [SMBDirect], or
// nil. It is a guess. Nothing in a startup frame says what private data is, and only the first three of these
// have a mark of their own: any application may happen to send the bytes of the others.
func Recognize(b []byte) fmt.Stringer {
	if c, err := ParseRPCOverRDMA(b); err == nil {
		return c
	}
	if c, err := ParseQPCall(b); err == nil {
		return c
	}
	switch len(b) {
	case NVMeLen:
		return recognizeNVMe(b)
	case SMBDirectLen: // and QPRefusalLen
		if c, err := ParseQPRefusal(b); err == nil {
			return c
		}
		if c, _, err := ParseSMBDirect(b); err == nil {
			return c
		}
	case nvmeRejectLen:
		if c, err := ParseNVMeReject(b); err == nil && c.known() {
			return c
		}
	}
	return nil
}

// Describe returns one line on the ULP's private data: what it looks like,
// as [Recognize] guesses, or whose program's (rsockets, or a command of this module), or text, or its first bytes.
func Describe(b []byte) string {
	if len(b) == 0 {
		return "none"
	}
	if rest, tagged := CutPrefixTag(b); tagged {
		return Describe(rest) + "; and a tag of iwarp run --as roce: Sends may begin with 8 bytes of flags and Immediate Data"
	}
	switch c := Recognize(b).(type) {
	case nil:
	case SMBDirect:
		return "like " + c.String() + smbOrder(b)
	default:
		return "like " + c.String()
	}
	if name := program(b); name != "" {
		return fmt.Sprintf("like %s, %s: %s", name, wording.Bytes(len(b)), shown(b, "% x"))
	}
	if text := strings.TrimRight(string(b), "\x00"); printable(text) {
		return fmt.Sprintf("%s of text: %s", wording.Bytes(len(b)), shown([]byte(text), "%q"))
	}
	return fmt.Sprintf("%s: %s", wording.Bytes(len(b)), shown(b, "% x"))
}

// shownBytes is how much of private data a line shows.
const shownBytes = 64

// shown formats bytes, as far as they fit a line.
func shown(b []byte, verb string) string {
	s := fmt.Sprintf(verb, b[:min(len(b), shownBytes)])
	if len(b) > shownBytes {
		s += " ..."
	}
	return s
}

// printable reports whether s is text of one line and printable ASCII.
func printable(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// tooShort is the error of private data that a convention does not fit into.
func tooShort(convention string, have, want int) error {
	return fmt.Errorf("%w: %d bytes, and %s has %d", ErrConvention, have, convention, want)
}
