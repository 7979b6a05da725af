package iwarp_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/rdmap"
)

// A prober is a log handler that uses the QPs that it is told of, as it may: it runs
// without a lock.
type prober struct {
	rnic  atomic.Pointer[iwarp.RNIC]
	calls atomic.Int64
	end   bool // close a QP whose connection has ended

	mu   sync.Mutex
	said []string
}

func (p *prober) Enabled(context.Context, slog.Level) bool { p.use(); return true }
func (p *prober) WithAttrs([]slog.Attr) slog.Handler       { return p }
func (p *prober) WithGroup(string) slog.Handler            { return p }

func (p *prober) Handle(_ context.Context, r slog.Record) error {
	p.use()
	p.mu.Lock()
	p.said = append(p.said, r.Message)
	p.mu.Unlock()
	if p.end && r.Message == "iwarp: connection ended" {
		for _, qp := range p.rnic.Load().QPs() {
			_ = qp.Close()
		}
	}
	return nil
}

// use calls whatever takes a QP's lock.
func (p *prober) use() {
	rnic := p.rnic.Load()
	if rnic == nil {
		return
	}
	rnic.Stats()
	for _, qp := range rnic.QPs() {
		p.calls.Add(1)
		_, _, _, _ = qp.State(), qp.Err(), qp.Stats(), qp.Query()
		_ = qp.PostRecv(nil)
		qp.SendCQ().Poll(make([]iwarp.WC, 1)[:0])
	}
}

// TestLogHandlerUsesQP has a log handler call the QP that a record is about: at every
// level, at every moment of a connection, and for its Close too. What was logged stays
// in order.
func TestLogHandlerUsesQP(t *testing.T) {
	for _, end := range []bool{false, true} {
		p := &prober{end: end}
		rnic := rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(p)})
		p.rnic.Store(rnic)
		ini, res := rig.Setup{
			Dialer: iwarp.Dialer{PD: rig.NewPD(t, rnic)},
			Accept: iwarp.AcceptConfig{PD: rig.NewPD(t, rnic)},
		}.Connect(t)
		rig.Works(t, ini, res)
		rig.Finish(t, ini, res)
		ended := func() (n int) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, s := range p.said {
				if s == "iwarp: connection ended" {
					n++
				}
			}
			return n
		}
		rig.Until(t, func() bool { return ended() == 2 }, "both ends to be logged")
		if p.calls.Load() == 0 {
			t.Error("the handler has called nothing")
		}
	}
}

// TestLogHandlerCloses has a log handler close the QP that a record is about, whatever
// goroutine it is that logs: Close drains, and does not wait for its timeout.
func TestLogHandlerCloses(t *testing.T) {
	t.Parallel()
	for _, msg := range []string{
		"iwarp: connection established", "iwarp: state", "iwarp: FPDU sent", "iwarp: FPDU received",
		"iwarp: " + iwarp.EventHalfClosed.String(), "iwarp: connection ended",
	} {
		var rnic atomic.Pointer[iwarp.RNIC]
		closed := make(chan error, 1)
		var once sync.Once
		h := rig.LogHandler(func(r slog.Record) {
			if r.Message == msg {
				once.Do(func() {
					for _, qp := range rnic.Load().QPs() {
						closed <- qp.Close()
					}
				})
			}
		})
		rnic.Store(rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(h)}))
		patient := iwarp.QPConfig{CloseTimeout: time.Hour, CloseLimit: -1}
		ini, res := rig.Setup{Accept: iwarp.AcceptConfig{PD: rig.NewPD(t, rnic.Load()), QP: patient}}.Connect(t)
		_ = res.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Remote: iwarp.Remote{STag: 1}}) // if it is still up
		var wc [1]iwarp.WC
		for range 100 {
			res.SendCQ().Poll(wc[:]) // it receives by itself
		}
		if err := ini.Close(); err != nil {
			t.Errorf("%s: the peer: %v", msg, err)
		}
		select {
		case err := <-closed:
			if err != nil {
				t.Errorf("%s: %v", msg, err)
			}
		case <-rig.Within(t).Done():
			t.Fatalf("%s: Close waits", msg)
		}
	}
}

// TestLogBounded has a log handler that does not come back, while many FPDUs are received:
// a bounded number of records waits for it, it is told how many do not, and the end of the
// connection is not among them.
func TestLogBounded(t *testing.T) {
	release := make(chan struct{})
	var up atomic.Bool // before that, who sets up the connection may be the one that logs
	var mu sync.Mutex
	said := map[string]int{}
	dropped, none := int64(0), false
	ended := make(chan struct{})
	heard := rig.Listening{T: t, Said: map[string]bool{}}
	h := rig.LogHandler(func(r slog.Record) {
		if r.Message == "iwarp: FPDU received" && up.Load() {
			<-release
		}
		mu.Lock()
		defer mu.Unlock()
		said[r.Message]++
		heard.Hear(r)
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "records" {
				dropped += a.Value.Int64()
				none = none || a.Value.Int64() == 0
			}
			return true
		})
		if r.Message == "iwarp: connection ended" {
			close(ended)
		}
	})
	pd := rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(h)}))
	ini, res := rig.Setup{Accept: iwarp.AcceptConfig{PD: pd}}.Connect(t)
	up.Store(true)
	const writes = 20000 // more than what the handler has taken already, and what waits for it
	for range writes {
		if _, err := ini.Write(rig.Within(t), iwarp.SGE{}, iwarp.Remote{STag: 1}); err != nil {
			t.Fatal(err)
		}
	}
	rig.Finish(t, ini, res)
	received := int(res.Stats().ReceivedFPDUs)
	close(release)
	rig.Wait(t, ended, "the last record")
	rig.Until(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return said["iwarp: FPDU received"]+int(dropped) == received
	}, "all records to be written or counted")
	mu.Lock()
	defer mu.Unlock()
	if waited := said["iwarp: FPDU received"]; waited < 8<<10 || dropped == 0 {
		t.Errorf("%d FPDUs were logged and %d records dropped", waited, dropped)
	}
	if none {
		t.Error("it is said that no records were dropped")
	}
}

