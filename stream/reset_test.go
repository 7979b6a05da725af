package stream_test

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/stream"
)

// TestResetIsNotClosed has a peer reset the connection, or end it without a word: no call fails with net.ErrClosed, which is for a Conn that was closed at this end,
// and what has happened can still be told. After Close it is net.ErrClosed.
func TestResetIsNotClosed(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*iwarp.QP) error
		want error
	}{"reset": {(*iwarp.QP).Abort, iwarp.ErrConnectionLost}, "no word": {(*iwarp.QP).Close, io.ErrUnexpectedEOF}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, layers[0], stream.Config{Maps: 1})
			a, b := r.pair(t)
			must(t, c.end(b.QP()))
			<-a.QP().Done()
			_, read := a.Read(make([]byte, 1))
			_, written := a.Write(make([]byte, 1))
			_, mapped := a.Map(make([]byte, 1), 0)
			for _, err := range []error{read, written, mapped, a.CloseWrite()} {
				if err == nil || errors.Is(err, net.ErrClosed) || !errors.Is(err, c.want) {
					t.Errorf("%v: net.ErrClosed: %t", err, errors.Is(err, net.ErrClosed))
				}
			}
			_ = a.Close()
			if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		})
	}
}
