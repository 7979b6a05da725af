// Package wording has the few ways in which texts put numbers into words, fill lines and name values. It is as pure as
// the protocols, which use it.
package wording

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Number counts things.
type Number interface {
	~int | ~int64 | ~uint16 | ~uint32 | ~uint64
}

// Count is a number of things in words, such as "1 byte" or "3 bytes". The plural of
// what is formed with an s.
func Count[N Number](n N, what string) string { return fmt.Sprintf("%d %s", n, Things(n, what)) }

// Things is the word for so many things, such as "byte" or "bytes", where their number stands apart.
func Things[N Number](n N, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}

// Bytes is a number of bytes in words.
func Bytes[N Number](n N) string { return Count(n, "byte") }

// Size returns a number of bytes in the unit that makes it a number below 1024, such as 1.5 GiB. If that is not all of
// it, the bytes follow: 977 KiB (1000001 bytes).
func Size(n int64) string {
	if n < 1<<10 {
		return Bytes(n)
	}
	unit := int64(1 << 10)
	names := "KMGTP"
	for ; n/unit >= 1<<10 && len(names) > 1; unit <<= 10 {
		names = names[1:]
	}
	text := strconv.FormatFloat(math.Round(float64(n)/float64(unit)*100)/100, 'f', -1, 64) + " " + names[:1] + "iB"
	if n%unit*100%unit == 0 {
		return text
	}
	return fmt.Sprintf("%s (%s)", text, Bytes(n))
}

// Seconds is a time in seconds, with so many decimals.
func Seconds(d time.Duration, decimals int) string {
	return strconv.FormatFloat(d.Seconds(), 'f', decimals, 64)
}

// Elapsed is a time for people: to the millisecond if it is longer than one, and else to the microsecond.
func Elapsed(d time.Duration) string {
	if d > time.Millisecond {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
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

// hexLine is the bytes of a line of Hex.
const hexLine = 16

// Hex yields bytes as lines of hexadecimal, 16 to a line and as many as most, each with
// the index of its first byte.
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

// Name returns the name of a value, which is its index in names, and the value itself
// after what it is if it has none.
func Name[T ~uint8](v T, what string, names []string) string {
	if int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return fmt.Sprintf("%s %d", what, uint8(v))
}

// ErrTooLarge is wrapped by the error of ParseBytes for a number that is too large.
var ErrTooLarge = errors.New("too large")

// ParseBytes reads a number of bytes, which a K, M, G or T at its end, in either case,
// multiplies by 2^10, 2^20, 2^30 or 2^40.
func ParseBytes(text string) (int64, error) {
	digits, shift := text, 0
	if n := len(digits); n > 0 {
		if i := strings.IndexByte("KMGT", digits[n-1]&^0x20); i >= 0 {
			digits, shift = digits[:n-1], 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63-shift)
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is %w: the most is 8388607T", text, ErrTooLarge)
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a size in bytes, such as 65536, 64K, 10M, 1G or 1T", text)
	}
	return int64(n) << shift, nil
}
