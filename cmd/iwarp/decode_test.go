package main

import (
	"bytes"
	"context"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/mpa"
)

// greedy returns the capture of a startup whose Reply has an ORD above the Request's IRD.
func greedy(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := capture.NewWriter(&file, capture.WriterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.Open(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2"), time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	for d, key := range []string{mpa.KeyRequest, mpa.KeyReply} {
		e := mpa.Enhanced{IRD: 4, ORD: 4 + uint16(d)}
		b := mpa.AppendStartup(nil, &mpa.StartupFields{Key: key, C: true, S: true, Rev: 2, PrivateData: mpa.AppendEnhanced(nil, &e)})
		if err := f.Send(capture.Dir(d), time.Unix(0, 0), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestDecodeStatus has a finding of severity error be the exit status.
func TestDecodeStatus(t *testing.T) {
	name := filepath.Join(t.TempDir(), "greedy.pcapng")
	if err := os.WriteFile(name, greedy(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"-v", "-x", "--json"} {
		var out, errs bytes.Buffer
		if status := run([]string{"decode", flag, name}, streams{&out, &errs}); status != 1 {
			t.Errorf("%s: status %d", flag, status)
		}
		if !strings.Contains(out.String(), "reply-ord-above-ird") || errs.String() != "iwarp: findings of severity error: 1\n" {
			t.Errorf("%s: %s%s", flag, &out, &errs)
		}
	}
	var out, errs bytes.Buffer
	if status := run([]string{"decode", "--filter", "10.0.0.3", name}, streams{&out, &errs}); status != 0 {
		t.Errorf("filtered: status %d, %s%s", status, &out, &errs)
	}
}

// TestDecodeLive has a capture come slowly: what is known of it is there before it goes
// on, and an interrupt brings out the summaries.
func TestDecodeLive(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	from, feed := io.Pipe()
	defer feed.Close()
	read, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		c := decodeCmd{File: "-"}
		done <- c.decode(ctx, from, streams{out: out}, nil)
		out.Close()
	}()
	if _, err := feed.Write(greedy(t)); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for b := make([]byte, 4096); !bytes.Contains(text, []byte("reply-ord-above-ird")); {
		n, err := read.Read(b)
		if err != nil {
			t.Fatalf("%v after %s", err, text)
		}
		text = append(text, b[:n]...)
	}
	if bytes.Contains(text, []byte("summary")) {
		t.Errorf("a summary before the end: %s", text)
	}
	interrupt()
	rest, err := io.ReadAll(read)
	if err != nil || !bytes.Contains(rest, []byte("summary of #0")) {
		t.Errorf("%s (%v)", rest, err)
	}
	if err := <-done; err == nil {
		t.Error("no error for the finding")
	}
}
