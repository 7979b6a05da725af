package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
)

func listen(t *testing.T) (context.Context, *iwarp.Listener) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ctx, ln
}

// TestRecords: all records arrive, whole and in order, many times round the ring, also where the reader takes its time: the
// writer touches no slot that was not read.
func TestRecords(t *testing.T) {
	ctx, ln := listen(t)
	var want, got []string
	for i := range 500 {
		want = append(want, fmt.Sprint(i, strings.Repeat("x", i%(textLen-2))))
	}
	written := make(chan error, 1)
	go func() { written <- write(ctx, ln.Addr().String(), want) }()
	if err := receive(ctx, ln, func(text string) {
		got = append(got, text)
		for range len(got) % 20 {
			runtime.Gosched()
		}
	}); err != nil {
		t.Error(err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d records, not the %d that were written", len(got), len(want))
	}
}

// TestWriterGone: what does not fit is not written, and a reader that polls for what will never come is told why.
func TestWriterGone(t *testing.T) {
	ctx, ln := listen(t)
	received := make(chan error, 1)
	go func() { received <- receive(ctx, ln, func(string) {}) }()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := write(ctx, ln.Addr().String(), []string{strings.Repeat("x", textLen+1)}); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
	if err := <-received; !errors.Is(err, iwarp.ErrClosed) {
		t.Errorf("the reader: %v", err)
	}
	if err := write(gone, ln.Addr().String(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a writer that is canceled: %v", err)
	}
}

// TestStranger: a peer that says nothing, or has another byte order, gets no connection.
func TestStranger(t *testing.T) {
	ctx, ln := listen(t)
	received := make(chan error, 1)
	go func() { received <- receive(ctx, ln, func(string) {}) }()
	d := iwarp.Dialer{NoFallback: true}
	if qp, err := d.Dial(ctx, "tcp", ln.Addr().String()); err == nil {
		_ = qp.Close()
		t.Error("a peer without private data was accepted")
	}
	if err := <-received; err == nil {
		t.Error("the reader has no error")
	}
	if _, err := advertised(append(make([]byte, iwarp.RemoteLen), 8, 7, 6, 5, 4, 3, 2, 9)); err == nil {
		t.Error("a wrong order was taken")
	}
}
