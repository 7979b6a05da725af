package main

import (
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
