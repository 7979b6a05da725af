package main

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// numbers has flags take a negative number as any other, for the command to say what is wrong with it: kong would take it for a
// flag, and advise to join it to the one in front.
func numbers() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		for _, t := range []reflect.Type{
			reflect.TypeFor[time.Duration](), reflect.TypeFor[int](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint64](), reflect.TypeFor[float64](), reflect.TypeFor[octets](), reflect.TypeFor[octetRate](),
		} {
			if err := kong.TypeMapper(t, numberMapper{kong.NewRegistry().RegisterDefaults().ForType(t)}).Apply(k); err != nil {
				return err
			}
		}
		return nil
	})
}

// A numberMapper maps what is one.
type numberMapper struct{ kong.Mapper }

// Decode takes the number.
func (n numberMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if err := valueNext(ctx); err != nil {
		return err
	}
	return n.Mapper.Decode(ctx, target)
}

// notNegative refuses a time that is. option is where it stands, such as "probe: --timeout".
func notNegative(option string, d time.Duration) error {
	if d < 0 {
		return usage("%s: %v is negative", option, d)
	}
	return nil
}

// valueNext refuses a flag whose value is missing. kong would advise to take the next flag for it. A negative number is a value.
func valueNext(ctx *kong.DecodeContext) error {
	takeNegative(ctx)
	next, flag := ctx.Scan.Peek(), ctx.Value.Flag
	switch {
	case flag == nil || next.IsValue():
		return nil
	case next.IsEOL():
		return fmt.Errorf("want %s", flag.FormatPlaceHolder())
	}
	return fmt.Errorf("want %s in front of %s; a value that begins with a dash is written --%s=%[1]s", flag.FormatPlaceHolder(), next, flag.Name)
}

// takeNegative has the next word be a value if it is a negative number: no flag of ours is a digit.
func takeNegative(ctx *kong.DecodeContext) {
	word := ctx.Scan.Peek().String()
	digits := strings.TrimPrefix(word, "-")
	if digits != word && strings.IndexAny(digits, "0123456789.") == 0 {
		ctx.Scan.PushTyped(ctx.Scan.Pop().Value, kong.FlagValueToken)
	}
}
