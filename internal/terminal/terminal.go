// Package terminal keeps what a peer has said from being obeyed by a terminal.
package terminal

import (
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape makes what a peer has said fit to be printed in a line on a terminal: characters
// that a terminal would obey rather than show, line ends among them, become \u and four
// hexadecimal digits (twice that for what has more than 16 bits), and bytes that are not UTF-8 become \x and two. All
// else stays as it is.
func Escape(s string) string { return string(appendEscaped(nil, []byte(s), false)) }

// appendEscaped appends what Escape makes of b. With lines, line ends and tabs stay.
func appendEscaped(dst, b []byte, lines bool) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			dst = fmt.Appendf(dst, `\x%02x`, b[0])
		case unicode.IsPrint(r), lines && (r == '\n' || r == '\t'):
			dst = append(dst, b[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		b = b[n:]
	}
	return dst
}

// A Guard passes text on to a terminal, or to whatever is in its place, and escapes in it
// as [Escape] does, except for line ends and tabs. JSON stays JSON. Several goroutines may write to it.
type Guard struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // the beginning of a character whose end has not come
	err  error  // the first that a write had
}

// NewGuard returns a Guard in front of to.
func NewGuard(to io.Writer) *Guard { return &Guard{to: to} }

// To is what the Guard is in front of.
func (g *Guard) To() io.Writer { return g.to }

// Write escapes b and writes it. A character may be divided between two calls.
func (g *Guard) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	whole := b
	if len(g.rest) > 0 {
		whole = append(g.rest, b...)
	}
	whole, rest := divided(whole)
	g.rest = append([]byte(nil), rest...)
	if !plain(whole) {
		whole = appendEscaped(nil, whole, true)
	}
	if _, err := g.to.Write(whole); err != nil {
		return 0, g.failed(err)
	}
	return len(b), nil
}

// Flush writes what is left of a character that was never ended. It returns the first error of any write, so that those
// who print need not look.
func (g *Guard) Flush() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.rest) > 0 {
		_, err := g.to.Write(appendEscaped(nil, g.rest, true))
		g.rest = nil
		return g.failed(err)
	}
	return g.err
}

// Err returns the first error of any write so far.
func (g *Guard) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// Trusted returns a writer past the Guard, for the program's own text that has sequences which the terminal is to obey.
// Words of a peer in it must have gone through [Escape]. It may be used beside Write, at the end of a character.
func (g *Guard) Trusted() io.Writer { return trusted{g} }

type trusted struct{ *Guard }

func (t trusted) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.to.Write(b); err != nil {
		return 0, t.failed(err)
	}
	return len(b), nil
}

func (g *Guard) failed(err error) error {
	if g.err == nil {
		g.err = err
	}
	return g.err
}

// divided cuts off the beginning of a character at the end of b.
func divided(b []byte) (whole, rest []byte) {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if at := len(b) - n; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return b[:at], b[at:]
			}
			break
		}
	}
	return b, nil
}

// plain reports whether b is ASCII of which nothing is escaped.
func plain(b []byte) bool {
	for _, c := range b {
		if (c < ' ' && c != '\n' && c != '\t') || c > '~' {
			return false
		}
	}
	return true
}
