package target_test

import (
	"testing"
	"testing/synctest"

	"github.com/goiwarp/iwarp/internal/capsule"
	"github.com/goiwarp/iwarp/internal/testrig"
	. "github.com/goiwarp/iwarp/nvmf/target"
)

// between has connections be between two addresses.
func between(host, target string) func(_, _ *testrig.Conn) (a, b conn) {
	return func(_, _ *testrig.Conn) (a, b conn) { return testrig.Pipe(host, target) }
}

// TestStale has a host connect again, write, and then a Write arrive on its old connection, as of a network that had
// kept it. By the same way the old connections have ended when the host is answered, and the Write is not carried out.
// By another way, or with Multipath, they go on.
func TestStale(t *testing.T) {
	for name, c := range map[string]struct {
		again     [2]string // addresses
		multipath bool
		ends      bool
	}{
		"the same way":       {[2]string{"192.0.2.2:2000", "192.0.2.1:4420"}, false, true},
		"multipath":          {[2]string{"192.0.2.2:2000", "192.0.2.1:4420"}, true, false},
		"to another address": {[2]string{"192.0.2.2:2000", "198.51.100.1:4420"}, false, false},
		"from another":       {[2]string{"198.51.100.2:2000", "192.0.2.1:4420"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(cfg *Config) { cfg.Multipath = c.multipath })
				r.wrap = between("192.0.2.2:1000", "192.0.2.1:4420")
				admin := r.admin()
				old := r.io(admin, 1, 8)
				other := r.dial(0, 32)
				other.host = 7
				other.connect(0).enable()
				r.wrap = between(c.again[0], c.again[1])
				now := r.io(r.admin(), 1, 8)
				inCapsule := blocks(0, 1, capsule.SGL{Type: capsule.SGLOffset, Length: 512}).Command(capsule.OpWrite)
				now.want(capsule.Success, inCapsule, pattern(512, 2))
				old.send(inCapsule, pattern(512, 1))
				want := pattern(512, 1)
				if c.ends {
					want = pattern(512, 2)
				}
				if old.ended() != c.ends || admin.ended() != c.ends {
					t.Errorf("the old connections have ended: %t, %t", old.ended(), admin.ended())
				}
				same(t, "the disk", r.on(0, 512), want)
				other.want(capsule.Success, capsule.NewCommand(capsule.OpKeepAlive, 0), nil)
			})
		})
	}
}

// TestStaleDiscovery has a host ask for what there is while it uses a disk, which goes on.
func TestStaleDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		a := r.admin()
		d := r.dial(0, 32)
		s := d.put(d.data(capsule.AnyController, capsule.DiscoveryNQN).Append(nil), 0)
		d.want(capsule.Success, capsule.Connect{SGL: s, SQSize: 31}.Command(), nil)
		if a.ended() {
			t.Error("discovery has ended a controller")
		}
		r.admin()
		if !a.ended() || d.ended() {
			t.Error("a controller has ended discovery, or left an older one")
		}
	})
}
