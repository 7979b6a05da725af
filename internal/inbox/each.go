package inbox

import (
	"context"

	"github.com/goiwarp/iwarp"
)

// Each calls f with the completions of a CQ as they come. The error is f's, or that of [iwarp.CQ.Wait] when none come any more or the
// context has ended. After an error of f's, those that came together with the last one are lost.
func Each(ctx context.Context, cq *iwarp.CQ, f func(*iwarp.WC) error) error {
	var wcs [32]iwarp.WC
	for {
		n := cq.Poll(wcs[:])
		for i := range n {
			if err := f(&wcs[i]); err != nil {
				return err
			}
		}
		if n > 0 {
			continue
		}
		if err := cq.Wait(ctx); err != nil {
			return err
		}
	}
}
