package matrix_test

import (
	"context"
	"errors"
	"testing"

	"github.com/goiwarp/iwarp/internal/matrix"
	"github.com/goiwarp/iwarp/internal/network"
)

// TestCanceled: rows whose ends cannot be made, as the context is over, are given up over each
// network.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, over := range []string{network.TCP, network.UserTCP, network.SCTP} {
		if _, err := matrix.Run(ctx, matrix.Config{Network: over}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", over, err)
		}
	}
}
