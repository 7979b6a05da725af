package perf

import (
	"context"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestGateOfSetup is a part of the gate: a short connection makes no more of these system calls than it did. Both ends
// are in this process, and carry a message each way.
func TestGateOfSetup(t *testing.T) {
	if os.Getenv("IWARP_GATE") == "" {
		t.Skip("IWARP_GATE is not set: this takes a tracefs")
	}
	const connections = 200
	for _, call := range []struct {
		name   string
		number int
		most   float64 // for a connection
	}{
		// Package net makes five where it dials, and one where it accepts.
		{"setsockopt", unix.SYS_SETSOCKOPT, 6},
		// Four find something, and three are made before a wait.
		{"recvfrom", unix.SYS_RECVFROM, 11},
	} {
		s := newShort(t)
		s.once() // which makes what is made once
		c := newCallCounter()
		if c == nil {
			t.Skip("this system does not count system calls")
		}
		defer c.close()
		for _, fd := range c.fds {
			testrig.Must(t, unix.IoctlSetString(fd, unix.PERF_EVENT_IOC_SET_FILTER, fmt.Sprintf("id == %d", call.number)))
		}
		before := c.count() // without the filter
		for range connections {
			s.once()
		}
		n := float64(c.count()-before) / connections
		t.Logf("%.2f %s a connection, at most %v", n, call.name, call.most)
		if n == 0 || n > call.most {
			t.Errorf("%.2f %s a connection, want %v at most", n, call.name, call.most)
		}
	}
}

// A short connects two ends again and again.
type short struct {
	t    *testing.T
	ctx  context.Context
	ln   *iwarp.Listener
	pd   *iwarp.PD
	room iwarp.SGE
}

func newShort(t *testing.T) *short {
	t.Helper()
	s := &short{t: t, ctx: testrig.Within(t)}
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	t.Cleanup(func() { rnic.Close() })
	pd, err := rnic.AllocPD()
	testrig.Must(t, err)
	mr, err := pd.Register(make([]byte, 64), iwarp.LocalWrite)
	testrig.Must(t, err)
	s.pd, s.room = pd, mr.Slice(0, 64)
	s.ln, err = (&iwarp.ListenConfig{PD: pd}).Listen(s.ctx, "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	return s
}

// once has one connection.
func (s *short) once() {
	s.t.Helper()
	prepare := func(qp *iwarp.QP) error { return qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{s.room}}) }
	answered := make(chan error, 1)
	go func() { answered <- s.answer(prepare) }()
	qp, err := (&iwarp.Dialer{PD: s.pd, Prepare: prepare}).Dial(s.ctx, "tcp", s.ln.Addr().String())
	testrig.Must(s.t, err)
	testrig.Must(s.t, qp.Send(s.ctx, s.room))
	_, err = qp.RecvCQ().Next(s.ctx)
	testrig.Must(s.t, err)
	testrig.Must(s.t, qp.Close())
	testrig.Must(s.t, <-answered)
}

// answer accepts one connection, and answers its message.
func (s *short) answer(prepare func(*iwarp.QP) error) error {
	req, err := s.ln.Accept(s.ctx)
	if err != nil {
		return err
	}
	qp, err := req.Accept(s.ctx, iwarp.AcceptConfig{Prepare: prepare})
	if err != nil {
		return err
	}
	if _, err := qp.RecvCQ().Next(s.ctx); err != nil {
		return err
	}
	if err := qp.Send(s.ctx, s.room); err != nil {
		return err
	}
	return qp.Close()
}
