package iwarp

import (
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/driver"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestIdleAwaitsLast: a QP is made ready for another connection after the last completions of the one before, which are
// waited for. No other transition waits for them.
func TestIdleAwaitsLast(t *testing.T) {
	pd, err := NewRNIC(RNICConfig{}).AllocPD()
	must(t, err)
	qp, _ := connectedByPipe(t, pd, QPConfig{}, QPConfig{})
	must(t, qp.PostRecv(&RecvWR{}))
	c := qp.conn.Load()
	modify := func(to State) <-chan error {
		over := make(chan error, 1)
		go func() { over <- qp.Modify(to) }()
		return over
	}
	until := func(what string, there func() bool) {
		for ctx := testrig.Within(t); !there(); runtime.Gosched() {
			if ctx.Err() != nil {
				t.Fatal(what)
			}
		}
	}
	qp.recvCQ.mu.Lock() // the flushed receive is on its way there
	ended := modify(StateError)
	until("the lower layer is not closed", func() bool { return c.Status().Phase == driver.Closed })
	refused := modify(StateTerminate)
	until("a refusal waits", func() bool { return len(refused) > 0 })
	idle := modify(StateIdle)
	until("nobody waits", func() bool { return len(idle) > 0 || waitsIn(".awaitLast(") })
	qp.recvCQ.mu.Unlock()
	must(t, <-ended)
	if err := <-refused; !errors.Is(err, ErrBadState) {
		t.Error(err)
	}
	must(t, <-idle)
}

// waitsIn reports whether a goroutine waits for a channel in a function.
func waitsIn(function string) bool {
	b := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
		if strings.Contains(stack, function) && strings.Contains(stack, "[chan receive") {
			return true
		}
	}
	return false
}

// A closesIdle is a connection of the user's whose Close makes the QP ready for another.
type closesIdle struct {
	net.Conn
	qp  *QP
	err error
}

func (c *closesIdle) Close() error {
	c.err = c.qp.Modify(StateIdle)
	return c.Conn.Close()
}

// TestIdleDuringClose: what the user's code asks for while it closes the lower layer waits for nothing, and is too
// early.
func TestIdleDuringClose(t *testing.T) {
	pd, err := NewRNIC(RNICConfig{}).AllocPD()
	must(t, err)
	qp, err := pd.CreateQP(QPConfig{})
	must(t, err)
	near, far := net.Pipe()
	defer far.Close()
	c := &closesIdle{Conn: near, qp: qp}
	n := mpa.Negotiated{Role: mpa.RoleInitiator, DDPVersion: 1, RDMAPVersion: 1, SendFirst: true, CRC: true}
	must(t, qp.ModifyRTS(c, n, nil))
	must(t, qp.Modify(StateError))
	select {
	case <-qp.Done():
	case <-testrig.Within(t).Done():
		t.Fatal("the connection does not end")
	}
	if !errors.Is(c.err, ErrBadState) {
		t.Error(c.err)
	}
	must(t, qp.Close())
}
