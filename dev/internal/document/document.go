// Package document writes what the tools measure into documents.
package document

import "strings"

// Between returns a document with another text between two of its lines, or false if it does not have these, in that
// order.
func Between(doc, begin, end, text string) (string, bool) {
	before, rest, ok := strings.Cut(doc, begin)
	_, after, ok2 := strings.Cut(rest, end)
	return before + begin + text + end + after, ok && ok2
}
