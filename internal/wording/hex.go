package wording

import (
	"fmt"
	"iter"
)

// hexLine is the octets of a line of Hex.
const hexLine = 16

// Hex yields octets as lines of hexadecimal, 16 to a line and as many as most, each with
// the index of its first octet.
func Hex(b []byte, most int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		b := b[:min(len(b), most)]
		for i := 0; i < len(b); i += hexLine {
			if !yield(i, fmt.Sprintf("% x", b[i:min(i+hexLine, len(b))])) {
				return
			}
		}
	}
}
