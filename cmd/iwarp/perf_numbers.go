package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/perf"
)

// A positive number is a flag whose zero, which is also that of one that is not given, would
// silently be the default.
type positive int

// Decode takes the number.
func (p *positive) Decode(ctx *kong.DecodeContext) error {
	text, n, err := wholeNumber(ctx)
	if err != nil {
		return err
	}
	if n < 1 {
		return fmt.Errorf("%q is not a positive number", text)
	}
	*p = positive(n)
	return nil
}

// A receives is such a number too, from two on.
type receives int

// Decode takes the number.
func (r *receives) Decode(ctx *kong.DecodeContext) error {
	text, n, err := wholeNumber(ctx)
	if err != nil {
		return err
	}
	if n < perf.MinReceives {
		return fmt.Errorf("%q is not a number from %d: an answer may come before a second receive is posted",
			text, perf.MinReceives)
	}
	*r = receives(n)
	return nil
}

// A span is a time with its unit, or a number of seconds, as perftest has it. It is 0 if it is not given.
type span time.Duration

// Decode takes the time, which is more than 0.
func (s *span) Decode(ctx *kong.DecodeContext) error {
	if err := valueNext(ctx); err != nil {
		return err
	}
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	d, err := parseSpan(text)
	*s = span(d)
	return err
}

// longestSpan is more than anybody measures a figure for: it shows a mistake in the unit.
const longestSpan = 24 * time.Hour

// parseSpan reads a time of more than 0.
func parseSpan(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.40q is neither a time, such as 400ms, nor a number of seconds", text)
	case d <= 0:
		return 0, fmt.Errorf("must be more than 0, not %v", d)
	case d > longestSpan:
		return 0, fmt.Errorf("must be %v at most, not %v", longestSpan, d)
	}
	return d, nil
}

// A stated text is that of a flag whose empty text, as of a variable of the shell that is not set, would be taken for a
// flag that is not given.
type stated string

// Decode takes the text.
func (s *stated) Decode(ctx *kong.DecodeContext) error {
	if err := valueNext(ctx); err != nil {
		return err
	}
	if err := ctx.Scan.PopValueInto("text", (*string)(s)); err != nil {
		return err
	}
	if *s == "" {
		return errors.New("is empty")
	}
	return nil
}

// withPort is an address with the port of perf, if it has none.
func (s stated) withPort() string { return withPort(string(s), perf.DefaultPort) }

// wholeNumber takes a flag's text, and the number in it: 0 if there is no number.
func wholeNumber(ctx *kong.DecodeContext) (text string, n int, err error) {
	if err := valueNext(ctx); err != nil {
		return "", 0, err
	}
	if err := ctx.Scan.PopValueInto("number", &text); err != nil {
		return "", 0, err
	}
	if n, err = strconv.Atoi(text); err != nil {
		n = 0
	}
	return text, n, nil
}
