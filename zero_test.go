package iwarp_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// TestZeroValues calls every method of every object that is a zero value, and of nil pointers. None panics, waits or
// leaves a lock, and each error wraps ErrInvalid.
func TestZeroValues(t *testing.T) {
	for _, object := range []any{
		new(iwarp.RNIC), new(iwarp.PD), new(iwarp.MR), new(iwarp.MW), new(iwarp.CQ), new(iwarp.SRQ), new(iwarp.QP),
		new(iwarp.Listener), new(iwarp.Request), new(iwarp.Pending), new(iwarp.Message),
	} {
		v := reflect.ValueOf(object)
		for i := range v.NumMethod() {
			m := v.Type().Method(i)
			for range 2 { // the second call finds the locks free
				callZero(t, m, v)
			}
			if _, ofValue := v.Type().Elem().MethodByName(m.Name); !ofValue {
				callZero(t, m, reflect.Zero(v.Type()))
			}
		}
	}
}

// callZero calls a method with zero arguments, and a context that never ends.
func callZero(t *testing.T, m reflect.Method, object reflect.Value) {
	t.Run(object.Type().Elem().Name()+"."+m.Name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			args := []reflect.Value{object}
			for i := 1; i < m.Type.NumIn(); i++ {
				args = append(args, zeroArgument(m.Type.In(i)))
			}
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("nil %t: it panics: %v", object.IsNil(), p)
				}
			}()
			for _, result := range m.Func.Call(args) {
				if err, ok := errorIn(result.Interface()); ok && !errors.Is(err, iwarp.ErrInvalid) {
					t.Errorf("the error is %v", err)
				}
			}
		})
	})
}

// errorIn returns an error that a result is, has as its cause, or comes to.
func errorIn(result any) (error, bool) {
	switch v := result.(type) {
	case context.Context:
		return context.Cause(v), true
	case iter.Seq2[iwarp.WC, error]:
		for _, err := range v {
			return err, true
		}
	case iter.Seq2[iwarp.Message, error]:
		for _, err := range v {
			return err, true
		}
	}
	err, ok := result.(error)
	return err, ok
}

func zeroArgument(of reflect.Type) reflect.Value {
	switch of {
	case reflect.TypeFor[context.Context]():
		return reflect.ValueOf(context.Background())
	case reflect.TypeFor[error]():
		return reflect.ValueOf(iwarp.ErrInvalid) // which QP.Cause returns as it is
	}
	return reflect.Zero(of)
}

// TestZeroArguments gives objects that are zero values to calls on others.
func TestZeroArguments(t *testing.T) {
	ctx := context.Background()
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	pd, err := rnic.AllocPD()
	rig.Must(t, err)
	qp, err := pd.CreateQP(iwarp.QPConfig{})
	rig.Must(t, err)
	mr, err := pd.Register(make([]byte, 8), iwarp.LocalWrite)
	rig.Must(t, err)
	mw, err := pd.AllocMW(iwarp.MWType1)
	rig.Must(t, err)
	zeroSGL := []iwarp.SGE{{MR: new(iwarp.MR), Length: 8}}
	for name, call := range map[string]func() error{
		"Dialer.PD": func() error {
			_, err := (&iwarp.Dialer{PD: new(iwarp.PD)}).Dial(ctx, "tcp", "127.0.0.1:1")
			return err
		},
		"Dialer.DialQP": func() error { return new(iwarp.Dialer).DialQP(ctx, new(iwarp.QP), "tcp", "127.0.0.1:1") },
		"Dialer.InitiateQP": func() error {
			a, _ := net.Pipe()
			return new(iwarp.Dialer).InitiateQP(ctx,
				new(iwarp.QP), a, nil)
		},
		"ListenConfig.PD": func() error {
			_, err := (&iwarp.ListenConfig{PD: new(iwarp.PD)}).Listen(ctx, "tcp", "127.0.0.1:0")
			return err
		},
		"NewListener": func() error {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			rig.Must(t, err)
			l := (&iwarp.ListenConfig{RNIC: new(iwarp.RNIC)}).NewListener(ln)
			defer l.Close()
			_, err = l.Accept(ctx)
			return err
		},
		"QPConfig.SendCQ": func() error { _, err := pd.CreateQP(iwarp.QPConfig{SendCQ: new(iwarp.CQ)}); return err },
		"QPConfig.RecvCQ": func() error { _, err := pd.CreateQP(iwarp.QPConfig{RecvCQ: new(iwarp.CQ)}); return err },
		"QPConfig.SRQ":    func() error { _, err := pd.CreateQP(iwarp.QPConfig{SRQ: new(iwarp.SRQ)}); return err },
		"MROptions.QP": func() error {
			_, err := pd.RegisterOptions(make([]byte, 8), iwarp.MROptions{QP: new(iwarp.QP)})
			return err
		},
		"MROptions.Replace": func() error {
			_, err := pd.RegisterOptions(make([]byte, 8), iwarp.MROptions{Replace: new(iwarp.MR)})
			return err
		},
		"PostRecv": func() error { return qp.PostRecv(&iwarp.RecvWR{SGL: zeroSGL}) },
		"PostSend": func() error { return qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, SGL: zeroSGL}) },
		"Target": func() error {
			return qp.PostSend(&iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Target: new(iwarp.MR)})
		},
		"Target of OpFastRegister": func() error {
			return qp.PostSend(&iwarp.SendWR{Op: iwarp.OpFastRegister, Target: new(iwarp.MR),
				Register: &iwarp.Registration{}})
		},
		"Window": func() error {
			return qp.PostSend(&iwarp.SendWR{Op: iwarp.OpLocalInvalidate, Window: new(iwarp.MW)})
		},
		"Window of OpBindMW": func() error {
			bind := iwarp.Binding{Memory: mr.Slice(0, 8)}
			return qp.PostSend(&iwarp.SendWR{Op: iwarp.OpBindMW, Window: new(iwarp.MW), Bind: &bind})
		},
		"Binding.Memory": func() error { return mw.Bind(iwarp.Binding{Memory: zeroSGL[0], Access: iwarp.RemoteRead}) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := call(); !errors.Is(err, iwarp.ErrInvalid) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestCopiesAreReported: go vet (copylocks) reports copies of all objects, as each has something in it that has the
// methods of a lock if its address is taken. Not so an MR: copies are as good as it, and what prints one must not show
// the memory (TestNoMemoryInText).
func TestCopiesAreReported(t *testing.T) {
	for _, object := range []any{
		iwarp.RNIC{}, iwarp.PD{}, iwarp.MW{}, iwarp.CQ{}, iwarp.SRQ{}, iwarp.QP{}, iwarp.Listener{},
		iwarp.Request{},
	} {
		if of := reflect.TypeOf(object); !locks(of) {
			t.Errorf("nobody reports a copy of a %v", of)
		}
	}
	if locks(reflect.TypeFor[iwarp.Dialer]()) {
		t.Error("a Dialer is to be copied")
	}
}

// locks reports whether copylocks looks at values of a type.
func locks(of reflect.Type) bool {
	locker := reflect.TypeFor[sync.Locker]()
	if reflect.PointerTo(of).Implements(locker) && !of.Implements(locker) {
		return true
	}
	if of.Kind() != reflect.Struct {
		return false
	}
	for i := range of.NumField() {
		if locks(of.Field(i).Type) {
			return true
		}
	}
	return false
}
