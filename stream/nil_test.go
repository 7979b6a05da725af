package stream_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stream"
)

// Calls with nil, or on a zero value that is not usable, fail with an error that says so.
func TestNil(t *testing.T) {
	var without context.Context
	var dialer *stream.Dialer
	var config *stream.ListenConfig
	var acceptor *stream.Acceptor
	ctx := t.Context()
	dial := func(d *stream.Dialer, ctx context.Context) error {
		_, err := d.DialContext(ctx, "tcp", "127.0.0.1:1")
		return err
	}
	listen := func(c *stream.ListenConfig, ctx context.Context) error {
		_, err := c.Listen(ctx, "tcp", "127.0.0.1:0")
		return err
	}
	accept := func(ln *stream.Listener) error {
		_, err := ln.Accept()
		return err
	}
	answer := func(a *stream.Acceptor, req *iwarp.Request) error {
		_, err := a.Accept(ctx, req)
		return err
	}
	under, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	below, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	must(t, err)
	for name, err := range map[string]error{
		"Dialer":                   dial(dialer, ctx),
		"Dial without a context":   dial(new(stream.Dialer), without),
		"ListenConfig":             listen(config, ctx),
		"Listen without a context": listen(new(stream.ListenConfig), without),
		"NewListener":              accept(config.NewListener(under)),
		"net.Listener":             accept(new(stream.ListenConfig).NewListener(nil)),
		"Acceptor":                 accept(acceptor.NewListener(below)),
		"iwarp.Listener":           accept(new(stream.Acceptor).NewListener(nil)),
		"Acceptor.Accept":          answer(acceptor, nil),
		"Request":                  answer(new(stream.Acceptor), nil),
		"zero Request":             answer(new(stream.Acceptor), new(iwarp.Request)),
		"Listener":                 accept(nil),
		"zero Listener":            accept(new(stream.Listener)),
		"Close":                    (*stream.Listener)(nil).Close(),
	} {
		if !errors.Is(err, iwarp.ErrInvalid) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if under.Close() == nil || below.Close() == nil {
		t.Error("a Listener that fails keeps what it has taken")
	}
}

// TestZeroConns calls every method of a Conn and a Mapping that are zero values, and of nil ones: as with the
// connections of package net, none panics, and each has an error that says so.
func TestZeroConns(t *testing.T) {
	for _, object := range []any{
		new(stream.Conn), (*stream.Conn)(nil), new(stream.Mapping), (*stream.Mapping)(nil),
	} {
		v := reflect.ValueOf(object)
		for i := range v.NumMethod() {
			m := v.Type().Method(i)
			if slices.Contains([]string{"KeepsAlive", "Unmap", "Disconnect", "CloseError"}, m.Name) {
				continue // which are of inner_test.go
			}
			t.Run(fmt.Sprintf("%s.%s, nil %t", v.Type().Elem().Name(), m.Name, v.IsNil()), func(t *testing.T) {
				args := []reflect.Value{v}
				for i := 1; i < m.Type.NumIn(); i++ {
					args = append(args, reflect.Zero(m.Type.In(i)))
				}
				results := m.Func.Call(args)
				last := results[len(results)-1]
				if last.Type() != reflect.TypeFor[error]() {
					if !last.IsNil() {
						t.Errorf("it returns %v", last)
					}
					return
				}
				err, _ := last.Interface().(error)
				if !errors.Is(err, iwarp.ErrInvalid) || !errors.As(err, new(*net.OpError)) {
					t.Errorf("the error is %v", err)
				}
			})
		}
	}
}
