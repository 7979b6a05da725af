//go:build interop

package interop_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
	"github.com/goiwarp/iwarp/nvmf/host"
)

// nvmeDialer reaches the guest's target. siw gets CRCs wrong that TCP cuts in two (docs/interop.md).
func nvmeDialer(t *testing.T) *host.Dialer {
	siw, err := iwarp.LookupPreset("siw")
	testrig.Must(t, err)
	return &host.Dialer{RDMA: iwarp.Dialer{Preset: &siw, MPA: mpa.Offer{NoCRC: true}}}
}

// TestNVMeHost has our host read and write a namespace of Linux's target, which a program in the guest reads and writes too.
func TestNVMeHost(t *testing.T) {
	needIwarp(t)
	t.Parallel()
	g := Boot(t, Options{NVMe: true})
	g.Start(t, nvmetScript(16)).WantSuccess(t, 60*time.Second)
	d := nvmeDialer(t)
	t.Run("discover", func(t *testing.T) {
		entries, err := d.Discover(t.Context(), "tcp", g.server())
		testrig.Must(t, err)
		t.Logf("%+v", entries)
	})
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprintf("keep keys %t", keep), func(t *testing.T) {
			d := *d
			d.KeepKeys = keep
			c, err := d.Dial(t.Context(), "tcp", g.server(), "nqn.linux")
			testrig.Must(t, err)
			all, err := c.Namespaces(t.Context())
			testrig.Must(t, err)
			t.Logf("%v, %d queues, %+v", all, c.Queues(), c.Identity())
			n := all[0]
			data, back := make([]byte, n.Size()), make([]byte, n.Size())
			_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
			_, err = n.WriteAt(data, 0)
			testrig.Must(t, err)
			testrig.Must(t, n.Flush(t.Context()))
			_, err = n.ReadAt(back, 0)
			testrig.Must(t, err)
			if !bytes.Equal(data, back) {
				t.Error("what was read is not what was written")
			}
			testrig.Must(t, n.WriteZeroes(t.Context(), 0, 4096))
			testrig.Must(t, n.Discard(t.Context(), 8192, 4096))
			testrig.Must(t, c.Close())
		})
	}
}
