// Package wording has the few ways in which texts put numbers into words, fill lines and name values. It is as pure as the protocols,
// which use it.
package wording

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
)

// A Number counts things.
type Number interface {
	~int | ~int64 | ~uint16 | ~uint32 | ~uint64
}

// Count is a number of things in words, such as "1 octet" or "3 octets". The plural of
// what is formed with an s.
func Count[N Number](n N, what string) string { return fmt.Sprintf("%d %s", n, Things(n, what)) }

// Things is the word for so many things, such as "octet" or "octets", where their number stands apart.
func Things[N Number](n N, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}

// Octets is a number of octets in words.
func Octets[N Number](n N) string { return Count(n, "octet") }

// Seconds is a time in seconds, with so many decimals.
func Seconds(d time.Duration, decimals int) string {
	return strconv.FormatFloat(d.Seconds(), 'f', decimals, 64)
}

// If chooses one of two words.
func If(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// Bit is 1 or 0.
func Bit(set bool) int {
	if set {
		return 1
	}
	return 0
}

// OnOff is "on" or "off".
func OnOff(on bool) string { return If(on, "on", "off") }

// Lines fills lines of at most so many characters with the words of a text. A word that
// is longer than a line is cut.
func Lines(text string, columns int) iter.Seq[string] {
	return func(yield func(string) bool) {
		var line []rune
		for _, word := range strings.Fields(text) {
			next := []rune(word)
			switch {
			case len(line) == 0:
				line = next
			case len(line)+1+len(next) <= columns:
				line = append(append(line, ' '), next...)
			case !yield(string(line)):
				return
			default:
				line = next
			}
			for ; len(line) > columns; line = line[columns:] {
				if !yield(string(line[:columns])) {
					return
				}
			}
		}
		if len(line) > 0 {
			yield(string(line))
		}
	}
}
