package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/stream"
)

// TestFiles: files of any length arrive as they are, to many clients at once; what is not there is an error; and the server
// ends when it is told to.
func TestFiles(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	files := map[string][]byte{"empty": nil, "small": []byte("hello"), "large": bytes.Repeat([]byte("all of it, "), 1_000_000)}
	for name, content := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	ln, err := stream.Listen(ctx, "tcp", "127.0.0.1:0")
	must(t, err)
	url := "http://" + ln.Addr().String() + "/"
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- serve(serving, ln, dir) }()

	var all sync.WaitGroup
	for range 3 {
		for name, want := range files {
			all.Go(func() {
				var got bytes.Buffer
				if err := get(ctx, url+name, &got); err != nil || !bytes.Equal(got.Bytes(), want) {
					t.Errorf("%s: %d bytes, want %d (%v)", name, got.Len(), len(want), err)
				}
			})
		}
	}
	all.Wait()
	if err := get(ctx, url+"missing", new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a file that is not there: %v", err)
	}
	stop()
	must(t, <-served)
	if err := get(ctx, url+"small", new(bytes.Buffer)); err == nil {
		t.Error("the server has ended, and answers")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
