package perf_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/perf"
)

func TestOnlyTheInitiatorStatesOptions(t *testing.T) {
	addr, visits := perf.Responds(t, time.Minute)
	opts := perf.Options{
		Network: "tcp", Ops: []perf.Op{perf.Write}, Sizes: []int{300}, Depth: 9, Duration: time.Millisecond, QPs: 2,
		Markers: true, NoCRC: true, Dialect: mpa.DialectRFC6581,
	}
	report, err := perf.Connect(t.Context(), addr, opts, perf.Observer{})
	testrig.Must(t, err)
	n := report.Negotiated
	if !n.MarkersReceived || !n.MarkersSent || n.CRC || n.ORD != 9 || n.IRD != 9 {
		t.Errorf("markers both ways, no CRC, and a depth of 9 were asked for: got %+v", n)
	}
	if got := report.Results[0].TXDepth; got != 9 {
		t.Errorf("depth %d", got)
	}
	visit := <-visits
	if diff := cmp.Diff(opts, visit.Options); diff != "" || visit.Err != nil {
		t.Errorf("the responder: %v (-stated +arrived):\n%s", visit.Err, diff)
	}
}

func TestServeOneAfterTheOther(t *testing.T) {
	addr, visits := perf.Responds(t, time.Minute)
	for range 3 {
		if _, err := perf.Connect(t.Context(), addr, once(quick(64), perf.Send), perf.Observer{}); err != nil {
			t.Fatal(err)
		}
		if v := <-visits; v.Err != nil {
			t.Fatal(v.Err)
		}
	}
}

func TestServeRejectsASecondMeasurement(t *testing.T) {
	addr, _ := perf.Responds(t, time.Minute)
	var second error
	_, err := perf.Connect(t.Context(), addr, quick(64), perf.Observer{Connected: func(perf.Negotiated) {
		_, second = perf.Connect(t.Context(), addr, quick(64), perf.Observer{})
	}})
	if err != nil {
		t.Errorf("the first: %v", err)
	}
	var told *perf.PeerError
	if !errors.As(second, &told) || !told.UnderWay || second.Error() != told.Error() ||
		!errors.As(second, new(*iwarp.RejectError)) {
		t.Errorf("the second: got %v, want to be told that one is under way", second)
	}
}

func TestServeRejectsOthers(t *testing.T) {
	addr, _ := perf.Responds(t, time.Minute)
	rnic := iwarp.NewRNIC(iwarp.RNICConfig{})
	defer rnic.Close()
	pd, err := rnic.AllocPD()
	testrig.Must(t, err)
	d := iwarp.Dialer{PD: pd, MPA: mpa.Offer{PrivateData: []byte("not a hello")}}
	_, err = d.Dial(t.Context(), "tcp", addr)
	var rejected *iwarp.RejectError
	if !errors.As(err, &rejected) {
		t.Fatalf("got %v, want a rejection", err)
	}
	rejected.Conn.Close()
	if !strings.Contains(string(rejected.PrivateData), "not one of iwarp perf") {
		t.Errorf("private data %q", rejected.PrivateData)
	}
	if _, err := perf.Connect(t.Context(), addr, quick(64), perf.Observer{}); err != nil {
		t.Errorf("a measurement after that: %v", err)
	}
}

// TestConnectToAnother: a peer that accepts any connection, and has short receives, is no
// responder of measurements.
func TestConnectToAnother(t *testing.T) {
	ln, err := iwarp.Listen(t.Context(), "tcp", "127.0.0.1:0")
	testrig.Must(t, err)
	defer ln.Close()
	go func() {
		if req, err := ln.Accept(t.Context()); err == nil {
			_, _ = req.Accept(t.Context(), iwarp.AcceptConfig{Prepare: func(qp *iwarp.QP) error {
				mr, err := qp.PD().Register(make([]byte, 16), iwarp.LocalWrite)
				if err != nil {
					return err
				}
				return qp.PostRecv(&iwarp.RecvWR{SGL: []iwarp.SGE{mr.Slice(0, 16)}})
			}})
		}
	}()
	_, err = perf.Connect(t.Context(), ln.Addr().String(), quick(64), perf.Observer{})
	if err == nil || !strings.Contains(err.Error(), "no iwarp serve or perf --listen answers there") {
		t.Errorf("got %v", err)
	}
}

func TestConnectCanceled(t *testing.T) {
	addr, visits := perf.Responds(t, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	opts := perf.Options{Duration: time.Hour} // a slice would take minutes
	_, err := perf.Connect(ctx, addr, opts, perf.Observer{Progress: func(perf.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if v := <-visits; v.Err == nil {
		t.Error("the responder did not notice")
	}
	if _, err := perf.Connect(t.Context(), addr, quick(64), perf.Observer{}); err != nil {
		t.Errorf("a measurement after that: %v", err)
	}
}

func TestConnectToNobody(t *testing.T) {
	if _, err := perf.Connect(t.Context(), "127.0.0.1:1", quick(64), perf.Observer{}); err == nil {
		t.Error("connected to port 1")
	}
}

// TestRunTwoShallow: where few messages are under way, the responder of latency has no more buffers than that takes.
func TestRunTwoShallow(t *testing.T) {
	addr, visits := perf.Responds(t, time.Minute)
	for depth := 1; depth <= 5; depth++ {
		opts := perf.Options{Ops: []perf.Op{perf.Send}, Sizes: []int{4096}, Depth: depth, NoBaseline: true,
			Duration: time.Millisecond}
		report, err := perf.RunTwo(t.Context(), addr, opts, perf.Observer{})
		testrig.Must(t, err)
		<-visits
		wantSane(t, report.Results[0], false)
	}
}
