package matrix_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/matrix"
	"github.com/goiwarp/iwarp/internal/network"
)

// TestCanceled: rows whose ends cannot be made, as the context is over, are given up over each
// network, and no part of the report.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, over := range []string{network.TCP, network.UserTCP, network.SCTP} {
		r, err := matrix.Run(ctx, matrix.Config{Network: over})
		if !errors.Is(err, context.Canceled) || !r.Interrupted || r.Cells > 0 || len(r.Figures)+len(r.Wider) > 0 {
			t.Errorf("%s: got %v, and %+v", over, err, r)
		}
	}
}

// TestInterrupted ends runs after a while, one later than the other, until one is complete: each has the rows that were
// over by then, which are as demanded, and says whether rows are missing.
func TestInterrupted(t *testing.T) {
	for after := time.Millisecond; ; after *= 2 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(after, cancel)
		r, err := matrix.Run(ctx, matrix.Config{Match: regexp.MustCompile("^(figure 2|dialects)/"), Timeout: patience})
		cancel()
		rows := len(r.Wider)
		for _, f := range r.Figures {
			rows += len(f.Cells)
		}
		var text strings.Builder
		werr := r.Report().WriteText(&text, false)
		if r.Cells != rows || r.AsDemanded != rows || r.Interrupted != (err != nil) || werr != nil ||
			strings.Contains(text.String(), "stopped: interrupted") != r.Interrupted ||
			strings.Contains(text.String(), fmt.Sprintf("interrupted: %d of ", rows)) != r.Interrupted {
			t.Fatalf("after %v: %d of %d cells in %d rows, %v\n%s",
				after, r.AsDemanded, r.Cells, rows, err, text.String())
		}
		if err == nil {
			return
		}
	}
}
