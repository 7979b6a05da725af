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
	// pumpPiece is how much is read at a time, in bytes, and pumpAhead how many pieces are read before the first of
	// them is written.
	pumpPiece = 4 << 20
	pumpAhead = 2
)

// A pump copies a disk, and takes its digest.
type pump struct {
	what     string
	size     int64
	from, to func(ctx context.Context, b []byte, off int64) error
	end      func(context.Context) error // after the last byte; nil: nothing
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
	line := copyLine{progressLine: newProgressLine(std.err)}
	defer line.clear()
	line.start("", p.size)
	for b := range pieces {
		digest.Write(b)
		if err := p.to(ctx, b, off); err != nil {
			return err
		}
		off += int64(len(b))
		line.moved(int64(len(b)))
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
	fmt.Fprintf(said, "%s %s in %.2f s: %s\nSHA-256 %x\n",
		p.what, wording.Size(off), took.Seconds(), rateText(off, took), digest.Sum(nil))
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
