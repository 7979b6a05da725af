package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/perf"
)

// TestInterruptedTwice: the second of two interrupts that come together, as timeout(1) sends them, does not end the
// process before it has written what it has.
func TestInterruptedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		began, stopped := time.Now(), make(chan time.Duration, 1)
		heedAgain(ctx, func() { stopped <- time.Since(began) })
		time.Sleep(time.Hour)
		began = time.Now()
		interrupt()
		if after := <-stopped; after != sameInterrupt {
			t.Errorf("a second interrupt ends the process after %v, and is to do so after %v", after, sameInterrupt)
		}
	})
}

// TestPerfInterrupted has JSON all the same, with what was measured before.
func TestPerfInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := execute(ctx, []string{"perf", "--json", "--processes", "1"}, streams{&out, io.Discard}); statusOf(ctx, err) != statusFine {
		t.Error(err)
	}
	var got struct {
		Interrupted bool
		Options     perf.Options
		Results     []perf.Result
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || !got.Interrupted || got.Results == nil || len(got.Options.Ops) != 3 || len(got.Options.Sizes) != 4 || got.Options.Duration != perf.DefaultDuration {
		t.Errorf("%v: %s", err, out.Bytes())
	}
	if bytes.Contains(out.Bytes(), []byte(`"negotiated"`)) {
		t.Errorf("nothing was negotiated: %s", out.Bytes())
	}
	out.Reset()
	p := (&perfCmd{JSON: true}).printer(streams{&out, io.Discard})
	p.observer().Result(perf.Result{Op: perf.Send, Size: 64})
	if err := errors.Join(p.interrupted(perf.Options{}), json.Unmarshal(out.Bytes(), &got)); err != nil || len(got.Results) != 1 || got.Results[0].Size != 64 {
		t.Errorf("%v: %s", err, out.Bytes())
	}
}

// TestInterruptedAtOnce has JSON of each command whose run was over before it began, in which nothing is wrong.
func TestInterruptedAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range []string{"matrix --json", "study --json", "probe --json 127.0.0.1:1", "probe --json --network sctp 127.0.0.1:1"} {
		var out bytes.Buffer
		err := execute(ctx, strings.Fields(args), streams{&out, io.Discard})
		var got struct{ Interrupted bool }
		if bad := json.Unmarshal(out.Bytes(), &got); err == nil || statusOf(ctx, err) != statusFine || bad != nil || !got.Interrupted {
			t.Errorf("%s: %v, %v: %s", args, err, bad, out.Bytes())
		}
	}
}
