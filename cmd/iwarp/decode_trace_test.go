package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/testrig"
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
