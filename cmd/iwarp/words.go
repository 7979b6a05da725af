package main

import (
	"cmp"
	"encoding"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// words has texts of the command line be taken byte by byte. kong has them go through JSON, which makes U+FFFD of
// what is not UTF-8: that is the name of another file.
func words() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		lists := kong.NewRegistry().RegisterDefaults().RegisterKind(reflect.String, wordMapper{})
		for _, o := range []kong.Option{
			kong.TypeMapper(reflect.TypeFor[string](), wordMapper{}),
			kong.TypeMapper(reflect.TypeFor[privateData](), wordMapper{}),
			kong.KindMapper(reflect.String, wordMapper{}),
			kong.KindMapper(reflect.Slice, listMapper{lists.ForType(reflect.TypeFor[[]string]())}),
		} {
			if err := o.Apply(k); err != nil {
				return err
			}
		}
		return nil
	})
}

// emptyNames refuses an empty argument, and an empty name of a file or directory: mostly a variable of a script that is
// not set. It would pass for the current directory, this host, or an option that is not there.
func emptyNames(command *kong.Context) error {
	for _, p := range command.Path {
		var value *kong.Value
		var name string
		switch {
		case p.Positional != nil && !p.Positional.Passthrough:
			value, name = p.Positional, cmp.Or(p.Positional.Tag.PlaceHolder, strings.ToUpper(p.Positional.Name))
		case p.Flag != nil && slices.Contains([]string{"FILE", "DIR"}, p.Flag.PlaceHolder):
			value, name = p.Flag.Value, "--"+p.Flag.Name
		default:
			continue
		}
		if hasEmpty(value.Target) {
			return usage("%s: %s: it is empty: give a name, or leave it out", command.Selected().Name, name)
		}
	}
	return nil
}

// hasEmpty reports whether a text is empty, or one of a list of texts.
func hasEmpty(v reflect.Value) bool {
	if v.Kind() == reflect.Slice {
		for _, one := range v.Seq2() {
			if hasEmpty(one) {
				return true
			}
		}
	}
	return v.Kind() == reflect.String && v.Len() == 0
}

// A wordMapper maps a word as it is. One that is a negative number is no flag.
type wordMapper struct{}

// Decode takes the word.
func (wordMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if err := valueNext(ctx); err != nil {
		return err
	}
	token, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	text, ok := token.Value.(string)
	if !ok {
		return errors.New("want a text")
	}
	if to, ok := target.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return to.UnmarshalText([]byte(text))
	}
	target.SetString(text)
	return nil
}

// A listMapper maps the list that a flag has, with commas between: kong goes through it rune by rune. None of our lists
// has names of files.
type listMapper struct{ kong.Mapper }

// Decode refuses what is not UTF-8 in the list of a flag. Arguments have no commas between them.
func (l listMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if err := valueNext(ctx); err != nil {
		return err
	}
	if ctx.Value.Flag != nil && !utf8.ValidString(ctx.Scan.Peek().String()) {
		return errors.New("the text is not UTF-8")
	}
	return l.Mapper.Decode(ctx, target)
}
