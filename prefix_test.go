package iwarp_test

import (
	"errors"
	"testing"

	"github.com/goiwarp/iwarp"
)

// TestSetPrefix has the Sends of both ends begin with octets of the consumers' that are not for the receives' memory, from the next connection on.
func TestSetPrefix(t *testing.T) {
	const n = 100_000
	ini, res := newEnd(t, iwarp.RNICConfig{}), newEnd(t, iwarp.RNICConfig{})
	for _, e := range []*end{ini, res} {
		e.QP = create(t, e.pd, iwarp.QPConfig{})
		must(t, e.SetPrefix(true))
		e.postRecv(1, e.mr(n, iwarp.LocalWrite).Slice(0, n))
	}
	connectQPs(t, ini, res)
	for _, way := range [][2]*end{{ini, res}, {res, ini}} {
		from, to := way[0], way[1]
		from.post(&iwarp.SendWR{ID: 2, SGL: []iwarp.SGE{from.filled(n, 1, 0).Slice(0, n)}, Prefix: 0x0102030405060708})
		if wc := to.wantReceived(1, iwarp.StatusSuccess); wc.Length != n || wc.Prefix != 0x0102030405060708 {
			t.Errorf("%v with the prefix %#x", wc, wc.Prefix)
		}
		if wc := from.wantSent(iwarp.OpSend, 2, iwarp.StatusSuccess); wc.Length != n || wc.Prefix != 0 {
			t.Errorf("%v with the prefix %#x", wc, wc.Prefix)
		}
	}
	if err := ini.SetPrefix(false); !errors.Is(err, iwarp.ErrBadState) {
		t.Errorf("on a connection: %v", err)
	}
	if err := ini.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite, Prefix: 1}); !errors.Is(err, iwarp.ErrInvalid) {
		t.Errorf("a prefix of a Write: %v", err)
	}
	plain, _ := setup{}.connect(t)
	if err := plain.PostSend(&iwarp.SendWR{Prefix: 1}); !errors.Is(err, iwarp.ErrNoPrefix) {
		t.Errorf("where Sends have none: %v", err)
	}
}
