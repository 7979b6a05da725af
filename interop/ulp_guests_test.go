//go:build interop

package interop_test

import (
	"testing"
	"time"
)

// TestULPGuests has Linux's own servers and clients talk over siw, from one guest to another, and package decode say what
// they say. iwarp probe asks the servers, and they take no harm.
func TestULPGuests(t *testing.T) {
	p := bootPair(t)
	t.Run("NFS", p.testNFS)
	t.Run("iSER", p.testISER)
	t.Run("NVMe", func(t *testing.T) {
		p.server.Start(t, nvmetScript(16)).WantSuccess(t, 60*time.Second)
		p.wantProbed(t)
	})
}
