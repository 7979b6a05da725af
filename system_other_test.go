//go:build !unix

package iwarp_test

import (
	"net"
	"testing"

	"github.com/goiwarp/iwarp/internal/layout"
)

// descriptors has no limit to ask for here.
func descriptors() int { return 1 << 30 }

// maxSegment is what is assumed where TCP cannot be asked.
func maxSegment(testing.TB, net.Conn) int { return layout.DefaultEMSS }
