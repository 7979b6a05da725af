package iwarp_test

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestConfirm has a Write and a Send complete when the peer has carried them out, over each lower layer: nothing else has to be waited for. A
// Write that the peer refuses fails itself.
//
// Proves P40.
func TestConfirm(t *testing.T) {
	overLayers(t, iwarp.QPConfig{Confirm: true}, func(t *testing.T, ini, res *end, _ func()) {
		works(t, ini, res) // a Responder may not send first
		const n = 100_000
		ctx, src := t.Context(), res.filled(n, 1, 0)
		for id := range uint64(3) {
			written, received := ini.mr(n, iwarp.RemoteWrite), ini.mr(n, iwarp.LocalWrite)
			_, err := res.Write(ctx, src.Slice(0, n), written.Remote(0))
			must(t, err)
			same(t, "Write", written, src)
			ini.postRecv(id, received.Slice(0, n))
			must(t, res.Send(ctx, src.Slice(0, n)))
			same(t, "Send", received, src)
			if wc := ini.wantReceived(id, iwarp.StatusSuccess); wc.Length != n {
				t.Errorf("%d octets", wc.Length)
			}
		}
		_, err := res.Write(ctx, src.Slice(0, n), ini.mr(n, iwarp.RemoteRead).Remote(0))
		var failed *iwarp.WCError
		if !errors.As(err, &failed) || failed.Status != iwarp.StatusRemoteAccess {
			t.Errorf("a Write without the right to: %v", err)
		}
	})
}
