package ulpdata

import (
	"bytes"
	"slices"
)

// PrefixTagLen is how long the tag of [AppendPrefixTag] is, in bytes.
const PrefixTagLen = 8

// prefixTag is that tag: a mark, the version, and 3 bytes of zero.
const prefixTag = "iwsi\x01\x00\x00\x00"

// AppendPrefixTag returns private data with the tag behind them by which a program that runs under "iwarp run --as
// roce" offers, in a Request, that each Send begins with 8 bytes of flags and Immediate Data. The same tag in the Reply
// agrees to that, for both directions. It is a convention of this module's. The private data are not changed.
func AppendPrefixTag(privateData []byte) []byte {
	return append(slices.Clip(privateData), prefixTag...)
}

// CutPrefixTag returns private data without the tag of [AppendPrefixTag], and whether they had it.
func CutPrefixTag(b []byte) (privateData []byte, tagged bool) {
	return bytes.CutSuffix(b, []byte(prefixTag))
}
