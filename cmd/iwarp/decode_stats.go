package main

import (
	"cmp"
	"io"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/internal/traffic"
)

// A statsPrinter is a printer of --stats, which says nothing before the end.
type statsPrinter struct {
	*traffic.Stats
	w   io.Writer
	err error
}

// Flush returns the error of the writer.
func (s *statsPrinter) Flush() error { return s.err }

// Totals prints all.
func (s *statsPrinter) Totals(n decode.Totals) {
	totals := decode.NewText(folded(s.w), decode.TextConfig{})
	totals.Totals(n)
	s.err = cmp.Or(s.Print(folded(s.w)), totals.Flush())
}
