// Package spinning_test has connections between two processes, whose waits look before they sleep.
package spinning_test

import (
	"context"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/internal/spin"
	"github.com/goiwarp/iwarp/internal/subprocess"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// The arguments by which the test's program is a server.
const (
	answers = "answer-messages"
	streams = "answer-stream"
)

func TestMain(m *testing.M) {
	servers := map[string]func(context.Context) error{answers: answer, streams: answerStream}
	if serve := servers[os.Args[len(os.Args)-1]]; serve != nil {
		if err := serve(context.Background()); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	rig.Main(m)
}

var receives = iwarp.Receives{Count: 16, Size: 64}

// answer offers memory, and sends every message of every connection back, until standard input ends.
func answer(ctx context.Context) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	l := new(iwarp.ListenConfig).NewListener(ln)
	pd, err := l.RNIC().AllocPD()
	if err != nil {
		return err
	}
	offered, err := pd.Register(make([]byte, 8), iwarp.RemoteRead|iwarp.RemoteWrite)
	if err != nil {
		return err
	}
	where, err := offered.Region().MarshalBinary()
	if err != nil {
		return err
	}
	cfg := iwarp.AcceptConfig{PD: pd, QP: iwarp.QPConfig{Receives: receives}, MPA: mpa.Answer{PrivateData: where}}
	ctx, stop := subprocess.UntilEOF(ctx)
	defer stop()
	subprocess.Announce(os.Stdout, ln.Addr())
	for {
		req, err := l.Accept(ctx)
		if err != nil {
			return nil //nolint:nilerr // standard input has ended
		}
		qp, err := req.Accept(ctx, cfg)
		if err != nil {
			return err
		}
		go func() {
			for m, err := range qp.Messages(ctx) {
				if err != nil || send(ctx, qp, m.Bytes()) != nil {
					break
				}
			}
			_ = qp.Close()
		}()
	}
}

func send(ctx context.Context, qp *iwarp.QP, b []byte) error {
	p, err := qp.Submit(ctx, &iwarp.SendWR{Inline: b})
	if err == nil {
		_, err = p.Wait(ctx)
	}
	return err
}

// turns has messages sent and answered, and returns how long the client's waits have looked.
func turns(t *testing.T, addr string, n int, rnic, qp time.Duration) time.Duration {
	t.Helper()
	r := iwarp.NewRNIC(iwarp.RNICConfig{Spin: rnic})
	pd, err := r.AllocPD()
	testrig.Must(t, err)
	d := iwarp.Dialer{PD: pd, QP: iwarp.QPConfig{Receives: receives, Spin: qp}}
	c, err := d.Dial(t.Context(), "tcp", addr)
	testrig.Must(t, err)
	defer func() { testrig.Must(t, c.Close()); testrig.Must(t, r.Close()) }()
	for i := range n {
		testrig.Must(t, send(t.Context(), c, []byte{byte(i)}))
		m, err := c.Receive(t.Context())
		testrig.Must(t, err)
		if b := m.Bytes(); len(b) != 1 || b[0] != byte(i) {
			t.Fatalf("turn %d: %v", i, b)
		}
		m.Done()
	}
	return c.Stats().SpinTime
}

// lacksLooks skips a test where no wait looks.
func lacksLooks(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no wait looks on a system that is not Unix")
	}
	if cpu := spin.ReadCPU(); cpu.Threads < 2 || cpu.Quota > 0 && cpu.Quota < 2 || cpu.Throttled > 0 {
		t.Skipf("no wait looks with %+v", cpu)
	}
}

// TestSpin: waits look by default, and where the QP or its RNIC says so. They do not where these say so.
func TestSpin(t *testing.T) {
	p, err := subprocess.Start(t.Context(), os.Stderr, answers)
	testrig.Must(t, err)
	defer func() { _ = p.Stop() }()
	for name, off := range map[string][2]time.Duration{"of the RNIC": {-1, 0}, "of the QP": {0, -1}} {
		if d := turns(t, p.Addr, 500, off[0], off[1]); d != 0 {
			t.Errorf("off by the setting %s, and they look for %v", name, d)
		}
	}
	lacksLooks(t)
	for name, on := range map[string][2]time.Duration{
		"default": {0, 0}, "that of the RNIC": {time.Millisecond, 0}, "that of the QP": {-1, time.Millisecond},
	} {
		rig.Until(t, func() bool { return turns(t, p.Addr, 500, on[0], on[1]) > 0 }, "looks by the setting "+name)
	}
}
