package usertcp

import (
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// goroutines are those of stacks.
func goroutines() (all []string) {
	b := make([]byte, 4<<20)
	for g := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
		if strings.Contains(g, "gvisor.dev/") || strings.Contains(g, "usertcp.(") &&
			!strings.Contains(g, "usertcp.goroutines") {
			all = append(all, g)
		}
	}
	return all
}

// TestClose holds that no goroutine is left after Close, whatever was under way.
func TestClose(t *testing.T) {
	for range 3 {
		a, b, err := Pair(Config{}, bad(5), bad(6))
		must(t, err)
		l, err := b.Listen(context.Background(), "tcp", "192.0.2.2:7174")
		must(t, err)
		done := make(chan bool, 20)
		for range 10 {
			out, in := dialed(t, a, l)
			go func() { _, err := out.Write(make([]byte, 10<<20)); done <- err != nil }()
			go func() { _, err := in.Read(make([]byte, 1)); done <- err == nil }()
		}
		for range 10 {
			if !<-done {
				t.Error("a Write came to its end, or a Read failed")
			}
		}
		must(t, a.Close())
		must(t, b.Close())
		must(t, b.Close())
		for range 10 {
			if !<-done {
				t.Error("a Write came to its end")
			}
		}
	}
	var left []string
	for end := time.Now().Add(testrig.Soon); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if left = goroutines(); len(left) == 0 {
			return
		}
	}
	t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
}

// TestClosedInVain: what a closed connection still holds is given up where the peer, whose half has ended, takes no
// more of it.
func TestClosedInVain(t *testing.T) {
	c, s := connection(t, Config{SendBuffer: 1 << 20, ReceiveBuffer: 1 << 16, CloseTimeout: time.Millisecond,
		MaxRTO: 200 * time.Millisecond}, Path{}, Path{})
	for total := 0; total < 1<<18; { // more than the peer has room for
		must(t, c.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
		n, _ := c.Write(make([]byte, 1<<18))
		total += n
	}
	must(t, s.CloseWrite())
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("got %v", err)
	}
	must(t, c.Close())
	for end := time.Now().Add(testrig.Soon); tcp.EndpointState(
		c.ep.State()) != tcp.StateError; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the connection is in state %v", tcp.EndpointState(c.ep.State()))
		}
	}
	if <-c.PeerAcked(); !errors.Is(c.LossError(), syscall.ETIMEDOUT) {
		t.Errorf("the end is %v", c.LossError())
	}
	if _, err := io.Copy(io.Discard, s); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the peer got %v", err)
	}
}

// TestPatience: a peer is waited for as long as it acknowledges something, however little, within each CloseTimeout.
func TestPatience(t *testing.T) {
	p := patience{una: math.MaxUint32}
	for i, look := range []struct {
		una  uint32
		lost bool
	}{{math.MaxUint32, false}, {math.MaxUint32, false}, {math.MaxUint32, false}, {0, false}, {0, false}, {0, false},
		{0, false}, {1, false}, {1, false}, {1, false}, {1, false}, {1, true}} {
		if lost := p.lost(look.una); lost != look.lost {
			t.Errorf("look %d, with %d acknowledged: lost %t", i, look.una, lost)
		}
	}
}

// An abortable is an endpoint that is only ever aborted.
type abortable struct {
	tcpip.Endpoint
	at time.Time
}

func (e *abortable) Abort() { e.at = time.Now() }

// TestPatienceLasts: a closed connection whose peer acknowledges something now and then goes on, and is reset when that
// has stopped for CloseTimeout.
func TestPatienceLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ep := new(abortable)
		c := &Conn{stack: &Stack{cfg: Config{CloseTimeout: 4 * time.Second}}, flow: new(flow), ep: ep}
		c.end.init()
		c.end.patience.wait(c)
		for range 10 {
			time.Sleep(3 * time.Second)
			c.flow.una.Add(1)
		}
		last := time.Now()
		time.Sleep(time.Minute)
		synctest.Wait()
		if took := ep.at.Sub(last); took < 4*time.Second || took > 5*time.Second || c.failed != syscall.ETIMEDOUT {
			t.Errorf("reset %v after the last acknowledgement: %v", took, c.failed)
		}
	})
}

// TestPatienceEnds: no timer is left where the end of a connection is known, be it before its Close or after.
func TestPatienceEnds(t *testing.T) {
	c, s := connection(t, Config{}, Path{}, Path{})
	must(t, s.CloseWrite())
	_, err := c.Read(make([]byte, 1))
	if err != io.EOF {
		t.Fatalf("got %v", err)
	}
	must(t, c.Close())
	<-c.PeerAcked()
	<-s.PeerAcked()
	must(t, s.Close())
	for _, end := range []*Conn{c, s} {
		<-end.end.over
		for _, w := range []*vigil{&end.end.patience.vigil, &end.end.parting.vigil} {
			if w.timer.Load().Stop() {
				t.Error("it is still looked whether the peer acknowledges anything")
			}
		}
	}
}
