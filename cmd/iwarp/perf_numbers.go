package main

import (
	"errors"
	"fmt"
	"strconv"

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

// A depth is such a number too, from perf.MinDepth on.
type depth int

// Decode takes the number.
func (d *depth) Decode(ctx *kong.DecodeContext) error {
	text, n, err := wholeNumber(ctx)
	if err != nil {
		return err
	}
	if n < perf.MinDepth {
		return fmt.Errorf("%q is not a number from %d", text, perf.MinDepth)
	}
	*d = depth(n)
	return nil
}

// A stated text is that of a flag whose empty text, as of a variable of the shell that is not set, would be taken for a flag
// that is not given.
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

// wholeNumber takes a flag's text, and the number that it is: 0 if it is none.
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
