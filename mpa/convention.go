package mpa

import (
	"errors"
	"fmt"
	"strings"
)

// ErrConvention is wrapped by the errors of the Parse functions for what ULPs put
// into private data.
var ErrConvention = errors.New("mpa: private data is not of this convention")

// RecognizePrivateData tells which of the conventions known to this package the
// ULP's private data follows: an [RPCOverRDMA], [NVMeRequest], [NVMeReply],
// [NVMeReject] or [SMBDirect], or nil. It is a guess. Nothing in a startup frame
// says what private data is, and all but the first have no mark of their own: any
// application may happen to send the same octets.
func RecognizePrivateData(b []byte) fmt.Stringer {
	if c, err := ParseRPCOverRDMA(b); err == nil {
		return c
	}
	switch len(b) {
	case nvmeLen:
		return recognizeNVMe(b)
	case SMBDirectLen:
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

// DescribePrivateData returns one line on the ULP's private data: what it looks like,
// as [RecognizePrivateData] guesses, or text, or its first octets.
func DescribePrivateData(b []byte) string {
	if len(b) == 0 {
		return "none"
	}
	if c := RecognizePrivateData(b); c != nil {
		return "like " + c.String()
	}
	if text := strings.TrimRight(string(b), "\x00"); printable(text) {
		return fmt.Sprintf("%d octets of text: %s", len(b), shown([]byte(text), "%q"))
	}
	return fmt.Sprintf("%d octets: %s", len(b), shown(b, "% x"))
}

// shown formats octets, as far as they fit a line.
func shown(b []byte, verb string) string {
	s := fmt.Sprintf(verb, b[:min(len(b), shownOctets)])
	if len(b) > shownOctets {
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
	return fmt.Errorf("%w: %d octets, and %s has %d", ErrConvention, have, convention, want)
}
