package perf

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// answers connects an initiator's control connection with a peer that has what the test sends as its responder's
// answers, and whose QP a test may change.
func answers(t *testing.T, change ...func(*iwarp.QPConfig)) (d *dialing, peer *control) {
	t.Helper()
	var ends [2]*session
	for i := range ends {
		rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
		t.Cleanup(func() { rnic.Close() })
		s, err := newSession(side(i == 1), rnic)
		testrig.Must(t, err)
		ends[i] = s
	}
	ini, res := ends[0], ends[1]
	one, other := testrig.Pipe("initiator", "responder")
	accepted := make(chan error, 1)
	go func() {
		req, err := (&iwarp.ListenConfig{PD: res.pd}).Respond(t.Context(), other, nil)
		if err == nil {
			cfg := res.ctl.config()
			for _, c := range change {
				c(&cfg)
			}
			_, err = req.Accept(t.Context(), iwarp.AcceptConfig{PD: res.pd, QP: cfg, Prepare: res.ctl.prepare})
		}
		accepted <- err
	}()
	dialer := iwarp.Dialer{PD: ini.pd, QP: ini.ctl.config(), Prepare: ini.ctl.prepare}
	_, err := dialer.Initiate(t.Context(), one, nil)
	testrig.Must(t, err)
	testrig.Must(t, <-accepted)
	return &dialing{session: ini}, res.ctl
}

// TestSilentResponder has a responder accept the control connection, and never answer: the initiator gives it up when
// nothing has moved for the limit.
func TestSilentResponder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := answers(t)
		began := time.Now()
		err := d.open(t.Context(), Options{})
		if !errors.As(err, new(*stillError)) || !strings.Contains(err.Error(), "with the responder for 30s") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < idleLimit || took > 2*idleLimit {
			t.Errorf("given up after %v", took)
		}
	})
}

// TestSlowMovement: what moves now and then, however slowly, is not given up, and is when it moves no more. Plain TCP
// and each of several sessions count.
func TestSlowMovement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := answers(t)
		other, _ := answers(t)
		ctx, stop := whileMoving(t.Context(), d.session, other.session)
		defer stop()
		for i := range 20 {
			time.Sleep(idleLimit - idleLimit/looks)
			if ctx.Err() != nil {
				t.Fatalf("given up after %d bytes: %v", i, context.Cause(ctx))
			}
			[]*session{d.session, other.session}[i%2].bytes.Add(1)
		}
		time.Sleep(idleLimit + 2*idleLimit/looks)
		if !errors.As(context.Cause(ctx), new(*stillError)) {
			t.Error("what stands still is not given up")
		}
	})
}

// TestOwnersResponder: a responder whose initiator has started it does not give up what stands still.
func TestOwnersResponder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var moved atomic.Uint64
		defer watch(t.Context(), 0, moved.Load, func() { t.Error("given up") })()
		time.Sleep(time.Hour)
	})
}

// A slowConn takes a part of a write at a time, and tells of each.
type slowConn struct {
	*testrig.Conn
	took func(n int)
}

func (c slowConn) Write(b []byte) (int, error) {
	c.took(len(b))
	return len(b), nil
}

// TestSlowWrite: a message of plain TCP that takes long to write shows that it moves before it is written.
func TestSlowWrite(t *testing.T) {
	var moved atomic.Int64
	var seen []int64
	l := new(tcpLane)
	l.use(slowConn{took: func(int) { seen = append(seen, moved.Load()) }}, &moved)
	testrig.Must(t, (&tcpRun{tcpLane: l}).write(make([]byte, 2*writeChunk+1)))
	if len(seen) != 3 || seen[1] != writeChunk || seen[2] != 2*writeChunk || moved.Load() != 2*writeChunk+1 {
		t.Errorf("had moved before each part: %d; in the end %d", seen, moved.Load())
	}
}

// TestPolledReads: bytes of plain TCP that were polled have moved.
func TestPolledReads(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	out, err := net.Dial("tcp", ln.Addr().String())
	testrig.Must(t, err)
	defer out.Close()
	in, err := ln.Accept()
	testrig.Must(t, err)
	defer in.Close()
	var moved atomic.Int64
	l := new(tcpLane)
	l.use(in, &moved)
	_, err = out.Write([]byte("abc"))
	testrig.Must(t, err)
	for _, poll := range []bool{true, false} {
		r, before := &tcpRun{tcpLane: l, job: job{Poll: poll}}, moved.Load()
		n, err := r.read(make([]byte, 1))
		if n != 1 || err != nil || moved.Load() != before+1 {
			t.Errorf("polled %v: got %d bytes, %v; %d have moved", poll, n, err, moved.Load()-before)
		}
	}
}
