package perf

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// besides are options of a measurement beside plain TCP, which takes a moment.
func besides(qps int) Options {
	return Options{Ops: []Op{Send}, Sizes: []int{64 << 10}, QPs: qps, Duration: time.Millisecond}
}

// relays passes connections on to an address for the length of the test. It returns its own address, and how many there
// were.
func relays(t *testing.T, to string) (addr string, count *atomic.Int32) {
	t.Helper()
	ln, err := testrig.ListenTCP(t.Context())
	testrig.Must(t, err)
	count = new(atomic.Int32)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			all.Go(func() { passes(in, out) })
			all.Go(func() { passes(out, in) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		all.Wait()
	})
	return ln.Addr().String(), count
}

// passes carries one direction, and its end.
func passes(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
}

// TestPlainByRelay measures through a relay, which plain TCP passes as the QPs and the control connection do.
func TestPlainByRelay(t *testing.T) {
	to, visits := Responds(t, time.Minute)
	addr, count := relays(t, to)
	const qps = 3
	report, err := Connect(t.Context(), addr, besides(qps), Observer{})
	testrig.Must(t, err)
	if report.Results[0].TCP == nil {
		t.Error("no figures of plain TCP")
	}
	if got := count.Load(); got != 1+2*qps {
		t.Errorf("%d connections have passed the relay, want %d", got, 1+2*qps)
	}
	testrig.Must(t, (<-visits).Err)
}

// A watched is a connection whose bytes are counted, and that is built on another. It notes the last deadline.
type watched struct {
	net.Conn
	bytes    atomic.Int64
	closed   atomic.Bool
	deadline atomic.Pointer[time.Time]
}

func (w *watched) NetConn() net.Conn { return w.Conn }

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.bytes.Add(int64(n))
	return n, err
}

func (w *watched) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	w.bytes.Add(int64(n))
	return n, err
}

func (w *watched) SetDeadline(t time.Time) error {
	w.deadline.Store(&t)
	return w.Conn.SetDeadline(t)
}

// goesOn wants plain TCP to have no deadline, after the startup had one.
func (w *watched) goesOn(t *testing.T) {
	t.Helper()
	if last := w.deadline.Load(); last == nil || !last.IsZero() {
		t.Errorf("the deadline is %v", last)
	}
}

func (w *watched) Close() error {
	w.closed.Store(true)
	return w.Conn.Close()
}

// A watching Listener has watched connections.
type watching struct {
	net.Listener
	mu  sync.Mutex
	all []*watched
}

func (l *watching) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, &watched{Conn: c})
	return l.all[len(l.all)-1], nil
}

// TestPlainBeneath has the responder's connections built on others, as those of TLS are: plain TCP begins there and
// goes on beneath, as its initiator does that has it wrapped. What it began in is closed at the end.
func TestPlainBeneath(t *testing.T) {
	under, err := testrig.ListenTCP(t.Context())
	testrig.Must(t, err)
	ln := &watching{Listener: under}
	served, ctx := make(chan error, 1), t.Context()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := NewListener(ln)
	go func() { served <- Serve(ctx, over, nil) }()
	var here []*watched
	_, err = Connect(t.Context(), under.Addr().String(), besides(2),
		Observer{WrapPlain: func(c net.Conn) (net.Conn, error) {
			here = append(here, &watched{Conn: c})
			return here[len(here)-1], nil
		}})
	testrig.Must(t, err)
	cancel()
	testrig.Must(t, errors.Join(<-served, over.Close()))
	few := 0
	for _, c := range ln.all {
		if c.bytes.Load() < 200 {
			few++
			c.goesOn(t)
		}
		if !c.closed.Load() {
			t.Error("a connection is not closed")
		}
	}
	if len(ln.all) != 5 || few != 2 {
		t.Errorf("%d connections, and %d on which the startup alone has passed", len(ln.all), few)
	}
	for _, c := range here {
		c.goesOn(t)
		if n := c.bytes.Load(); n == 0 || n > 200 {
			t.Errorf("%d bytes have passed what the initiator has wrapped", n)
		}
	}
	if len(here) != 2 {
		t.Errorf("the initiator has wrapped %d", len(here))
	}
}

// opens has the responder take in a QP, and wait for plain TCP beside it.
func (s *stranger) opens(opts Options) {
	s.t.Helper()
	opts, err := opts.Resolved()
	testrig.Must(s.t, err)
	_, err = s.d.ctl.call(s.t.Context(), request{Open: &opts})
	testrig.Must(s.t, err)
	testrig.Must(s.t, s.d.allocate(opts))
	s.d.qps[0].qp, err = s.d.dialQP(s.t.Context(), 0)
	testrig.Must(s.t, err)
}

// plain opens a connection of plain TCP as a hello says.
func (s *stranger) plain(h hello) error {
	s.t.Helper()
	h.plain = true
	conn := dials(s.t, s.d.addr)
	return s.d.announce(s.t.Context(), conn, h)
}

