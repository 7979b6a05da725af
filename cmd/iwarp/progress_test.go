package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCopyLine copies 10 MiB in steps of 1 MiB and 60 ms, of which every second one is shown.
func TestCopyLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := copyLine{progressLine: &progressLine{w: &b, width: 100}}
		l.start(": photo.jpg", 10<<20)
		for range 5 {
			time.Sleep(60 * time.Millisecond)
			l.moved(1 << 20)
		}
		got := strings.Split(strings.ReplaceAll(b.String(), "\r\x1b[K", "\n"), "\n")[1:]
		want := []string{
			" 10%  1.0 of 10.0 MiB, 16.7 MiB/s, 1s left: photo.jpg",
			" 30%  3.0 of 10.0 MiB, 16.7 MiB/s, 0s left: photo.jpg",
			" 50%  5.0 of 10.0 MiB, 16.7 MiB/s, 0s left: photo.jpg",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("shown:\n%s", strings.Join(got, "\n"))
		}
		if got := howFar(0, 0, 0); got != "  0%  0.0 of 0.0 MiB, 0.0 MiB/s, 0s left" {
			t.Errorf("of nothing: %q", got)
		}
	})
}
