package iwarp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// TestNilContext calls every method that takes a context without one, and those of a nil Dialer and ListenConfig. Each
// error says so, and nothing is done.
func TestNilContext(t *testing.T) {
	ini, res := rig.Connect(t)
	ln, ask := rig.Listen(t, iwarp.ListenConfig{}), rig.NewEnd(t, iwarp.RNICConfig{})
	dialed := rig.DialInBackground(t, func() error {
		qp, err := (&iwarp.Dialer{PD: ask.PD}).Dial(rig.Within(t), "tcp", ln.Addr().String())
		ask.QP = qp
		return err
	})
	req, err := ln.Accept(rig.Within(t))
	rig.Must(t, err)
	pending, err := rig.NewQP(t, ini.PD, iwarp.QPConfig{}).Submit(rig.Within(t), &iwarp.SendWR{})
	rig.Must(t, err)
	inbox := rig.NewQP(t, ini.PD, iwarp.QPConfig{Receives: iwarp.Receives{Count: 1}})
	for _, object := range []any{
		ini.RNIC, ini.SendCQ(), ini.QP, inbox, ln, req, pending, ini.At(rig.Within(t), res.MR(8, iwarp.RemoteRead).Region()),
		new(iwarp.Dialer), new(iwarp.ListenConfig),
	} {
		eachWithContext(t, object, ini.PD, func(t *testing.T, err error) {
			said := rig.Contains(err, "context is nil") || rig.Contains(err, "QPConfig.Receives")
			if !errors.Is(err, iwarp.ErrInvalid) || !said {
				t.Errorf("the error is %v", err)
			}
		})
	}
	for _, object := range []any{(*iwarp.Dialer)(nil), (*iwarp.ListenConfig)(nil)} {
		eachWithContext(t, object, ini.PD, func(t *testing.T, err error) {
			if !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, "is nil; use new(") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	_, err = (*iwarp.ListenConfig)(nil).NewListener(nil).Accept(rig.Within(t))
	if !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("the Listener of no ListenConfig: %v", err)
	}
	var without context.Context
	_, err = ini.At(without, res.MR(8, iwarp.RemoteRead).Region()).ReadAt(make([]byte, 1), 0)
	if !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("ReadAt without a context: %v", err)
	}
	_, err = req.Accept(rig.Within(t), iwarp.AcceptConfig{})
	rig.Must(t, err)
	rig.Must(t, <-dialed)
	rig.Finish(t, ini, res)
}

// TestNilContextClosesConn: a call that owns a connection closes it, also where it fails without a context.
func TestNilContextClosesConn(t *testing.T) {
	qp := rig.NewQP(t, rig.NewEnd(t, iwarp.RNICConfig{}).PD, iwarp.QPConfig{})
	var without context.Context
	for name, call := range map[string]func(conn net.Conn) error{
		"Initiate": func(conn net.Conn) error {
			_, err := new(iwarp.Dialer).Initiate(without, conn, nil)
			return err
		},
		"InitiateQP": func(conn net.Conn) error { return new(iwarp.Dialer).InitiateQP(without, qp, conn, nil) },
		"Respond": func(conn net.Conn) error {
			_, err := new(iwarp.ListenConfig).Respond(without, conn, nil)
			return err
		},
	} {
		ours, theirs := rig.NewPipe(t)
		if err := call(ours); !errors.Is(err, iwarp.ErrInvalid) || !rig.Contains(err, "context is nil") {
			t.Errorf("%s: the error is %v", name, err)
		}
		rig.Must(t, theirs.SetReadDeadline(time.Now().Add(time.Second)))
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: the peer sees %v", name, err)
		}
	}
}

// eachWithContext calls every method of an object that takes a context, with none.
func eachWithContext(t *testing.T, object any, pd *iwarp.PD, judge func(t *testing.T, err error)) {
	v := reflect.ValueOf(object)
	for i := range v.NumMethod() {
		m := v.Type().Method(i)
		if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() ||
			m.Name == "At" { // which has no error
			continue
		}
		t.Run(v.Type().Elem().Name()+"."+m.Name, func(t *testing.T) {
			args := []reflect.Value{v}
			for i := 1; i < m.Type.NumIn(); i++ {
				args = append(args, usableArgument(t, pd, m.Type.In(i)))
			}
			results := m.Func.Call(args)
			err, _ := errorIn(results[len(results)-1].Interface())
			judge(t, err)
		})
	}
}

// usableArgument is one that is not what a call refuses.
func usableArgument(t *testing.T, pd *iwarp.PD, of reflect.Type) reflect.Value {
	switch of {
	case reflect.TypeFor[net.Conn]():
		a, _ := rig.NewPipe(t)
		return reflect.ValueOf(a)
	case reflect.TypeFor[*iwarp.QP]():
		return reflect.ValueOf(rig.NewQP(t, pd, iwarp.QPConfig{}))
	case reflect.TypeFor[*iwarp.SendWR]():
		return reflect.ValueOf(&iwarp.SendWR{})
	}
	return reflect.Zero(of)
}
