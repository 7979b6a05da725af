package iwarp_test

import (
	"bytes"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/e2e/rig"
)

// TestReadList: a Read into several elements fills them in order, over each lower layer, and completes once.
func TestReadList(t *testing.T) {
	overLayers(t, iwarp.QPConfig{}, func(t *testing.T, ini, res *rig.End, _ func()) {
		const n = 100000
		source := res.Filled(n, 1, iwarp.RemoteRead)
		one, other := ini.MR(n, iwarp.LocalWrite), ini.MR(n, iwarp.LocalWrite)
		ini.MustPost(&iwarp.SendWR{ID: 1, Op: iwarp.OpRead, Remote: source.Remote(0),
			SGL: []iwarp.SGE{one.Slice(7, 1), other.Slice(0, n-3), one.Slice(0, 2)}})
		ini.WantSent(iwarp.OpRead, 1, iwarp.StatusSuccess)
		want, got := source.Bytes(), one.Bytes()
		if got[7] != want[0] || !bytes.Equal(other.Bytes()[:n-3], want[1:n-2]) || !bytes.Equal(got[:2], want[n-2:]) {
			t.Error("what was read is not what is there")
		}
	})
}
