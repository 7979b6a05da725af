package main

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// privateData is the private data of a startup frame: text as it stands, or octets in
// hex after 0x.
type privateData string

// UnmarshalText reads either.
func (d *privateData) UnmarshalText(text []byte) error {
	digits, isHex := strings.CutPrefix(string(text), "0x")
	if !isHex {
		*d = privateData(text)
		return nil
	}
	octets, err := hex.DecodeString(digits)
	if err != nil {
		return fmt.Errorf("%q is not octets in hex, two digits for each", text)
	}
	*d = privateData(octets)
	return nil
}
