package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/conform"
)

// TestGroups: on a terminal there is a line for each group, failures stand between them, and the estimate goes down.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, line bytes.Buffer
		p := &groupPrinter{out: &out, fail: func(r *conform.Result) { out.WriteString("FAIL " + r.Case.ID + "\n") },
			line: &countLine{progressLine: &progressLine{w: &line, width: 80}, all: 4, began: time.Now()}}
		for _, r := range []conform.Result{{Case: conform.Case{ID: "a/one"}, Verdict: conform.Pass},
			{Case: conform.Case{ID: "a/two"}, Verdict: conform.Fail}, {Case: conform.Case{ID: "b/one"}, Verdict: conform.NotApplicable}} {
			time.Sleep(2 * time.Second)
			p.result(&r)
		}
		p.end()
		const want = "FAIL a/two\n" +
			"a            1 passed, 1 failed, 0 not applicable, 0 inconclusive\n" +
			"b            0 passed, 0 failed, 1 not applicable, 0 inconclusive\n"
		if out.String() != want {
			t.Errorf("printed:\n%s", out.String())
		}
		for _, text := range []string{"█████░░░░░░░░░░░░░░░ 1/4  6s left  a/one", "██████████░░░░░░░░░░ 2/4  4s left  a/two",
			"███████████████░░░░░ 3/4  2s left  b/one"} {
			if !strings.Contains(line.String(), text) {
				t.Errorf("no %q in %q", text, line.String())
			}
		}
	})
}

// TestNarrowLine: a line is cut at the width of the terminal, between characters.
func TestNarrowLine(t *testing.T) {
	var b bytes.Buffer
	(&progressLine{w: &b, width: 8}).text(bar(1, 2))
	if want := "\r\x1b[K" + strings.Repeat("█", 7); b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