// TestLogTellsCause: the record of the end of a connection has its cause.
func TestLogTellsCause(t *testing.T) {
	causes := make(chan string, 2)
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(rig.LogHandler(func(r slog.Record) {
		if r.Message != "iwarp: connection ended" {
			return
		}
		told := map[string]string{}
		r.Attrs(func(a slog.Attr) bool { told[a.Key] = a.Value.String(); return true })
		if told["qp"] == "" || told["local"] == "" || told["peer"] == "" {
			t.Errorf("the record has %v", told)
		}
		causes <- told["cause"]
	}))})
	ini, res := rig.Setup{Dialer: iwarp.Dialer{PD: rig.NewPD(t, rnic)},
		Accept: iwarp.AcceptConfig{PD: rig.NewPD(t, rnic)}}.Connect(t)
	rig.Works(t, ini, res)
	_ = ini.Abort()
	for range 2 {
		select {
		case cause := <-causes:
			if cause == "" {
				t.Error("no cause")
			}
		case <-rig.Within(t).Done():
			t.Fatal("the end is not logged")
		}
	}
}

// messages are the beginnings of what is logged of connections, but for TestLogBounded's about dropped records.
var messages = []string{
	"iwarp: cannot accept a TCP connection now",
	"iwarp: connection ended",
	"iwarp: connection established",
	"iwarp: FPDU ",
	"iwarp: startup failed",
	"iwarp: startup frame ",
	"iwarp: state",
	"iwarp: the peer has said nothing since our first FPDU: ",
	"iwarp: timeouts of TCP were not set",
	"iwarp: trying again with ",
}

// TestLogTellsAddresses brings about every message that is logged: each has the addresses of both ends.
func TestLogTellsAddresses(t *testing.T) {
	l := &rig.Listening{T: t, Said: map[string]bool{}}
	rnic := rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(rig.LogHandler(l.Hear))})
	pd := rig.NewPD(t, rnic)
	ini, res := rig.Setup{ // which asks for a timeout of a connection that is not TCP's
		Dialer: iwarp.Dialer{PD: pd, QP: iwarp.QPConfig{UserTimeout: time.Second},
			Wrap: func(c net.Conn) (net.Conn, error) { return &callback{Conn: c}, nil }},
		Accept: iwarp.AcceptConfig{PD: pd},
	}.Connect(t)
	rig.Works(t, ini, res)
	rig.Finish(t, ini, res)
	triesAgain(t, pd)
	failsToStart(t, rnic)
	saysNothing(t, l)
	for _, m := range messages {
		rig.Until(t, func() bool { return l.Has(m) }, m)
	}
}

// triesAgain connects to a peer that knows revision 1 only.
func triesAgain(t *testing.T, pd *iwarp.PD) {
	t.Helper()
	ln := rig.ListenTCP(t)
	ini := &rig.End{T: t}
	dialed := ini.Dials(iwarp.Dialer{PD: pd}, ln)
	_ = rig.AcceptRequest(t, ln).Conn.Close()
	p := rig.AcceptRequest(t, ln)
	p.Send(rig.Frame(rig.Reply(1)))
	rig.Must(t, <-dialed)
	_ = ini.Abort()
}

// saysNothing has a peer that may be siw be silent for a while.
func saysNothing(t *testing.T, l *rig.Listening) {
	synctest.Test(t, func(t *testing.T) {
		a, b := rig.NewPipe(t)
		p := rig.NewPeer(t, a)
		d := iwarp.Dialer{PD: rig.NewPD(t, rig.NewRNIC(t, iwarp.RNICConfig{Logger: slog.New(rig.LogHandler(l.Hear))})),
			MPA: mpa.Offer{Dialect: mpa.DialectRFC5044}}
		p.Meanwhile(func() {
			p.WantFrame(mpa.KeyRequest)
			p.Send(rig.Frame(rig.Reply(1)))
			p.Want(rdmap.OpSend)
		})
		qp, err := d.Initiate(t.Context(), b, nil)
		rig.Must(t, err)
		rig.Must(t, qp.PostSend(&iwarp.SendWR{Op: iwarp.OpSend, Unsignaled: true}))
		time.Sleep(4 * time.Second) // of virtual time
		_ = qp.Abort()
	})
}

// failsToStart has a Listener get something that is no Request, after the system had no descriptors for a while.
func failsToStart(t *testing.T, rnic *iwarp.RNIC) {
	t.Helper()
	broken := &brokenListener{Listener: rig.ListenTCP(t),
		errs: []error{temporaryError{errors.New("too many open files")}}}
	ln := (&iwarp.ListenConfig{RNIC: rnic}).NewListener(broken)
	t.Cleanup(func() { _ = ln.Close() })
	rig.DialPeer(t, ln.Addr()).Send(make([]byte, mpa.StartupHeaderLen))
}