// dials opens a TCP connection for the length of the test.
func dials(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	testrig.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestPlainAmidOthers has others say nothing, a part of something, and garbage, where plain TCP is waited for, which
// comes then byte by byte: it is taken, and nothing but the rejection of its Request comes back.
func TestPlainAmidOthers(t *testing.T) {
	addr, _ := Responds(t, idleLimit)
	s := visits(t, addr)
	s.opens(Options{Sizes: []int{64}})
	h := hello{plain: true, session: s.d.id}
	for _, text := range []string{"", "MPA ID R", "GET / HTTP/1.1\r\n\r\n", string(h.encode()),
		strings.Repeat("\x00", 64)} {
		_, err := io.WriteString(dials(t, addr), text)
		testrig.Must(t, err)
	}
	m, err := mpa.NewInitiator(mpa.Offer{Dialect: mpa.DialectRFC6581, PrivateData: h.encode()})
	testrig.Must(t, err)
	conn := dials(t, addr)
	for _, b := range m.Start(time.Now()) {
		_, err := conn.Write([]byte{b})
		testrig.Must(t, err)
	}
	for m.Want() > 0 {
		b := make([]byte, m.Want())
		_, err := io.ReadFull(conn, b)
		testrig.Must(t, err)
		if _, err = m.Input(time.Now(), b); err != nil {
			break
		}
	}
	if r := m.Rejected(); r == nil || string(r.PrivateData) != string(h.encode()) {
		t.Fatalf("the answer is %v", r)
	}
	if _, err := s.d.ctl.call(t.Context(), request{Lanes: s.d.regions()}); err != nil {
		t.Errorf("all connections are there: %v", err)
	}
	s.d.close(true)
	if more, err := io.ReadAll(conn); len(more) > 0 || err != nil {
		t.Errorf("then %q comes (%v)", more, err)
	}
}

// TestPlainUnexpected refuses connections of plain TCP that no measurement waits for, and ends a measurement whose
// initiator does not keep to what it has announced.
func TestPlainUnexpected(t *testing.T) {
	for name, c := range map[string]struct {
		opts  Options
		first bool // one comes that is right
		plain func(s *stranger) hello
		want  string
		ends  bool
	}{
		"another session": {plain: func(s *stranger) hello { return hello{session: s.d.id + 1} },
			want: "no such measurement"},
		"beyond the last": {plain: func(s *stranger) hello { return hello{session: s.d.id, index: 2} },
			want: "no such connection", ends: true},
		"twice": {first: true, plain: func(s *stranger) hello { return hello{session: s.d.id} },
			want: "no such connection", ends: true},
		"where none is to": {opts: Options{NoBaseline: true},
			plain: func(s *stranger) hello { return hello{session: s.d.id} }, want: "no such connection", ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			addr, ended := Responds(t, idleLimit)
			s := visits(t, addr)
			c.opts.Sizes, c.opts.QPs = []int{64}, 2
			s.opens(c.opts)
			if c.first {
				testrig.Must(t, s.plain(hello{session: s.d.id}))
			}
			var told *PeerError
			if err := s.plain(c.plain(s)); !errors.As(err, &told) || !strings.Contains(told.Text, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if !c.ends {
				return
			}
			if v := <-ended; v.Err == nil {
				t.Error("the measurement goes on")
			}
			measures(t, addr)
		})
	}
}

// TestPlainUnknown has the initiator say that a connection is plain TCP to a peer that accepts it as a QP, and to one
// that rejects it for a reason of its own.
func TestPlainUnknown(t *testing.T) {
	ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	s := &stranger{t, &dialing{addr: ln.Addr().String()}}
	for _, accepts := range []bool{true, false} {
		answered := make(chan error, 1)
		go func() {
			req, err := ln.Accept(t.Context())
			if err == nil && accepts {
				_, err = req.Accept(t.Context(), iwarp.AcceptConfig{})
			} else if err == nil {
				err = req.Reject([]byte("not here"))
			}
			answered <- err
		}()
		err := s.plain(hello{})
		if testrig.Must(t, <-answered); errors.Is(err, errNotPlain) != accepts || err == nil {
			t.Errorf("accepted: %t; got %v", accepts, err)
		}
	}
}

// TestSilentClient gives up a client that says nothing, and one that says a part of something, when a Listener of
// package iwarp does.
func TestSilentClient(t *testing.T) {
	for _, text := range []string{"", "i", "MPA ID Req Frame"} {
		synctest.Test(t, func(t *testing.T) {
			under := testrig.NewListener("responder")
			ln := NewListener(under)
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- Serve(ctx, ln, nil) }()
			here, there := net.Pipe()
			testrig.Must(t, under.Offer(ctx, there))
			_, err := io.WriteString(here, text)
			testrig.Must(t, err)
			began := time.Now()
			_, err = io.Copy(io.Discard, here)
			testrig.Must(t, err)
			if took := time.Since(began); took > mpa.DefaultRequestTimeout {
				t.Errorf("%q: given up after %v", text, took)
			}
			cancel()
			testrig.Must(t, errors.Join(<-served, ln.Close()))
		})
	}
}
