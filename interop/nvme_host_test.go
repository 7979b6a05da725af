//go:build interop

package interop_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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

// TestNVMeHost has our host read and write a namespace of Linux's target, which a program in the guest reads and writes
// too.
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
	t.Run("command", func(t *testing.T) { testNVMeHostCommand(t, g) })
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

// testNVMeHostCommand has the built command list what the target has, write a file to its disk, and read the whole
// disk, whose content the guest knows too.
func testNVMeHostCommand(t *testing.T, g *Guest) {
	asHost := func(args ...string) *Proc {
		t.Helper()
		p := iwarpCommand(t, append([]string{"disk", "--peer", "siw", "--crc", "off"}, args...)...)
		p.WantSuccess(t, 120*time.Second)
		return p
	}
	asHost("--list", "nvme://"+g.server()).WantOutput(t, "nqn.linux")
	disk := "nvme://" + g.server() + "/nqn.linux"
	asHost("--list", disk, "--json").WantOutput(t, fmt.Sprintf(`"bytes": %d`, 16<<20))
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	data := make([]byte, 5<<20+123)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(data)
	testrig.Must(t, os.WriteFile(in, data, 0o600))
	asHost(in, "--write", disk)
	asHost("--read", disk, "--out", out)
	back, err := os.ReadFile(out)
	testrig.Must(t, err)
	if len(back) != 16<<20 || !bytes.HasPrefix(back, data) {
		t.Errorf("%d bytes were read, or others than those written", len(back))
	}
	p := g.Start(t, "echo DIGEST $(sha256sum </tmp/backend)")
	p.WantSuccess(t, 60*time.Second)
	wantDigest(t, out, p)
}
