package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
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

// TestReadLine reads a file: after a while the line says how far that is, and nothing at once.
func TestReadLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		r := &readLine{copyLine: copyLine{progressLine: &progressLine{w: &b, width: 100}}, from: strings.NewReader("1234")}
		r.start("", 4)
		r.told = r.began
		for range 2 {
			if _, err := r.Read(make([]byte, 2)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(copyShow)
		}
		if !strings.Contains(b.String(), "100%") || strings.Contains(b.String(), " 50%") {
			t.Errorf("shown: %q", b.String())
		}
	})
}

// TestSizeOf: a file has a size, and what is no file has none.
func TestSizeOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	testrig.Must(t, os.WriteFile(file, make([]byte, 77), 0o600))
	f, err := os.Open(file)
	testrig.Must(t, err)
	defer f.Close()
	if size, is := sizeOf(f); !is || size != 77 {
		t.Errorf("a file: %d, %v", size, is)
	}
	if _, is := sizeOf(strings.NewReader("")); is {
		t.Error("a text is taken for a file")
	}
}
