package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// tally counts what a trace has.
type tally struct {
	decode.Ignore
	connections, messages, reads, findings int
}

func (n *tally) Found(*decode.Connection) { n.connections++ }

func (n *tally) FPDU(_ *decode.Connection, f *decode.FPDU) {
	if f.HasSegment && f.Segment.Last {
		n.messages++
	}
}
func (n *tally) Read(*decode.Connection, *decode.Read)       { n.reads++ }
func (n *tally) Finding(*decode.Connection, *decode.Finding) { n.findings++ }

// TestDecodeTrace writes traces of captures: each message is an event, each Read two, and each finding one.
func TestDecodeTrace(t *testing.T) {
	for _, in := range testrig.Captures(t, "../../interop/testdata/captures") {
		name := filepath.Join(t.TempDir(), "trace.json")
		var out, errs bytes.Buffer
		run([]string{"decode", in, "--trace", name}, streams{&out, &errs})
		b, err := os.ReadFile(name)
		testrig.Must(t, err)
		var events []traceEvent
		if err := json.Unmarshal(b, &events); err != nil {
			t.Errorf("%s: %v in %.200s", in, err, b)
			continue
		}
		file, err := os.Open(in)
		testrig.Must(t, err)
		defer file.Close()
		want := &tally{}
		_, err = decode.Run(file, decode.Config{}, want)
		testrig.Must(t, err)
		n := map[string]int{}
		for _, e := range events {
			n[e.Phase]++
			if e.Process < 1 || e.Thread < 1 || e.Time < 0 || e.Time > 1e9 || e.Name == "" {
				t.Errorf("%s: %+v", in, e)
			}
		}
		if n["X"] != want.messages || n["b"] != want.reads || n["e"] != want.reads || n["i"] != want.findings ||
			n["M"] != 3*want.connections || !strings.Contains(string(b), "192.168.") && !strings.Contains(string(b), "127.0.0.1:") {
			t.Errorf("%s: %v, want %+v", in, n, want)
		}
	}
}

// TestDecodeTraceOfOverlaps has two Reads answered in turns, and a connection that is found after another, and began
// before it.
func TestDecodeTraceOfOverlaps(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace.json")
	file, err := openOutput("decode", "trace", name)
	testrig.Must(t, err)
	trace := newTraceFile(file)
	at := func(us int) capture.Stamp {
		return capture.Stamp{Number: uint64(us), Time: time.Unix(1000, 0).Add(time.Duration(us) * time.Microsecond)}
	}
	early, late := &decode.Connection{TCP: &capture.Connection{First: at(1)}}, &decode.Connection{TCP: &capture.Connection{First: at(5)}}
	trace.after()(&capture.Packet{Time: at(0).Time})
	part := func(us int, stag uint32, last bool) {
		f := &decode.FPDU{First: at(us), Last: at(us), HasSegment: true, Op: rdmap.OpReadResponse}
		f.Segment.Tagged, f.Segment.STag, f.Segment.Last = true, stag, last
		trace.FPDU(late, f)
	}
	trace.Found(late)
	part(10, 1, false)
	part(20, 2, false)
	part(30, 1, true)
	part(40, 2, true)
	part(40, 3, true)
	trace.Found(early)
	trace.FPDU(early, &decode.FPDU{First: at(2), Last: at(3), HasSegment: true, Segment: ddp.Segment{Header: ddp.Header{Last: true}}})
	testrig.Must(t, trace.end(true))
	b, err := os.ReadFile(name)
	testrig.Must(t, err)
	var events []traceEvent
	testrig.Must(t, json.Unmarshal(b, &events))
	ends, of := map[int]float64{}, map[int]int{}
	var starts []float64
	for _, e := range events {
		if p, ok := of[e.Thread]; ok && p != e.Process {
			t.Errorf("thread %d is of processes %d and %d", e.Thread, p, e.Process)
		}
		of[e.Thread] = e.Process
		if e.Phase != "X" {
			continue
		}
		if starts = append(starts, e.Time); e.Time < ends[e.Thread] {
			t.Errorf("%+v begins before the one before it ends, at %v", e, ends[e.Thread])
		}
		ends[e.Thread] = e.Time + *e.Duration
	}
	if want := []float64{10, 20, 40, 2}; !slices.Equal(starts, want) {
		t.Errorf("events begin at %v, want %v", starts, want)
	}
}

// TestDecodeTraceOfNothing has no connection in the capture.
func TestDecodeTraceOfNothing(t *testing.T) {
	c := newScene(t)
	c.bystanders(1000)
	in, name := c.save(), filepath.Join(t.TempDir(), "trace.json")
	var out, errs bytes.Buffer
	status := run([]string{"decode", in, "--trace", name}, streams{&out, &errs})
	if status := run([]string{"decode", in, "--trace", in + "x"}, streams{&out, &errs}); status != statusFailed {
		t.Errorf("a new trace: status %d: %s", status, &errs)
	}
	testrig.Must(t, os.WriteFile(in+"x", []byte("something else"), 0o600))
	errs.Reset()
	run([]string{"decode", in, "--trace", in + "x"}, streams{&out, &errs})
	if !strings.Contains(errs.String(), "exists and is not a trace: name another file") {
		t.Errorf("%s", &errs)
	}
	if b, err := os.ReadFile(name); status != statusFailed || err != nil || string(b) != "[]\n" {
		t.Errorf("status %d: %q (%v)", status, b, err)
	}
}
