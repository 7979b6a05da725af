package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/perf"
)

// TestPerfLetters: numbers as perftest has them: seconds, bytes with a K, and one message under way.
func TestPerfLetters(t *testing.T) {
	var out strings.Builder
	err := execute(t.Context(), strings.Fields("perf --processes 1 --json --tcp off --op send -s 4K -I 4K -t 1 -D 0.002"), streams{&out, io.Discard})
	testrig.Must(t, err)
	var got struct{ Options perf.Options }
	testrig.Must(t, json.Unmarshal([]byte(out.String()), &got))
	if o := got.Options; o.Duration != 2*time.Millisecond || o.Inline != 4096 || o.Depth != 1 {
		t.Errorf("%+v", o)
	}
	for text, want := range map[string]time.Duration{"2": 2 * time.Second, "0.5": time.Second / 2,
		"400ms": 400 * time.Millisecond, "1m": time.Minute} {
		if got, err := parseSpan(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "1x", "NaN", "1e3", "99999999999999", "0", "-1", "-1s"} {
		if got, err := parseSpan(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

// TestPerfLettersRefused: what is no such number is said to be none.
func TestPerfLettersRefused(t *testing.T) {
	for _, args := range []string{"-D nothing", "-D -1", "-D 0", "-I 1Q", "-I -1", "-I 9999999999G",
		"-I 99999999G -s 64", "-t 0", "-t -1", "-r 1"} {
		err := execute(t.Context(), append([]string{"perf", "--processes", "1"}, strings.Fields(args)...),
			streams{io.Discard, io.Discard})
		if statusOf(t.Context(), err) != statusUsage {
			t.Errorf("%s: %v", args, err)
		}
	}
}
