package main

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/goiwarp/iwarp/mpa"
)

// privateData is the private data of a startup frame: text as it stands, or bytes in
// hex after 0x.
type privateData string

// UnmarshalText reads either.
func (d *privateData) UnmarshalText(text []byte) error {
	digits, isHex := strings.CutPrefix(string(text), "0x")
	if !isHex {
		return d.set(text)
	}
	data, err := hex.DecodeString(digits)
	if err != nil {
		return fmt.Errorf("%q is not bytes in hex, two digits for each", text)
	}
	return d.set(data)
}

// set refuses more than any frame has room for.
func (d *privateData) set(data []byte) error {
	*d = privateData(data)
	if n := len(data); n > mpa.MaxPrivateData {
		return fmt.Errorf("%d bytes of private data: at most %d fit a frame", n, mpa.MaxPrivateData)
	}
	return nil
}
