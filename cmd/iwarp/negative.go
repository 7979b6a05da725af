package main

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// numbers has flags take a negative number as any other, for the command to say what is wrong with it: kong would take
// it for a flag, and advise to join it to the one in front.
func numbers() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		for _, t := range []reflect.Type{
			reflect.TypeFor[time.Duration](), reflect.TypeFor[int](), reflect.TypeFor[uint8](),
			reflect.TypeFor[uint16](), reflect.TypeFor[uint64](), reflect.TypeFor[float64](), reflect.TypeFor[byteCount](),
			reflect.TypeFor[byteRate](),
		} {
			if err := kong.TypeMapper(t, numberMapper{kong.NewRegistry().RegisterDefaults().ForType(t),
				t}).Apply(k); err != nil {
				return err
			}
		}
		return nil
	})
}

// A numberMapper maps what is one.
type numberMapper struct {
	kong.Mapper
	of reflect.Type
}

// Decode takes the number.
func (n numberMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if err := valueNext(ctx); err != nil {
		return err
	}
	text := ctx.Scan.Peek().String()
	if n.of == reflect.TypeFor[time.Duration]() && isNumber(text) {
		ctx.Scan.PushTyped(ctx.Scan.Pop().String()+"s", kong.FlagValueToken)
	}
	err := n.Mapper.Decode(ctx, target)
	if want := wanted(n.of); err != nil && want != "" {
		return fmt.Errorf("%q is not %s", text, want)
	}
	return err
}

// isNumber reports whether a time has no unit: it is in seconds.
func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// wanted says what a number of a type is, or nothing where its own errors do.
func wanted(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a duration, such as 5 (seconds), 400ms or 2m"
	case t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()),
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return ""
	case t.Kind() == reflect.Float64:
		return "a number, such as 1 or 0.5"
	case t.Kind() == reflect.Int:
		return "a whole number"
	}
	return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
}

// notNegative refuses a time that is. option is where it stands, such as "probe: --timeout".
func notNegative(option string, d time.Duration) error {
	if d < 0 {
		return usage("%s: %v is negative", option, d)
	}
	return nil
}

// valueNext refuses a flag whose value is missing. kong would advise to take the next flag for it. A negative number is
// a value.
func valueNext(ctx *kong.DecodeContext) error {
	takeNegative(ctx)
	next, flag := ctx.Scan.Peek(), ctx.Value.Flag
	switch {
	case flag == nil || next.IsValue():
		return nil
	case next.IsEOL():
		return fmt.Errorf("its value is missing, as in --%s=%s", flag.Name, flag.FormatPlaceHolder())
	}
	return fmt.Errorf("want %s in front of %s; a value that begins with a dash is written --%s=%[1]s",
		flag.FormatPlaceHolder(), next, flag.Name)
}

// takeNegative has the next word be a value if it is a negative number: no flag of ours is a digit.
func takeNegative(ctx *kong.DecodeContext) {
	word := ctx.Scan.Peek().String()
	digits := strings.TrimPrefix(word, "-")
	if digits != word && strings.IndexAny(digits, "0123456789.") == 0 {
		ctx.Scan.PushTyped(ctx.Scan.Pop().Value, kong.FlagValueToken)
	}
}
