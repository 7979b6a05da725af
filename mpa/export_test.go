package mpa

import (
	"encoding/binary"
	"reflect"
	"slices"
	"time"
)

// Copy returns a machine that goes on from the same state, on its own. What the two have in
// common is not changed any more.
func (i *Initiator) Copy() *Initiator {
	c := *i
	c.in.buf, c.out = slices.Clone(i.in.buf), slices.Clone(i.out)
	return &c
}

// Copy returns a machine that goes on from the same state, on its own.
func (r *Responder) Copy() *Responder {
	c := *r
	c.in.buf, c.out = slices.Clone(r.in.buf), slices.Clone(r.out)
	return &c
}

// AppendState appends the state of a machine, so that two machines with the same bytes
// there do the same from now on.
func AppendState(dst []byte, machine any) []byte { return appendState(dst, reflect.ValueOf(machine)) }

var timeType = reflect.TypeFor[time.Time]()

func appendState(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Func: // of a machine's settings, which do not change
		return dst
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(dst, 0)
		}
		return appendState(append(dst, 1), v.Elem())
	case reflect.Struct:
		return appendFields(dst, v)
	case reflect.Slice, reflect.String, reflect.Array:
		return appendElements(dst, v)
	case reflect.Bool:
		if v.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	}
	if v.CanInt() {
		return binary.AppendVarint(dst, v.Int())
	}
	return binary.AppendUvarint(dst, v.Uint())
}

func appendFields(dst []byte, v reflect.Value) []byte {
	n := v.NumField()
	if v.Type() == timeType {
		n = 2 // and not the location
	}
	for i := range n {
		dst = appendState(dst, v.Field(i))
	}
	return dst
}

func appendElements(dst []byte, v reflect.Value) []byte {
	dst = binary.AppendUvarint(dst, uint64(v.Len()))
	switch {
	case v.Kind() == reflect.String:
		return append(dst, v.String()...)
	case v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice:
		return append(dst, v.Bytes()...)
	}
	for i := range v.Len() {
		dst = appendState(dst, v.Index(i))
	}
	return dst
}
