package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	"github.com/goiwarp/iwarp/internal/wording"
)

const (
	// pumpPiece is how much is read at a time, in octets, and pumpAhead how many pieces are read before the first of them is written.
	pumpPiece = 4 << 20
	pumpAhead = 2
	// pumpShow is how often the progress is shown.
	pumpShow = 100 * time.Millisecond
)

// A pump copies a disk, and takes its digest.
type pump struct {
	what     string
	size     int64
	from, to func(ctx context.Context, b []byte, off int64) error
	end      func(context.Context) error // after the last octet; nil: nothing
}

// run copies, and says on said what was copied.
func (p pump) run(ctx context.Context, std streams, said io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pieces, failed := make(chan []byte, pumpAhead), make(chan error, 1)
	go func() {
		defer close(pieces)
		failed <- p.read(ctx, pieces)
	}()
	start, digest, off := time.Now(), sha256.New(), int64(0)
	line := newProgressLine(std.err)
	defer line.clear()
	var shown time.Time
	for b := range pieces {
		digest.Write(b)
		if err := p.to(ctx, b, off); err != nil {
			return err
		}
		off += int64(len(b))
		if now := time.Now(); now.Sub(shown) >= pumpShow {
			shown = now
			line.text(p.progress(off, now.Sub(start)))
		}
	}
	if err := <-failed; err != nil {
		return err
	}
	if p.end != nil {
		if err := p.end(ctx); err != nil {
			return err
		}
	}
	line.clear()
	took := time.Since(start)
	fmt.Fprintf(said, "%s %s in %.2f s: %.1f MiB/s\nSHA-256 %x\n", p.what, wording.Octets(off), took.Seconds(), mib(off)/max(took.Seconds(), 1e-3), digest.Sum(nil))
	return nil
}

// read hands on the pieces in order.
func (p pump) read(ctx context.Context, pieces chan<- []byte) error {
	for off := int64(0); off < p.size; {
		b := make([]byte, min(pumpPiece, p.size-off))
		if err := p.from(ctx, b, off); err != nil {
			return err
		}
		select {
		case pieces <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
		off += int64(len(b))
	}
	return nil
}

// progress is a line about what is done.
func (p pump) progress(done int64, took time.Duration) string {
	return fmt.Sprintf("%3.0f%%  %.1f of %.1f MiB, %.1f MiB/s", 100*float64(done)/float64(p.size), mib(done), mib(p.size), mib(done)/max(took.Seconds(), 1e-3))
}
